import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AuthorizationMode, Endpoint, Listener, ServiceAccountTokenOptions, Store } from '@capstan/apiserver'
import {
  AuthorizationModes,
  createApiServer,
  createHandler,
  listen,
  memoryStore,
  openDurable,
  parseTokenFile,
} from '@capstan/apiserver'
import type { Clock } from '@capstan/kube'
import { messageOf, systemClock, systemRandom } from '@capstan/kube'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Access } from '../access.ts'
import { openAccess, openSigningKey, writeKubeconfig } from '../access.ts'
import type { Io } from '../io.ts'
import { ExitCodes, untilInterrupted, UsageError } from '../io.ts'
import { createLogger } from '../logger.ts'
import { portOption } from '../serve-plane.ts'

interface Options {
  bindAddress: string
  securePort: number
  tlsCertFile?: string
  tlsPrivateKeyFile?: string
  clientCaFile?: string
  tokenAuthFile?: string
  data?: string
  kubeconfig?: string
  authorizationMode: readonly AuthorizationMode[]
  serviceAccountIssuer?: string[]
  serviceAccountSigningKeyFile?: string
  serviceAccountKeyFile?: string[]
  apiAudiences?: string[]
  serviceAccounts: boolean
  rootCa: boolean
}

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
    .option('--api-audiences <names>', 'whom their tokens are for, a list (default: the issuers)', (text) => text.split(','))
    .option('--no-service-accounts', 'do not create the service account `default` in every namespace')
    .option('--no-root-ca', 'do not publish the authority as ConfigMap kube-root-ca.crt in every namespace')
    .option('--data <dir>', 'folder for state and certificates (default: memory only)')
    .option('--kubeconfig <file>', 'where to write a kubeconfig of the administrator, once the server is ready')
    .action(async (options: Options) => {
      await serve(options, io)
      finish(ExitCodes.done)
    })

async function serve(options: Options, io: Io): Promise<void> {
  const clock = systemClock
  const log = createLogger(io)
  const { bindAddress: host, data } = options
  if ((options.tlsCertFile === undefined) !== (options.tlsPrivateKeyFile === undefined)) {
    throw new UsageError('--tls-cert-file and --tls-private-key-file go together')
  }
  if (!isLoopback(host) && options.authorizationMode.includes('AlwaysAllow'))
    io.err(`capstan: warning: listening on ${host}: everyone who is authenticated may do everything, see --authorization-mode`)

  const access = await accessOf(clock, options)
  const serviceAccountTokens = await tokenOptions(options)
  const { tokenAuthFile } = options
  const tokens = tokenAuthFile === undefined ? undefined : await readFlag('--token-auth-file', tokenAuthFile, parseTokenFile)
  const stores = data === undefined ? undefined : await openDurable(resolve(data, 'db'))
  const store: Store = stores ? await stores.store('management') : memoryStore()
  const server = createApiServer({
    store,
    clock,
    random: systemRandom,
    log,
    authorization: options.authorizationMode,
    serviceAccountTokens,
    controllers: {
      serviceAccounts: options.serviceAccounts,
      // Which authority a given certificate is of, is not known.
      ...(options.rootCa && options.tlsCertFile === undefined ? { rootCA: access.authority.certificate } : {}),
    },
    ...(tokens ? { tokens } : {}),
  })
  let listener: Listener | undefined
  try {
    await server.ready
    const endpoint: Endpoint = {
      handler: createHandler({ engine: server.engine, clock, log, issuer: server.issuer }),
      authenticate: server.authenticate,
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

const several = (value: string, before: string[] = []): string[] => [...before, value]

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

/** Upstream: --authorization-mode. Each mode at most once; those that there are upstream and not here are refused by name. */
function authorizationModes(text: string): AuthorizationMode[] {
  const modes = text.split(',')
  return modes.map((mode, index) => {
    const known = AuthorizationModes.find((one) => one === mode)
    if (modes.indexOf(mode) !== index)
      throw new InvalidArgumentError(`authorization-mode ${JSON.stringify(mode)} has mode specified more than once.`)
    if (known) return known
    throw new InvalidArgumentError(
      ['ABAC', 'Webhook', 'Node'].includes(mode)
        ? `${mode} is not supported; use ${AuthorizationModes.join(', ')}.`
        : `authorization-mode ${JSON.stringify(mode)} is not a valid mode.`,
    )
  })
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.')
const isWildcard = (host: string): boolean => host === '0.0.0.0' || host === '::'
