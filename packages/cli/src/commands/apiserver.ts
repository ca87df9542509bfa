import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type {
  AdmissionPlugin,
  Authenticate,
  AuthorizationMode,
  DurableStores,
  Endpoint,
  Listener,
  ServiceAccountTokenOptions,
  Store,
} from '@capstan/apiserver'
import {
  AdmissionPlugins,
  AuthorizationModes,
  createApiServer,
  createHandler,
  listen,
  memoryStore,
  openDurable,
  parseTokenFile,
} from '@capstan/apiserver'
import type { Clock } from '@capstan/kube'
import { messageOf, sleep, systemClock, systemRandom } from '@capstan/kube'
import { Command, Option } from 'commander'
import type { Access } from '../access.ts'
import { openAccess, openSigningKey, writeKubeconfig } from '../access.ts'
import { findState } from '../envtest/state-place.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted, UsageError } from '../io.ts'
import { createLogger } from '../logger.ts'
import { portOption } from '../serve-plane.ts'
import type { EnabledControllers } from './apiserver-flags.ts'
import {
  authorizationModes,
  controllers,
  disabledPlugins,
  enabledPlugins,
  flag,
  knownControllers,
  list,
  pluginSwitches,
  several,
} from './apiserver-flags.ts'

interface Options {
  bindAddress: string
  securePort: number
  tlsCertFile?: string
  tlsPrivateKeyFile?: string
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
}

/** What has nothing to do here, and is given all the same by whoever starts a kube-apiserver. */
const withoutEffect = (flags: string): Option => new Option(flags, 'taken, and without effect')

/** `capstan apiserver`: the embedded API server alone. Flags are kube-apiserver's where they mean the same. */
export const apiserverCommand = (io: Io, finish: (code: number) => void): Command =>
  new Command('apiserver')
    .description('Run the Kubernetes-compatible API server alone: no etcd, no other binaries')
    .option('--bind-address <ip>', 'address to listen on; anything but loopback warns', '127.0.0.1')
    .addOption(portOption('--secure-port <n>', 'port to listen on; 0 takes any').default(6443))
    .option('--tls-cert-file <file>', 'serving certificate chain, PEM (default: one made by an authority of its own)')
    .option('--tls-private-key-file <file>', 'key of --tls-cert-file, PEM')
    .option(
      '--client-ca-file <file>',
      'authorities that client certificates must chain to, PEM (default: the authority of its own)',
    )
    .option('--token-auth-file <file>', 'static tokens, CSV as kube-apiserver reads it: token,user,uid,"group1,group2"')
    .addOption(
      new Option('--authorization-mode <modes>', `who may do what: a list, in order, of ${AuthorizationModes.join(', ')}`)
        .argParser(authorizationModes)
        .default(['AlwaysAllow'], 'AlwaysAllow'),
    )
    .option(
      '--service-account-issuer <url>',
      'who signs tokens of service accounts; given again, others whose tokens still count',
      several,
    )
    .option('--service-account-signing-key-file <file>', 'key that signs them, PEM (default: one made, kept with --data)')
    .option(
      '--service-account-key-file <file>',
      'key or certificate of a signature that counts beside it, PEM; may be given several times',
      several,
    )
    .option('--api-audiences <names>', 'whom their tokens are for, a list (default: the issuers)', list)
    .option('--anonymous-auth [bool]', 'whether requests without credentials are looked at', flag, true)
    .option('--disable-admission-plugins <names>', `turns plugins off, of ${AdmissionPlugins.join(', ')}`, disabledPlugins)
    .option('--enable-admission-plugins <names>', 'turns plugins on that are off unless told otherwise', enabledPlugins)
    .addOption(
      new Option(
        '--controllers <names>',
        `controllers of the server: a list of ${knownControllers.join(', ')}; * is all, -NAME not that one`,
      )
        .argParser(controllers)
        .default(controllers('*'), '*'),
    )
    .option('--cert-dir <dir>', 'folder with apiserver.crt and apiserver.key, if --tls-cert-file names no others')
    .addOption(withoutEffect('--allow-privileged [bool]'))
    .option(
      '--etcd-servers <urls>',
      'an etcd of `capstan envtest`, whose data folder state is kept in, unless --data names one',
      list,
    )
    .addOption(withoutEffect('--service-cluster-ip-range <ranges>'))
    .option('--data <dir>', 'folder for state and certificates (default: memory only)')
    .option('--kubeconfig <file>', 'where to write a kubeconfig of the administrator, once the server is ready')
    .action(async (options: Options) => {
      await serve(options, io)
      finish(ExitCodes.done)
    })

async function serve(given: Options, io: Io): Promise<void> {
  const clock = systemClock
  const log = createLogger(io)
  if ((given.tlsCertFile === undefined) !== (given.tlsPrivateKeyFile === undefined)) {
    throw new UsageError('--tls-cert-file and --tls-private-key-file go together')
  }
  const options = withCertDir(given)
  const { bindAddress: host } = options
  if (!isLoopback(host) && options.authorizationMode.includes('AlwaysAllow'))
    io.err(`capstan: warning: listening on ${host}: everyone who is authenticated may do everything, see --authorization-mode`)

  const access = await accessOf(clock, options)
  const serviceAccountTokens = await tokenOptions(options)
  const { tokenAuthFile } = options
  const tokens = tokenAuthFile === undefined ? undefined : await readFlag('--token-auth-file', tokenAuthFile, parseTokenFile)
  const stores = await openStores(clock, options)
  const store: Store = stores ? await stores.store('management') : memoryStore()
  const { rootCA, ...switches } = options.controllers
  // Which authority a given certificate is of, is not known.
  const isPublished = rootCA && options.tlsCertFile === undefined
  const server = createApiServer({
    store,
    clock,
    random: systemRandom,
    log,
    authorization: options.authorizationMode,
    serviceAccountTokens,
    admissionPlugins: pluginSwitches(options.enableAdmissionPlugins, options.disableAdmissionPlugins),
    controllers: { ...switches, ...(isPublished ? { rootCA: access.authority.certificate } : {}) },
    ...(tokens ? { tokens } : {}),
  })
  let listener: Listener | undefined
  try {
    await server.ready
    const endpoint: Endpoint = {
      handler: createHandler({ engine: server.engine, clock, log, issuer: server.issuer }),
      authenticate: options.anonymousAuth ? server.authenticate : withoutAnonymous(server.authenticate),
      serving: access.server,
      clientCA:
        options.clientCaFile === undefined
          ? access.authority.certificate
          : await readFlag('--client-ca-file', options.clientCaFile, certificatePem),
    }
    listener = await listen({ host, port: options.securePort, planes: () => endpoint, clock, log })
    if (options.kubeconfig !== undefined) await writeKubeconfig(options.kubeconfig, listener.url, access)
    io.out(`API server ready at ${listener.url}${options.kubeconfig === undefined ? '' : `, kubeconfig ${options.kubeconfig}`}`)
    await untilInterrupted(io)
  } finally {
    await listener?.close()
    await server.close()
    await stores?.close()
  }
}

/** Where the state is kept; nowhere when no flag says so. */
async function openStores(clock: Clock, { data, etcdServers }: Options): Promise<DurableStores | undefined> {
  if (data !== undefined) return openDurable(resolve(data, 'db'))
  if (etcdServers === undefined) return undefined
  const { folder, isUnsafe } = await findState(etcdServers, (ms) => sleep(clock, ms))
  return openDurable(folder, { sync: !isUnsafe })
}

/** The server's own authority; a serving certificate from files takes the place of the one it would make. */
async function accessOf(clock: Clock, { data, bindAddress, tlsCertFile, tlsPrivateKeyFile }: Options): Promise<Access> {
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
  return { ...access, server: { certificate, key } }
}

/** The file that a flag names, understood. @throws Error naming both */
async function readFlag<T>(flag: string, path: string, understand: (text: string) => T): Promise<T> {
  try {
    return understand(await readFile(path, 'utf8'))
  } catch (err) {
    throw new Error(`Cannot read ${flag} ${path}: ${messageOf(err)}`, { cause: err })
  }
}

/** The text itself, once it is known to begin with a certificate: TLS would ignore what it cannot read. */
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

/** Upstream: the pair in --cert-dir is what is served, when it is there. */
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
    return identity.kind === 'anonymous' ? { kind: 'refused' } : identity
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
  }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.')
const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::'
