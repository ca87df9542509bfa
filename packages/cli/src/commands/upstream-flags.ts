/**
 * Flags of kube-apiserver v1.36 that have no effect here, and flags that are rejected because this server does not support them.
 * `upstream-flags.test.ts` checks that every other flag of kube-apiserver is an option of `capstan apiserver`.
 */
import { InvalidArgumentError, Option } from 'commander'

/** Flags that have no effect: the key is the reason, the value has the names of the flags, separated by spaces. */
const withoutEffect: { readonly [reason: string]: string } = {
  'the server stores its state itself, see --data':
    'etcd-cafile etcd-certfile etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile ' +
    'etcd-prefix etcd-readycheck-timeout etcd-servers-overrides lease-reuse-duration-seconds storage-backend ' +
    'storage-initialization-timeout storage-media-type watch-cache watch-cache-sizes',
  'the objects of a collection are deleted one after the other': 'delete-collection-workers',
  'no Pods run on this server':
    'allow-privileged kubelet-certificate-authority kubelet-client-certificate kubelet-client-key ' +
    'kubelet-preferred-address-types kubelet-timeout max-connection-bytes-per-sec',
  'there is no network of Services': 'kubernetes-service-node-port',
  'there is one server':
    'endpoint-reconciler-type peer-advertise-ip peer-advertise-port peer-ca-file goaway-chance ' +
    'coordinated-leadership-lease-duration coordinated-leadership-renew-deadline coordinated-leadership-retry-period',
  'kubeconfigs contain the address of the server': 'external-hostname',
  'there is no aggregation of other API servers':
    'aggregator-reject-forwarding-redirect enable-aggregator-routing proxy-client-cert-file proxy-client-key-file ' +
    'requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers ' +
    'requestheader-uid-headers requestheader-username-headers',
  'there are no egress proxies': 'egress-selector-config-file',
  'there is no audit log':
    'audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst ' +
    'audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format audit-log-maxage ' +
    'audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-enabled ' +
    'audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-policy-file ' +
    'audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait ' +
    'audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable audit-webhook-batch-throttle-qps ' +
    'audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode audit-webhook-truncate-enabled ' +
    'audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version',
  'metrics cannot be configured, and there are no traces or profiles':
    'allow-metric-labels allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version profiling ' +
    'contention-profiling debug-socket-path tracing-config-file',
  'logs are JSON lines on stderr':
    'log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream ' +
    'logging-format vmodule enable-logs-handler',
  'this setting of connections or shutdown is fixed':
    'disable-http2-serving permit-address-sharing permit-port-sharing livez-grace-period ' +
    'shutdown-delay-duration shutdown-send-retry-after shutdown-watch-termination-grace-period strict-transport-security-directives tls-cipher-suites tls-curve-preferences',
  'nodes do not join this server': 'enable-bootstrap-token-auth',
  'feature gates have the defaults of v1.36':
    'feature-gates emulation-forward-compatible runtime-config-emulation-forward-compatible',
}

/** Flags that are rejected: the key is the reason, the value has the names of the flags, separated by spaces. */
const rejected: { readonly [reason: string]: string } = {
  'see --enable-admission-plugins and --disable-admission-plugins': 'admission-control',
  'no admission plugin of this server has a configuration': 'admission-control-config-file',
  'objects are stored without encryption': 'encryption-provider-config encryption-provider-config-automatic-reload',
  'users authenticate with client certificates, --token-auth-file or tokens of service accounts':
    'authentication-config authentication-token-webhook-cache-ttl authentication-token-webhook-config-file ' +
    'authentication-token-webhook-version oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url ' +
    'oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix',
  'authorization is configured with --authorization-mode':
    'authorization-config authorization-policy-file authorization-webhook-cache-authorized-ttl ' +
    'authorization-webhook-cache-unauthorized-ttl authorization-webhook-config-file authorization-webhook-version',
  'tokens are signed with --service-account-signing-key-file': 'service-account-signing-endpoint',
  'there is one serving certificate, see --tls-cert-file': 'tls-sni-cert-key',
  'the server is v1.36': 'emulated-version min-compatibility-version',
}

const entriesOf = (table: { readonly [reason: string]: string }) =>
  Object.entries(table).flatMap(([why, flags]) => flags.split(' ').map((name) => ({ name, why })))

/** Reasons why flags have no effect, by flag name without leading dashes. */
export const flagsWithoutEffect: ReadonlyMap<string, string> = new Map(
  entriesOf(withoutEffect).map(({ name, why }) => [name, why]),
)
/** Reasons why flags are rejected, by flag name without leading dashes. */
export const rejectedFlags: ReadonlyMap<string, string> = new Map(entriesOf(rejected).map(({ name, why }) => [name, why]))

/**
 * Returns a hidden option for each flag without effect and each rejected flag. A given flag without effect calls `onIgnored`; a rejected flag
 * is an error.
 */
export function upstreamFlags(onIgnored: (flag: string, reason: string) => void): Option[] {
  const hidden = (name: string, parse: () => unknown) => new Option(`--${name} [value]`).argParser(parse).preset('').hideHelp()
  return [
    ...[...flagsWithoutEffect].map(([name, reason]) => hidden(name, () => onIgnored(`--${name}`, reason))),
    ...[...rejectedFlags].map(([name, reason]) =>
      hidden(name, () => {
        throw new InvalidArgumentError(`--${name} is not supported: ${reason}.`)
      }),
    ),
  ]
}
