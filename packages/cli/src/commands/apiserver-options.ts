/**
 * Options of `capstan apiserver`, declared in the order of its help. An option has the name of the flag of kube-apiserver or
 * kube-controller-manager with the same meaning, if there is one.
 */
import type { AuthorizationMode } from '@capstan/apiserver'
import { AuthorizationModes, defaultLimits } from '@capstan/apiserver'
import type { AdmissionPlugin } from '@capstan/kubernetes-kinds'
import { AdmissionPlugins } from '@capstan/kubernetes-kinds'
import { parseDuration } from '@capstan/kube'
import { type Command, Option } from 'commander'
import { dataOption } from '../data-option.ts'
import type { LogLevel } from '../logger.ts'
import { portOption } from '../port-option.ts'
import type { ApiSwitch, EnabledControllers } from './apiserver-flags.ts'
import {
  apiSwitches,
  authorizationModes,
  clusterRange,
  portRange,
  controllers,
  count,
  disabledPlugins,
  duration,
  enabledPlugins,
  flag,
  jwksUri,
  knownControllers,
  list,
  origins,
  onlyTrue,
  secondsCount,
  appendValue,
  tlsVersion,
  verbosity,
} from './apiserver-flags.ts'

/**
 * Parsed values. Durations are in milliseconds, except the two toleration times, which are in seconds. A missing member means
 * that the flag was not given.
 */
export interface ApiserverOptions {
  bindAddress: string
  securePort: number
  tlsCertFile?: string
  tlsPrivateKeyFile?: string
  rootCaFile?: string
  clientCaFile?: string
  tokenAuthFile?: string
  data?: string
  etcdServers?: string[]
  kubeconfig?: string
  authorizationMode: readonly AuthorizationMode[]
  serviceAccountIssuer?: string[]
  serviceAccountSigningKeyFile?: string
  serviceAccountKeyFile?: string[]
  apiAudiences?: string[]
  anonymousAuth: boolean
  disableAdmissionPlugins?: AdmissionPlugin[]
  enableAdmissionPlugins?: AdmissionPlugin[]
  controllers: EnabledControllers
  certDir?: string
  serviceAccountMaxTokenExpiration?: number
  serviceAccountExtendTokenExpiration: boolean
  serviceAccountJwksUri?: string
  enableGarbageCollector: boolean
  corsAllowedOrigins?: readonly string[]
  eventTtl: number
  etcdCompactionInterval: number
  serviceClusterIpRange: string
  serviceNodePortRange: string
  defaultNotReadyTolerationSeconds: number
  defaultUnreachableTolerationSeconds: number
  advertiseAddress?: string
  runtimeConfig?: readonly ApiSwitch[]
  maxRequestsInflight: number
  maxMutatingRequestsInflight: number
  enablePriorityAndFairness: boolean
  http2MaxStreamsPerConnection: number
  requestTimeout: number
  minRequestTimeout: number
  tlsMinVersion: 'TLSv1.2' | 'TLSv1.3'
  v: LogLevel
}

export function addApiserverOptions(command: Command): Command {
  for (const add of [addServing, addAuthentication, addAdmission, addLimits, addObjects, addFiles]) add(command)
  return command
}

/** Address and certificates. */
const addServing = (command: Command): Command =>
  command
    .option('--bind-address <ip>', 'address to listen on; prints a warning unless it is a loopback address', '127.0.0.1')
    .addOption(portOption('--secure-port <n>', 'port to listen on; 0 selects a free port').default(6443))
    .option('--tls-cert-file <file>', 'serving certificate chain, PEM (default: a generated certificate)')
    .option('--tls-private-key-file <file>', 'key of --tls-cert-file, PEM')
    .option('--client-ca-file <file>', 'certificate authorities of client certificates, PEM (default: the generated authority)')
    .option(
      '--root-ca-file <file>',
      'certificate authority of the serving certificate, PEM, published in every namespace (default: the generated authority, or none with --tls-cert-file)',
    )

/** Authentication and authorization. */
const addAuthentication = (command: Command): Command =>
  command
    .option('--token-auth-file <file>', 'static tokens, in the CSV format of kube-apiserver: token,user,uid,"group1,group2"')
    .addOption(
      new Option('--authorization-mode <modes>', `ordered list of authorizers; possible: ${AuthorizationModes.join(', ')}`)
        .argParser(authorizationModes)
        .default(['AlwaysAllow'], 'AlwaysAllow'),
    )
    .option(
      '--service-account-issuer <url>',
      'issuer of service account tokens (default: https://kubernetes.default.svc.cluster.local); may be repeated to add issuers whose tokens are also accepted',
      appendValue,
    )
    .option(
      '--service-account-signing-key-file <file>',
      'private key that signs service account tokens, PEM (default: a generated key, stored in --data)',
    )
    .option(
      '--service-account-key-file <file>',
      'further key or certificate that verifies service account tokens, PEM; may be repeated',
      appendValue,
    )
    .option('--api-audiences <names>', 'accepted audiences of tokens (default: the issuers)', list)
    .option(
      '--service-account-max-token-expiration <duration>',
      'maximum lifetime of service account tokens (default: as requested)',
      duration,
    )
    .option(
      '--service-account-extend-token-expiration [bool]',
      "extend the lifetime of a pod's injected token to one year",
      flag,
      true,
    )
    .option(
      '--service-account-jwks-uri <url>',
      'URL of the JSON Web Key Set of service account tokens (default: this server)',
      jwksUri,
    )
    .option('--service-account-lookup [bool]', 'reject tokens whose bound object was deleted; cannot be turned off', onlyTrue)
    .option('--anonymous-auth [bool]', 'accept requests without credentials, as user system:anonymous', flag, true)

/** Admission plugins and controllers. */
const addAdmission = (command: Command): Command =>
  command
    .option(
      '--disable-admission-plugins <names>',
      `admission plugins to disable; possible: ${AdmissionPlugins.join(', ')}`,
      disabledPlugins,
    )
    .option('--enable-admission-plugins <names>', 'admission plugins to enable that are off by default', enabledPlugins)
    .addOption(
      new Option(
        '--controllers <names>',
        `controllers of the server: a list of ${knownControllers.join(', ')}; * enables all, -NAME disables one`,
      )
        .argParser(controllers)
        .default(controllers('*'), '*'),
    )
    .option(
      '--enable-garbage-collector [bool]',
      'run the garbage collector; false is the same as disabling garbage-collector-controller',
      flag,
      true,
    )

/** Limits of requests and of the history. */
const addLimits = (command: Command): Command =>
  command
    .option(
      '--max-requests-inflight <n>',
      'maximum number of concurrent non-mutating requests; see --enable-priority-and-fairness',
      count,
      defaultLimits.maxRequestsInflight,
    )
    .option(
      '--max-mutating-requests-inflight <n>',
      'maximum number of concurrent mutating requests; see --enable-priority-and-fairness',
      count,
      defaultLimits.maxMutatingRequestsInflight,
    )
    .option(
      '--enable-priority-and-fairness [bool]',
      'share the sum of both limits among priority levels and users; false applies each limit separately, and rejects further requests at once',
      flag,
      true,
    )
    .option('--http2-max-streams-per-connection <n>', 'maximum number of concurrent requests on one connection', count, 1000)
    .addOption(
      new Option('--request-timeout <duration>', 'timeout of a request other than a watch')
        .argParser(duration)
        .default(defaultLimits.requestTimeout, '1m0s'),
    )
    .addOption(
      new Option('--min-request-timeout <seconds>', 'minimum duration of a watch without timeoutSeconds')
        .argParser(secondsCount)
        .default(defaultLimits.minRequestTimeout, '1800'),
    )
    .addOption(
      new Option(
        '--etcd-compaction-interval <duration>',
        'maximum age of a revision at which watches and lists can start; 0 removes this limit',
      )
        .argParser(duration)
        .default(parseDuration('5m'), '5m'),
    )

/** Services, CORS, tolerations, Events and served versions. */
const addObjects = (command: Command): Command =>
  command
    .option('--service-cluster-ip-range <range>', 'IPv4 range of the cluster IPs of Services', clusterRange, '10.0.0.0/24')
    .option('--service-node-port-range <range>', 'range of node ports of Services', portRange, '30000-32767')
    .option(
      '--advertise-address <ip>',
      'address of the server in the Endpoints of Service `kubernetes` (default: --bind-address, or an address of this machine if --bind-address is a loopback or wildcard address)',
    )
    .option(
      '--cors-allowed-origins <patterns>',
      'allowed origins of browser requests, as regular expressions, such as ^https://example\\.com(:|$)',
      origins,
    )
    .option('--default-not-ready-toleration-seconds <n>', 'default tolerationSeconds of pods for notReady:NoExecute', count, 300)
    .option(
      '--default-unreachable-toleration-seconds <n>',
      'default tolerationSeconds of pods for unreachable:NoExecute',
      count,
      300,
    )
    .addOption(
      new Option('--event-ttl <duration>', 'time for which Events are kept after their last update; 0 keeps them')
        .argParser(duration)
        .default(parseDuration('1h'), '1h'),
    )
    .option(
      '--runtime-config <versions>',
      'API versions as version=true|false; accepted only if the served versions stay the same',
      apiSwitches,
    )

/** TLS version, files and state, and the log. */
const addFiles = (command: Command): Command =>
  command
    .addOption(
      new Option('--tls-min-version <version>', 'minimum TLS version: VersionTLS12 or VersionTLS13')
        .argParser(tlsVersion)
        .default('TLSv1.2', 'VersionTLS12'),
    )
    .option('--cert-dir <dir>', 'folder with apiserver.crt and apiserver.key, used if --tls-cert-file is not given')
    .option(
      '--etcd-servers <urls>',
      'URLs of an etcd launcher of `capstan envtest`; its data folder is used if --data is not given',
      list,
    )
    .addOption(dataOption('folder for state and certificates (default: memory only)'))
    .option('--kubeconfig <file>', 'file to write an administrator kubeconfig to when the server is ready')
    .addOption(
      new Option('-v, --v <level>', 'log verbosity; 4 and higher log debug lines').argParser(verbosity).default('info', '0'),
    )
