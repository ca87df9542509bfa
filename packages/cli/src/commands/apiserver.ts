import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AuthorizationMode, Endpoint, Store } from '@capstan/apiserver'
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
import { openAccess, writeKubeconfig } from '../access.ts'
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

  const stores = data === undefined ? undefined : await openDurable(resolve(data, 'db'))
  const store: Store = stores ? await stores.store('management') : memoryStore()
  const server = createApiServer({
    store,
    clock,
    random: systemRandom,
    log,
    authorization: options.authorizationMode,
    ...(options.tokenAuthFile ? { tokens: parseTokenFile(await readFile(options.tokenAuthFile, 'utf8')) } : {}),
  })
  try {
    await server.ready
    const access = await accessOf(clock, options)
    const endpoint: Endpoint = {
      handler: createHandler({ engine: server.engine, clock, log }),
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
