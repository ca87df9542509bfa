import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { resolve } from 'node:path'
import type { Authenticate, DurableStores, Endpoint, ObjectEncoding, Limits, Listener, Store } from '@capstan/apiserver'
import type { ApiServer, ServiceAccountTokenOptions } from '@capstan/kubernetes-kinds'
import { createHandler, packedObjects, listen, memoryStore, openDurable, parseTokenFile, storeCheck } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import type { Clock, Logger } from '@capstan/kube'
import { apiVersionOf, messageOf, seconds, sleep, systemClock, systemRandom } from '@capstan/kube'
import { invalidNow } from '@capstan/kube/node'
import { Command } from 'commander'
import type { Access } from '../access.ts'
import { openAccess, openSigningKey, writeKubeconfig } from '../access.ts'
import { advertisedAddress } from '../advertised-address.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted, UsageError } from '../io.ts'
import { createLogger } from '../logger.ts'
import { addApiserverOptions, type ApiserverOptions } from './apiserver-options.ts'
import { checkApiSwitches, pluginSwitches } from './apiserver-flags.ts'
import { upstreamFlags } from './upstream-flags.ts'

/** `capstan apiserver`: the embedded API server alone. It has the flags of kube-apiserver where their meaning is the same. */
export function apiserverCommand(io: Io, finish: (code: number) => void): Command {
  const ignoredFlags: string[] = []
  const command = addApiserverOptions(
    new Command('apiserver').description('Run the Kubernetes-compatible API server alone: no etcd, no other binaries'),
  )
    .addHelpText(
      'after',
      '\nOther flags of kube-apiserver v1.36 are accepted with a warning if they have no effect here, and rejected otherwise.',
    )
    .action(async (options: ApiserverOptions) => {
      for (const line of ignoredFlags) io.err(line)
      await serve(options, io)
      finish(ExitCodes.done)
    })
  for (const option of upstreamFlags((flag, reason) => ignoredFlags.push(`capstan: warning: ${flag} has no effect: ${reason}`)))
    command.addOption(option)
  return command
}

async function serve(flags: ApiserverOptions, io: Io): Promise<void> {
  const clock = systemClock
  const log = createLogger(io, flags.v)
  if ((flags.tlsCertFile === undefined) !== (flags.tlsPrivateKeyFile === undefined)) {
    throw new UsageError('--tls-cert-file and --tls-private-key-file must be given together')
  }
  const options = withCertDir(flags)
  for (const line of warningsOf(options)) io.err(`capstan: warning: ${line}`)

  const warn = (line: string) => io.err(`capstan: warning: ${line}`)

  // Objects are stored as JSON text, which takes less memory. Clients are in other processes, and those that request JSON get this text.
  const encode = packedObjects()
  // Stores are opened while the certificates are made. A failure is reported where the promise is awaited.
  const failed = new AbortController()
  const opening = openStores(clock, log, encode, options, failed.signal)
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
      // As in upstream, 0 selects a default; in upstream that is 100.
      maxStreams: options.http2MaxStreamsPerConnection || 1000,
    })
    const address = options.advertiseAddress ?? advertisedAddress(host, networkInterfaces())
    await server.advertise({ address, port: listener.port })
    if (options.kubeconfig !== undefined) {
      await writeKubeconfig(options.kubeconfig, listener.url, access, await caForClients(options, access))
    }
    io.out(`API server ready at ${listener.url}${options.kubeconfig === undefined ? '' : `, kubeconfig ${options.kubeconfig}`}`)
    await interrupted
  } catch (err) {
    // Ends the wait for --etcd-servers. Otherwise the error would be reported only after that wait.
    failed.abort(err)
    throw err
  } finally {
    await listener?.close(GraceOfRequests)
    await server?.close()
    await (await opening.catch(() => undefined))?.close()
  }
}

/** Time limit for requests that are open when the server stops. */
const GraceOfRequests = seconds(1)

/** Returns the CA that clients trust: --root-ca-file, otherwise the chain in --tls-cert-file, otherwise the generated authority. */
async function caForClients({ rootCaFile, tlsCertFile }: ApiserverOptions, access: Access): Promise<string> {
  if (rootCaFile !== undefined) return readFlag('--root-ca-file', rootCaFile, certificatePem)
  return tlsCertFile === undefined ? access.authority.certificate : access.server.certificate
}

function warningsOf({ bindAddress, authorizationMode }: ApiserverOptions): string[] {
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

/**
 * Returns the authority to publish in every namespace: --root-ca-file, otherwise the generated authority. Returns undefined if only
 * --tls-cert-file is given, because the authority that issued that certificate is unknown.
 */
async function publishedAuthority({ rootCaFile, tlsCertFile }: ApiserverOptions, access: Access): Promise<string | undefined> {
  if (rootCaFile !== undefined) return readFlag('--root-ca-file', rootCaFile, certificatePem)
  return tlsCertFile === undefined ? access.authority.certificate : undefined
}

function controllersOf({ controllers, enableGarbageCollector, eventTtl }: ApiserverOptions, authority: string | undefined) {
  const { rootCA, ...switches } = controllers
  return {
    ...switches,
    systemObjects: true,
    garbageCollector: switches.garbageCollector && enableGarbageCollector,
    ...(eventTtl > 0 ? { eventLifetime: eventTtl } : {}),
    ...(rootCA && authority !== undefined ? { rootCA: authority } : {}),
  }
}

function limitsOf(options: ApiserverOptions): Limits {
  const { maxRequestsInflight, maxMutatingRequestsInflight, requestTimeout, minRequestTimeout } = options
  const priorityAndFairness = options.enablePriorityAndFairness
  if (priorityAndFairness && maxRequestsInflight + maxMutatingRequestsInflight === 0)
    throw new UsageError(
      '--max-requests-inflight and --max-mutating-requests-inflight are both 0: with --enable-priority-and-fairness no request would be served',
    )
  return { maxRequestsInflight, maxMutatingRequestsInflight, priorityAndFairness, requestTimeout, minRequestTimeout }
}

/**
 * Opens the stores in the folder --data, or in the data folder of the etcd launcher (`capstan envtest`) at --etcd-servers. Returns
 * undefined without these flags: state is then in memory only.
 * `signal` ends the wait for --etcd-servers.
 */
async function openStores(
  clock: Clock,
  log: Logger,
  encode: ObjectEncoding,
  { data, etcdServers }: ApiserverOptions,
  signal: AbortSignal,
): Promise<DurableStores | undefined> {
  if (data !== undefined) return openDurable(resolve(data, 'db'), { clock, log, encode })
  if (etcdServers === undefined) return undefined
  const { findState } = await import('../envtest/state-place.ts')
  const { folder, isUnsafe } = await findState(etcdServers, (ms) => sleep(clock, ms, signal), signal)
  return openDurable(folder, { clock, log, encode, sync: !isUnsafe })
}

/** Returns the values of the flags that were given or have a default, by flag name. */
const flagsOf = (options: ApiserverOptions): { readonly [name: string]: unknown } =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  )

/** Opens the server's certificates. A serving certificate from files replaces the generated certificate. */
async function accessOf(
  clock: Clock,
  warn: (line: string) => void,
  { data, bindAddress, tlsCertFile, tlsPrivateKeyFile }: ApiserverOptions,
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

/** Returns the text if its first certificate can be parsed. @throws Error otherwise, because TLS silently ignores an invalid authority */
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

/** Returns the options with the key pair in --cert-dir, as upstream uses it, if the pair exists and --tls-cert-file is not given. */
function withCertDir(options: ApiserverOptions): ApiserverOptions {
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

async function tokenOptions(options: ApiserverOptions): Promise<ServiceAccountTokenOptions> {
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
