import { describe, expect, test } from 'vitest'
import { UsageError } from '../io.ts'
import { start } from '../test-io.ts'
import { apiserverCommand } from './apiserver.ts'
import { apiSwitches, checkApiSwitches, origins } from './apiserver-flags.ts'
import { flagsWithoutEffect, rejectedFlags } from './upstream-flags.ts'

/** Flags listed by `kube-apiserver --help`, v1.36.2, except --help and --version. */
const upstreamFlagNames = `
  admission-control admission-control-config-file advertise-address aggregator-reject-forwarding-redirect
  allow-metric-labels allow-metric-labels-manifest allow-privileged anonymous-auth api-audiences
  audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
  audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format audit-log-maxage
  audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-enabled
  audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-policy-file
  audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait
  audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable audit-webhook-batch-throttle-qps
  audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode audit-webhook-truncate-enabled
  audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version
  authentication-config authentication-token-webhook-cache-ttl authentication-token-webhook-config-file
  authentication-token-webhook-version authorization-config authorization-mode authorization-policy-file
  authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
  authorization-webhook-config-file authorization-webhook-version bind-address cert-dir client-ca-file
  contention-profiling coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
  coordinated-leadership-retry-period cors-allowed-origins debug-socket-path default-not-ready-toleration-seconds
  default-unreachable-toleration-seconds delete-collection-workers disable-admission-plugins disable-http2-serving
  disabled-metrics egress-selector-config-file emulated-version emulation-forward-compatible enable-admission-plugins
  enable-aggregator-routing enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
  enable-priority-and-fairness encryption-provider-config encryption-provider-config-automatic-reload
  endpoint-reconciler-type etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
  etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout etcd-servers
  etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance http2-max-streams-per-connection
  kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types
  kubelet-timeout kubernetes-service-node-port lease-reuse-duration-seconds livez-grace-period log-flush-frequency
  log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format
  max-connection-bytes-per-sec max-mutating-requests-inflight max-requests-inflight min-compatibility-version
  min-request-timeout oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url
  oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port
  peer-ca-file permit-address-sharing permit-port-sharing profiling proxy-client-cert-file proxy-client-key-file
  request-timeout requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
  requestheader-group-headers requestheader-uid-headers requestheader-username-headers runtime-config
  runtime-config-emulation-forward-compatible secure-port service-account-extend-token-expiration service-account-issuer
  service-account-jwks-uri service-account-key-file service-account-lookup service-account-max-token-expiration
  service-account-signing-endpoint service-account-signing-key-file service-cluster-ip-range service-node-port-range
  show-hidden-metrics-for-version shutdown-delay-duration shutdown-send-retry-after
  shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout storage-media-type
  strict-transport-security-directives tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
  tls-private-key-file tls-sni-cert-key token-auth-file tracing-config-file v vmodule watch-cache watch-cache-sizes
`
  .trim()
  .split(/\s+/)

test('every flag of kube-apiserver except --help and --version is supported, has no effect, or is rejected', () => {
  const command = apiserverCommand({} as never, () => {})
  const flagNames = command.options.map(({ long }) => long!.slice(2))
  const supported = flagNames.filter((name) => !flagsWithoutEffect.has(name) && !rejectedFlags.has(name))
  expect(new Set(flagNames).size).toBe(flagNames.length)
  expect(upstreamFlagNames.filter((name) => !flagNames.includes(name))).toEqual([])
  expect([...flagsWithoutEffect.keys(), ...rejectedFlags.keys()].filter((name) => !upstreamFlagNames.includes(name))).toEqual([])
  expect(supported.filter((name) => !upstreamFlagNames.includes(name)).sort()).toEqual([
    'controllers',
    'data',
    'kubeconfig',
    'root-ca-file',
  ])
})

test('a flag without effect is reported, and the server runs', async () => {
  const server = start([
    'apiserver',
    '--secure-port=0',
    '--profiling=false',
    '--audit-log-path',
    '-',
    '--authorization-mode=Node,RBAC',
  ])
  await server.line(/ready/)
  expect(await server.interrupt()).toBe(0)
  expect(server.err.filter((line) => line.startsWith('capstan:'))).toEqual([
    'capstan: warning: --profiling has no effect: metrics cannot be configured, and there are no traces or profiles',
    'capstan: warning: --audit-log-path has no effect: there is no audit log',
    'capstan: warning: --authorization-mode Node has no effect: there are no kubelets here',
  ])
})

test('rejects patterns of --cors-allowed-origins that match more hosts than intended', () => {
  expect(origins('^https://a$,//b(:|$)', ['^c$'])).toEqual(['^c$', '^https://a$', '//b(:|$)'])
  expect(() => origins('^https://a$,b')).toThrow(
    'invalid regular expression: regular expression does not pin to start/end of host',
  )
})

describe('--runtime-config', () => {
  const served = new Set(['v1', 'apps/v1'])
  test.each([
    ['', 'accepted'],
    ['api/all=true', 'accepted'],
    ['v1=true,apps/v1', 'accepted'],
    ['batch/v2=false', 'accepted'],
    ['apps/v1/deployments=false', '--runtime-config: apps/v1/deployments cannot be turned off'],
    ['batch/v2', '--runtime-config: batch/v2 is not served here'],
    ['nonsense', '--runtime-config: unknown api "nonsense"'],
  ])('value "%s": %s', (text, expected) => {
    const check = () => {
      checkApiSwitches(apiSwitches(text), served)
      return 'accepted'
    }
    if (expected === 'accepted') expect(check()).toBe(expected)
    else expect(check).toThrow(new UsageError(expected))
  })
})
