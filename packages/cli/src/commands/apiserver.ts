import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AuthorizationMode, Endpoint, ServiceAccountTokenOptions, Store } from '@capstan/apiserver'
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
import { systemClock, systemRandom } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
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
  const tokens = options.tokenAuthFile ? parseTokenFile(await readFile(options.tokenAuthFile, 'utf8')) : undefined
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
  try {
    await server.ready
    const endpoint: Endpoint = {
      handler: createHandler({ engine: server.engine, clock, log, issuer: server.issuer }),
      authenticate: server.authenticate,
      serving: access.server,
      clientCA: options.clientCaFile ? await readFile(options.clientCaFile, 'utf8') : access.authority.certificate,
    }
    const listener = await listen({ host, port: options.securePort, planes: () => endpoint, clock, log })
    if (options.kubeconfig !== undefined) await writeKubeconfig(options.kubeconfig, listener.url, access)
    io.out(`API server ready at ${listener.url}${options.kubeconfig === undefined ? '' : `, kubeconfig ${options.kubeconfig}`}`)
    await untilInterrupted(io)
    await listener.close()
  } finally {
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
  const given: CertifiedKey = { certificate: await readFile(tlsCertFile, 'utf8'), key: await readFile(tlsPrivateKeyFile, 'utf8') }
  return { ...access, server: given }
}

const several = (value: string, before: string[] = []): string[] => [...before, value]

async function tokenOptions(options: Options): Promise<ServiceAccountTokenOptions> {
  const { data, serviceAccountIssuer: issuers = [], serviceAccountSigningKeyFile: keyFile, apiAudiences } = options
  const read = (path: string) => readFile(path, 'utf8')
  return {
    issuers,
    signingKey:
      keyFile === undefined ? await openSigningKey(data === undefined ? undefined : resolve(data, 'pki')) : await read(keyFile),
    verificationKeys: await Promise.all((options.serviceAccountKeyFile ?? []).map(read)),
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
