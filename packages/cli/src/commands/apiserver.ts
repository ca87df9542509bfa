import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { resolve } from 'node:path'
import type {
  Authenticate,
  AuthorizationMode,
  DurableStores,
  Endpoint,
  ObjectEncoding,
  Limits,
  Listener,
  Store,
} from '@capstan/apiserver'
import type { AdmissionPlugin, ApiServer, ServiceAccountTokenOptions } from '@capstan/kubernetes-kinds'
import {
  AuthorizationModes,
  createHandler,
  defaultLimits,
  packedObjects,
  listen,
  memoryStore,
  openDurable,
  parseTokenFile,
  storeCheck,
} from '@capstan/apiserver'
import { AdmissionPlugins, createApiServer } from '@capstan/kubernetes-kinds'
import type { Clock, Logger } from '@capstan/kube'
import { apiVersionOf, messageOf, parseDuration, seconds, sleep, systemClock, systemRandom } from '@capstan/kube'
import { invalidNow } from '@capstan/kube/node'
import { Command, Option } from 'commander'
import type { Access } from '../access.ts'
import { openAccess, openSigningKey, writeKubeconfig } from '../access.ts'
import { advertisedAddress } from '../advertised-address.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted, UsageError } from '../io.ts'
import { createLogger, type LogLevel } from '../logger.ts'
import { portOption } from '../port-option.ts'
import { dataOption } from '../data-option.ts'
import type { ApiSwitch, EnabledControllers } from './apiserver-flags.ts'
import {
  apiSwitches,
  authorizationModes,
  checkApiSwitches,
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
  pluginSwitches,
  secondsCount,
  appendValue,
  tlsVersion,
  verbosity,
} from './apiserver-flags.ts'
import { upstreamFlags } from './upstream-flags.ts'

interface Options {
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

/** `capstan apiserver`: the embedded API server alone. It has the flags of kube-apiserver where their meaning is the same. */
export function apiserverCommand(io: Io, finish: (code: number) => void): Command {
  const ignoredFlags: string[] = []
  const command = new Command('apiserver')
    .description('Run the Kubernetes-compatible API server alone: no etcd, no other binaries')
    .option('--bind-address <ip>', 'address to listen on; prints a warning unless it is a loopback address', '127.0.0.1')
    .addOption(portOption('--secure-port <n>', 'port to listen on; 0 selects a free port').default(6443))
    .option('--tls-cert-file <file>', 'serving certificate chain, PEM (default: a generated certificate)')
    .option('--tls-private-key-file <file>', 'key of --tls-cert-file, PEM')
    .option('--client-ca-file <file>', 'certificate authorities of client certificates, PEM (default: the generated authority)')
    .option(
      '--root-ca-file <file>',
      'certificate authority of the serving certificate, PEM, published in every namespace (default: the generated authority)',
    )
    .option('--token-auth-file <file>', 'static tokens, in the CSV format of kube-apiserver: token,user,uid,"group1,group2"')
    .addOption(
      new Option('--authorization-mode <modes>', `ordered list of authorizers, of ${AuthorizationModes.join(', ')}`)
        .argParser(authorizationModes)
        .default(['AlwaysAllow'], 'AlwaysAllow'),
    )
    .option(
      '--service-account-issuer <url>',
      'issuer of service account tokens; further issuers, whose tokens are also accepted, may be added by repeating the flag',
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
    .option(
      '--disable-admission-plugins <names>',
      `admission plugins to disable, of ${AdmissionPlugins.join(', ')}`,
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
    .option(
      '--max-requests-inflight <n>',
      'maximum number of concurrent non-mutating requests',
      count,
      defaultLimits.maxRequestsInflight,
    )
    .option(
      '--max-mutating-requests-inflight <n>',
      'maximum number of concurrent mutating requests',
      count,
      defaultLimits.maxMutatingRequestsInflight,
    )
    .option(
      '--enable-priority-and-fairness [bool]',
      'share both limits among priority levels and users; false applies each limit separately, first come, first served',
      flag,
      true,
    )
    .option('--http2-max-streams-per-connection <n>', 'maximum number of concurrent requests on one connection', count, 1000)
    .addOption(
      new Option('--request-timeout <duration>', 'timeout of a request')
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
    .option('--service-cluster-ip-range <range>', 'IPv4 range of the cluster IPs of Services', clusterRange, '10.0.0.0/24')
    .option('--service-node-port-range <range>', 'range of node ports of Services', portRange, '30000-32767')
    .option(
      '--advertise-address <ip>',
      'address of the server in the Endpoints of Service `kubernetes` (default: --bind-address, or an address of this machine if that is loopback)',
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
      new Option('--event-ttl <duration>', 'time for which Events are kept after their last update')
        .argParser(duration)
        .default(parseDuration('1h'), '1h'),
    )
    .option(
      '--runtime-config <versions>',
      'API versions as version=true|false; accepted only where it does not change what is served',
      apiSwitches,
    )
    .addOption(
      new Option('--tls-min-version <version>', 'minimum TLS version: VersionTLS12 or VersionTLS13')
        .argParser(tlsVersion)
        .default('TLSv1.2', 'VersionTLS12'),
    )
    .option('--cert-dir <dir>', 'folder with apiserver.crt and apiserver.key, used without --tls-cert-file')
    .option(
      '--etcd-servers <urls>',
      'URLs of an etcd launcher of `capstan envtest`, whose data folder is used without --data',
      list,
    )
    .addOption(dataOption('folder for state and certificates (default: memory only)'))
    .option('--kubeconfig <file>', 'file to write an administrator kubeconfig to when the server is ready')
    .addOption(
      new Option('-v, --v <level>', 'log verbosity; 4 and higher log everything').argParser(verbosity).default('info', '0'),
    )
    .addHelpText(
      'after',
      '\nOther flags of kube-apiserver v1.36 are accepted with a warning if they have no effect here, and rejected otherwise.',
    )
    .action(async (options: Options) => {
      for (const line of ignoredFlags) io.err(line)
      await serve(options, io)
      finish(ExitCodes.done)
    })
  for (const option of upstreamFlags((flag, reason) => ignoredFlags.push(`capstan: warning: ${flag} has no effect: ${reason}`)))
    command.addOption(option)
  return command
}

async function serve(flags: Options, io: Io): Promise<void> {
  const clock = systemClock
  const log = createLogger(io, flags.v)
  if ((flags.tlsCertFile === undefined) !== (flags.tlsPrivateKeyFile === undefined)) {
    throw new UsageError('--tls-cert-file and --tls-private-key-file must be given together')
  }
  const options = withCertDir(flags)
  for (const line of warningsOf(options)) io.err(`capstan: warning: ${line}`)

  const warn = (line: string) => io.err(`capstan: warning: ${line}`)

  // Objects are stored as JSON, which takes less memory: all clients are in other processes, and most request JSON.
  const encode = packedObjects()
  // Stores are opened while the certificates are made. A failure is reported where the promise is awaited.
  const opening = openStores(clock, log, encode, options)
  opening.catch(() => {})
  let server: ApiServer | undefined
  let listener: Listener | undefined
  try {
    const [access, serviceAccountTokens] = await Promise.all([accessOf(clock, warn, options), tokenOptions(options)])
    const { tokenAuthFile } = options
    const tokens = tokenAuthFile === undefined ? undefined : await readFlag('--token-auth-file', tokenAuthFile, parseTokenFile)
    const stores = await opening
    const history = options.etcdCompactionInterval === 0 ? {} : { age: options.etcdCompactionInterval }
    const store: Store = stores ? await stores.store('management', { history }) : memoryStore({ clock, history, encode })
    server = createApiServer({
      store,
      clock,
      random: systemRandom,
      log,
      authorization: options.authorizationMode,
      serviceAccountTokens,
      admissionPlugins: pluginSwitches(options.enableAdmissionPlugins, options.disableAdmissionPlugins),
      controllers: controllersOf(options, await publishedAuthority(options, access)),
      serviceClusterIPRange: options.serviceClusterIpRange,
      serviceNodePortRange: options.serviceNodePortRange,
      tolerationSeconds: {
        notReady: options.defaultNotReadyTolerationSeconds,
        unreachable: options.defaultUnreachableTolerationSeconds,
      },
      ...(tokens ? { tokens } : {}),
    })
    const builtin = server.engine.resources.list().filter((resource) => resource.builtin)
    checkApiSwitches(options.runtimeConfig ?? [], new Set(builtin.map(apiVersionOf)))
    await server.ready
    const endpoint: Endpoint = {
      handler: createHandler({
        engine: server.engine,
        clock,
        log,
        issuer: server.issuer,
        limits: limitsOf(options),
        allowedOrigins: options.corsAllowedOrigins ?? [],
        checks: [storeCheck(store)],
        flags: flagsOf(options),
      }),
      authenticate: options.anonymousAuth ? server.authenticate : withoutAnonymous(server.authenticate),
      serving: access.server,
      clientCA:
        options.clientCaFile === undefined
          ? access.authority.certificate
          : await clientAuthorities(options.clientCaFile, clock.now(), warn),
    }
    const { bindAddress: host, securePort } = options
    const interrupted = untilInterrupted(io)
    listener = await listen({
      host,
      port: securePort,
      endpointFor: () => endpoint,
      clock,
      log,
      minVersion: options.tlsMinVersion,
      // Upstream: 0 selects the default.
      maxStreams: options.http2MaxStreamsPerConnection || 1000,
    })
    const address = options.advertiseAddress ?? advertisedAddress(host, networkInterfaces())
    await server.advertise({ address, port: listener.port })
    if (options.kubeconfig !== undefined) {
      await writeKubeconfig(options.kubeconfig, listener.url, access, await caForClients(options, access))
    }
    io.out(`API server ready at ${listener.url}${options.kubeconfig === undefined ? '' : `, kubeconfig ${options.kubeconfig}`}`)
    await interrupted
  } finally {
    await listener?.close(GraceOfRequests)
    await server?.close()
    await (await opening.catch(() => undefined))?.close()
  }
}

/** Time limit for requests that are open when the server stops. */
const GraceOfRequests = seconds(1)

/** Returns the CA that clients trust: --root-ca-file, otherwise the chain in --tls-cert-file, otherwise the generated authority. */
async function caForClients({ rootCaFile, tlsCertFile }: Options, access: Access): Promise<string> {
  if (rootCaFile !== undefined) return readFlag('--root-ca-file', rootCaFile, certificatePem)
  return tlsCertFile === undefined ? access.authority.certificate : access.server.certificate
}

function warningsOf({ bindAddress, authorizationMode }: Options): string[] {
  const allPermissionsText = ', and every authenticated user has all permissions, see --authorization-mode'
  const permissionsText = authorizationMode.includes('AlwaysAllow') ? allPermissionsText : ''
  return [
    ...(isLoopback(bindAddress) ? [] : [`listening on ${bindAddress}: other machines can reach this server${permissionsText}`]),
    ...(authorizationMode.includes('Node') ? ['--authorization-mode Node has no effect: there are no kubelets here'] : []),
  ]
}

/** Reads the authorities of client certificates. Warns if one is not valid now, because certificates that it signed are rejected. */
async function clientAuthorities(file: string, now: number, warn: (text: string) => void): Promise<string> {
  const bundle = await readFlag('--client-ca-file', file, certificatePem)
  for (const [certificate] of bundle.matchAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)) {
    const invalid = invalidNow(certificate, now)
    if (invalid !== undefined) warn(`--client-ca-file ${file}: ${invalid}: client certificates that it signed are rejected`)
  }
  return bundle
}

/** Returns the authority published in every namespace; undefined for a serving certificate from a file, whose authority is unknown. */
async function publishedAuthority({ rootCaFile, tlsCertFile }: Options, access: Access): Promise<string | undefined> {
  if (rootCaFile !== undefined) return readFlag('--root-ca-file', rootCaFile, certificatePem)
  return tlsCertFile === undefined ? access.authority.certificate : undefined
}

function controllersOf({ controllers, enableGarbageCollector, eventTtl }: Options, authority: string | undefined) {
  const { rootCA, ...switches } = controllers
  return {
    ...switches,
    systemObjects: true,
    garbageCollector: switches.garbageCollector && enableGarbageCollector,
    ...(eventTtl > 0 ? { eventLifetime: eventTtl } : {}),
    ...(rootCA && authority !== undefined ? { rootCA: authority } : {}),
  }
}

function limitsOf(options: Options): Limits {
  const { maxRequestsInflight, maxMutatingRequestsInflight, requestTimeout, minRequestTimeout } = options
  const priorityAndFairness = options.enablePriorityAndFairness
  if (priorityAndFairness && maxRequestsInflight + maxMutatingRequestsInflight === 0)
    throw new UsageError(
      '--max-requests-inflight and --max-mutating-requests-inflight are both 0: with --enable-priority-and-fairness no request would be served',
    )
  return { maxRequestsInflight, maxMutatingRequestsInflight, priorityAndFairness, requestTimeout, minRequestTimeout }
}

/**
 * Opens the stores in the folder of --data or --etcd-servers. Returns undefined without these flags: state is then in memory only.
 */
async function openStores(
  clock: Clock,
  log: Logger,
  encode: ObjectEncoding,
  { data, etcdServers }: Options,
): Promise<DurableStores | undefined> {
  if (data !== undefined) return openDurable(resolve(data, 'db'), { clock, log, encode })
  if (etcdServers === undefined) return undefined
  const { findState } = await import('../envtest/state-place.ts')
  const { folder, isUnsafe } = await findState(etcdServers, (ms) => sleep(clock, ms))
  return openDurable(folder, { clock, log, encode, sync: !isUnsafe })
}

/** Returns the values of all flags, including defaults, by flag name. */
const flagsOf = (options: Options): { readonly [name: string]: unknown } =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  )

/** Opens the server's certificates. A serving certificate from files replaces the generated certificate. */
async function accessOf(
  clock: Clock,
  warn: (line: string) => void,
  { data, bindAddress, tlsCertFile, tlsPrivateKeyFile }: Options,
): Promise<Access> {
  const ip = [...new Set(['127.0.0.1', '::1', ...(isWildcard(bindAddress) ? [] : [bindAddress])])]
  const access = await openAccess(clock, data === undefined ? undefined : resolve(data, 'pki'), {
    ip,
    dns: ['localhost', 'kubernetes', 'kubernetes.default.svc'],
  })
  if (tlsCertFile === undefined || tlsPrivateKeyFile === undefined) return access
  const certificate = await readFlag('--tls-cert-file', tlsCertFile, certificatePem)
  const key = await readFlag('--tls-private-key-file', tlsPrivateKeyFile, keyPem)
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)))
    throw new Error(`Cannot serve with ${tlsCertFile}: the key in ${tlsPrivateKeyFile} belongs to another certificate`)
  const invalid = invalidNow(certificate, clock.now())
  if (invalid !== undefined) warn(`--tls-cert-file ${tlsCertFile}: ${invalid}: clients will reject it`)
  return { ...access, server: { certificate, key } }
}

/** Reads and parses the file that a flag names. @throws Error naming the flag and the file */
async function readFlag<T>(flag: string, path: string, parse: (text: string) => T): Promise<T> {
  try {
    return parse(await readFile(path, 'utf8'))
  } catch (err) {
    throw new Error(`Cannot read ${flag} ${path}: ${messageOf(err)}`, { cause: err })
  }
}

/** Returns the text if its first certificate can be parsed. @throws otherwise: TLS would silently ignore an invalid certificate */
function certificatePem(text: string): string {
  const isCertificate = text.includes('-----BEGIN CERTIFICATE-----') && new X509Certificate(text).subject !== undefined
  if (!isCertificate) throw new Error('expected certificates in PEM')
  return text
}

function keyPem(text: string): string {
  const isKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) && createPrivateKey(text).type === 'private'
  if (!isKey) throw new Error('expected a private key in PEM')
  return text
}

/** Upstream: the key pair in --cert-dir is served if it exists. */
function withCertDir(options: Options): Options {
  if (options.certDir === undefined || options.tlsCertFile !== undefined) return options
  const path = resolve(options.certDir, 'apiserver')
  const pair = { tlsCertFile: `${path}.crt`, tlsPrivateKeyFile: `${path}.key` }
  return existsSync(pair.tlsCertFile) && existsSync(pair.tlsPrivateKeyFile) ? { ...options, ...pair } : options
}

const withoutAnonymous =
  (authenticate: Authenticate): Authenticate =>
  (credentials) => {
    const identity = authenticate(credentials)
    return identity.kind === 'anonymous' ? { kind: 'rejected' } : identity
  }

async function tokenOptions(options: Options): Promise<ServiceAccountTokenOptions> {
  const { data, serviceAccountIssuer: issuers = [], serviceAccountSigningKeyFile: keyFile, apiAudiences } = options
  const verificationKey = (path: string) => readFlag('--service-account-key-file', path, (text) => text)
  return {
    issuers,
    signingKey:
      keyFile === undefined
        ? await openSigningKey(data === undefined ? undefined : resolve(data, 'pki'))
        : await readFlag('--service-account-signing-key-file', keyFile, keyPem),
    verificationKeys: await Promise.all((options.serviceAccountKeyFile ?? []).map(verificationKey)),
    ...(apiAudiences ? { audiences: apiAudiences } : {}),
    extendExpiration: options.serviceAccountExtendTokenExpiration,
    ...(options.serviceAccountMaxTokenExpiration
      ? { maxExpirationSeconds: options.serviceAccountMaxTokenExpiration / 1000 }
      : {}),
    ...(options.serviceAccountJwksUri === undefined ? {} : { jwksUri: options.serviceAccountJwksUri }),
  }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.')
const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::'
