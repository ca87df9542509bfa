/**
 * Interface of the API servers of the suites: `startRealApiServer` starts kube-apiserver with etcd and kube-controller-manager,
 * `startCapstanApiServer` starts `capstan apiserver`. Both get the certificates, tokens, keys and flags that this file makes.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, createClient, systemClock, systemRandom } from '@capstan/kube'
import {
  type CertifiedKey,
  type ClusterAccess,
  formatKubeconfig,
  httpsTransport,
  issueCertificate,
  kubeconfigFor,
  makeAuthority,
} from '@capstan/kube/node'
import { answers, type Program, type Programs, ready } from './programs.ts'

/** A user with a token, in addition to the administrator. */
export interface ApiServerUser {
  readonly name: string
  readonly groups?: readonly string[]
}

export interface ApiServerOptions {
  /** Flags of kube-apiserver, `--name=value`. They override default flags of the same name. */
  readonly flags?: readonly string[]
  /** Users in addition to the administrator. By default, RBAC authorizes their requests. */
  readonly users?: readonly ApiServerUser[]
  /**
   * Whether the server stores its state durably, and acknowledges writes only after fsync. Default: false. When it is
   * false, etcd skips fsync, and `capstan apiserver` keeps its state in memory.
   */
  readonly durable?: boolean
  /** Called with progress messages while the server starts. */
  readonly progress?: (line: string) => void
}

/** A running API server with credentials and clients. */
export interface RunningApiServer extends AsyncDisposable {
  readonly name: 'capstan' | 'kubernetes'
  readonly url: string
  /** Path of the administrator's kubeconfig, with a client certificate. */
  readonly kubeconfig: string
  /** Bearer token of the administrator. */
  readonly token: string
  /** Certificate of `authority`, PEM. */
  readonly ca: string
  /** Certificate authority that signs the certificates of the server, of webhooks and of clients. */
  readonly authority: CertifiedKey
  /** Temporary folder, deleted when the server is closed. */
  readonly folder: string
  /** Processes of the server, including those that a restart has killed. A process of the API server is named `apiserver`. */
  readonly programs: readonly Program[]
  /** Seconds from the start of the first process until the API server is ready: `/readyz` returns 200. */
  readonly readyAfter: number
  /** Writes a kubeconfig for one of the `users`. @returns its path */
  kubeconfigOf(user: string): string
  /**
   * Kills the API server with SIGKILL and starts it again at the same address with the same state. Resolves when it is ready.
   * `capstan apiserver` must be started with `durable`.
   */
  restart(): Promise<void>
  /**
   * Like `restart`, but kills and starts all processes of the server: etcd and kube-controller-manager, too. Resolves when all are ready.
   */
  restartAll(): Promise<void>
  /** Returns a client of the administrator, or of one of the `users`. It is closed with the server. */
  client(user?: string): Client
}

/** Credentials that are created before any process of the server starts. */
export interface Credentials {
  readonly folder: string
  readonly authority: CertifiedKey
  readonly admin: CertifiedKey
  /** Bearer tokens by user name. */
  readonly tokens: ReadonlyMap<string, string>
  /** Paths of files below `folder`, for flags of the server. */
  readonly files: {
    readonly ca: string
    readonly serving: string
    readonly servingKey: string
    readonly signingKey: string
    readonly verificationKey: string
    readonly tokens: string
  }
}

const adminName = 'kubernetes-admin'

/** Creates the certificates, keys and tokens of one server. Writes, below `folder`, the files that the server reads. */
export async function makeCredentials(folder: string, users: readonly ApiServerUser[] = []): Promise<Credentials> {
  const pki = join(folder, 'pki')
  mkdirSync(pki, { mode: 0o700 })
  const write = (name: string, text: string): string => {
    writeFileSync(join(pki, name), text, { mode: 0o600 })
    return join(pki, name)
  }
  const clock = systemClock
  const authority = await makeAuthority(clock, { commonName: 'interop-ca' })
  const admin = await issueCertificate(authority, clock, {
    commonName: adminName,
    organizations: ['system:masters'],
    usages: ['client'],
  })
  const serving = await issueCertificate(authority, clock, {
    commonName: 'kube-apiserver',
    usages: ['server'],
    ipAddresses: ['127.0.0.1', '10.0.0.1'],
    dnsNames: ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
  })
  const signing = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const allUsers = [{ name: adminName, groups: ['system:masters'] }, ...users]
  const tokens = new Map(allUsers.map(({ name }) => [name, randomUUID()]))
  const rows = allUsers.map(
    ({ name, groups = [] }, i) => `${tokens.get(name)},${name},uid-${i}${groups.length > 0 ? `,"${groups.join(',')}"` : ''}
`,
  )
  return {
    folder,
    authority,
    admin,
    tokens,
    files: {
      ca: write('ca.crt', authority.certificate),
      serving: write('apiserver.crt', serving.certificate),
      servingKey: write('apiserver.key', serving.key),
      signingKey: write('sa.key', signing.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()),
      verificationKey: write('sa.pub', signing.publicKey.export({ format: 'pem', type: 'spki' }).toString()),
      tokens: write('tokens.csv', rows.join('')),
    },
  }
}

/** Returns the flags that both servers get: those of `given`, and defaults for other flags. */
export function serverFlags({ files }: Credentials, port: number, given: readonly string[] = []): string[] {
  const defaults = [
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${files.serving}`,
    `--tls-private-key-file=${files.servingKey}`,
    `--client-ca-file=${files.ca}`,
    `--token-auth-file=${files.tokens}`,
    '--authorization-mode=RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-signing-key-file=${files.signingKey}`,
    `--service-account-key-file=${files.verificationKey}`,
    '--service-cluster-ip-range=10.0.0.0/16',
  ]
  return [...withoutGiven(defaults, given), ...given]
}

/** Returns the flags of `defaults` that `given` does not override. */
export function withoutGiven(defaults: readonly string[], given: readonly string[]): string[] {
  const givenNames = new Set(given.map(flagName))
  return defaults.filter((flag) => !givenNames.has(flagName(flag)))
}

const flagName = (flag: string): string => flag.split('=', 1)[0]!

/** An API server that `serve` starts. */
export interface ServeOptions extends Pick<RunningApiServer, 'name' | 'url'> {
  /** Start time of the first process, from `performance.now()`. */
  readonly since: number
  /** Whether a new process can use the stored state of this server. */
  readonly isDurable: boolean
  /** Starts the process of the API server. */
  readonly start: () => Program
}

/** Starts an API server. Resolves when it is ready. Disposing of the result stops all `programs`. */
export async function serve(
  programs: Programs,
  credentials: Credentials,
  { name, url, since, isDurable, start }: ServeOptions,
): Promise<RunningApiServer> {
  const { close, ...access } = openAccess(credentials, url)
  const authorization = { headers: { authorization: `Bearer ${access.token}` } }
  const isReady = () => answers(`${url}/readyz`, { ca: access.ca, ...authorization })
  let server = start()
  await ready(server, isReady)
  const restart = async () => {
    if (!isDurable) throw new Error('Only a durable server can be restarted: set the option durable')
    await server.kill()
    server = start()
    await ready(server, isReady)
  }
  return {
    name,
    url,
    ...access,
    folder: programs.folder,
    programs: programs.all,
    readyAfter: (performance.now() - since) / 1000,
    restart,
    restartAll: restart,
    async [Symbol.asyncDispose]() {
      close()
      await programs[Symbol.asyncDispose]()
    },
  }
}

/** Returns kubeconfigs, tokens and clients for the server at `url`. */
function openAccess(
  { folder, authority, admin, tokens }: Credentials,
  url: string,
): Pick<RunningApiServer, 'kubeconfig' | 'token' | 'ca' | 'authority' | 'kubeconfigOf' | 'client'> & { close(): void } {
  const ca = authority.certificate
  const accessOf = (user: string): ClusterAccess => {
    const token = tokens.get(user)
    if (token === undefined) throw new Error(`There is no user ${user}: the users are ${[...tokens.keys()].join(', ')}`)
    return { server: url, ca, token }
  }
  const write = (name: string, access: ClusterAccess): string => {
    const path = join(folder, `${name}.kubeconfig`)
    writeFileSync(path, formatKubeconfig(kubeconfigFor(name, access)), { mode: 0o600 })
    return path
  }
  const adminAccess: ClusterAccess = { server: url, ca, certificate: admin.certificate, key: admin.key }
  const openTransports: { close(): void }[] = []
  return {
    kubeconfig: write('admin', adminAccess),
    token: tokens.get(adminName)!,
    ca,
    authority,
    kubeconfigOf: (user) => write(user, accessOf(user)),
    client(user) {
      const transport = httpsTransport(user === undefined ? adminAccess : accessOf(user), {
        clock: systemClock,
        random: systemRandom,
        userAgent: 'interop',
      })
      openTransports.push(transport)
      return createClient(transport)
    },
    close() {
      for (const transport of openTransports) transport.close()
    },
  }
}
