/**
 * Reads kubeconfig files, creates and formats kubeconfigs, and resolves a context to the URL and credentials of its cluster. Supports
 * certificates, tokens and basic authentication; credential plug-ins (`exec`, `auth-provider`), impersonation and proxies are rejected with
 * an error that names them.
 * Upstream: k8s.io/client-go/tools/clientcmd, v0.36.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, dirname, resolve } from 'node:path'
import { isRecord } from '../json.ts'

export interface Kubeconfig {
  apiVersion: 'v1'
  kind: 'Config'
  clusters: { name: string; cluster: KubeconfigCluster }[]
  users: { name: string; user: KubeconfigUser }[]
  contexts: { name: string; context: { cluster: string; user: string; namespace?: string } }[]
  'current-context': string
}

export interface KubeconfigCluster {
  server: string
  'certificate-authority'?: string
  'certificate-authority-data'?: string
  'insecure-skip-tls-verify'?: boolean
  'tls-server-name'?: string
  'proxy-url'?: string
}

export interface KubeconfigUser {
  token?: string
  tokenFile?: string
  'client-certificate'?: string
  'client-certificate-data'?: string
  'client-key'?: string
  'client-key-data'?: string
  username?: string
  password?: string
  exec?: unknown
  'auth-provider'?: unknown
  as?: unknown
  'as-uid'?: unknown
  'as-groups'?: unknown
  'as-user-extra'?: unknown
}

/** URL and credentials for one API server. Contains secrets. */
export interface ClusterAccess {
  /** URL of the server, such as https://127.0.0.1:6443. Its path, if any, is put in front of the path of each request. */
  readonly server: string
  /** PEM bundle of trusted certificate authorities. Default: those of `trustSystem`, which are usually those of the operating system. */
  readonly ca?: string
  /** Name that the server's certificate must have, if it is not the host of `server`. */
  readonly servername?: string
  /** Client certificate and key, PEM. */
  readonly certificate?: string
  readonly key?: string
  readonly token?: string
  /** File with the token. A client reads the file again after a minute, because tokens are rotated. */
  readonly tokenFile?: string
  readonly basic?: { readonly username: string; readonly password: string }
  /** True to skip verification of the server's certificate. `resolveKubeconfig` sets it only with `allowInsecure`. */
  readonly insecure?: boolean
  /** Namespace of the context. */
  readonly namespace?: string
}

export interface ResolveOptions {
  /** Name of the context; the current context of the file when absent. */
  context?: string
  /** Base folder of relative paths in the file; the current folder when absent. */
  folder?: string
  /** Whether to accept `insecure-skip-tls-verify`. Default false. */
  allowInsecure?: boolean
}

/** Creates a kubeconfig with one cluster, one user and one context, all named `name`. */
export function kubeconfigFor(name: string, access: ClusterAccess): Kubeconfig {
  const cluster: KubeconfigCluster = { server: access.server }
  if (access.ca !== undefined) cluster['certificate-authority-data'] = encode(access.ca)
  if (access.servername !== undefined) cluster['tls-server-name'] = access.servername
  if (access.insecure) cluster['insecure-skip-tls-verify'] = true
  const user: KubeconfigUser = {}
  if (access.certificate !== undefined) user['client-certificate-data'] = encode(access.certificate)
  if (access.key !== undefined) user['client-key-data'] = encode(access.key)
  if (access.token !== undefined) user.token = access.token
  if (access.tokenFile !== undefined) user.tokenFile = access.tokenFile
  if (access.basic !== undefined) Object.assign(user, access.basic)
  const namespace = access.namespace === undefined ? {} : { namespace: access.namespace }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...namespace } }],
    'current-context': name,
  }
}

/** Returns the text of a kubeconfig file, in YAML. */
export const formatKubeconfig = (config: Kubeconfig): string => `${yamlLines(config).join('\n')}\n`

/** Formats a value as lines of YAML, without a library, so that a server need not load one when it starts. */
function yamlLines(value: object): string[] {
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([key, member]) => {
    if (member === undefined) return []
    const head = isList ? '-' : `${scalarText(key)}:`
    if (typeof member !== 'object' || member === null) return [`${head} ${scalarText(member)}`]
    const [first, ...others] = yamlLines(member)
    if (first === undefined) return [`${head} ${Array.isArray(member) ? '[]' : '{}'}`]
    return isList
      ? [`- ${first}`, ...others.map((line) => `  ${line}`)]
      : [head, ...[first, ...others].map((line) => `  ${line}`)]
  })
}

/** Formats a scalar as JSON, which is valid YAML. Omits the quotes of simple text, such as names and URLs, that YAML reads as a string. */
const scalarText = (value: unknown): string =>
  typeof value === 'string' && /^[A-Za-z][\w./+=@-]*(:[\w./+=@-]+)*$/.test(value) && !notStrings.test(value)
    ? value
    : JSON.stringify(value)
const notStrings = /^(y|n|yes|no|on|off|true|false|null|inf|nan)$/i

/**
 * Parses the text of a kubeconfig, in YAML or JSON.
 *
 * @throws Error that names the problem without quoting the text, which contains secrets
 */
export function parseKubeconfig(text: string): Kubeconfig {
  let value: unknown
  try {
    const { parse } = createRequire(import.meta.url)('yaml') as typeof import('yaml')
    // `logLevel`: prevents warnings, which would quote the text. `uniqueKeys`: as upstream, the last of several equal keys takes effect; the
    // parser's check for duplicates is also slow, because it compares each key with all others.
    value = parse(text, { prettyErrors: false, logLevel: 'error', uniqueKeys: false })
  } catch (err) {
    const line = (err as { linePos?: { line: number }[] }).linePos?.[0]?.line
    throw new Error(`Cannot read kubeconfig: it is not YAML${line === undefined ? '' : ` (line ${line})`}`)
  }
  if (!isRecord(value)) throw new Error('Cannot read kubeconfig: expected a mapping with clusters, users and contexts')
  if (value.kind !== undefined && value.kind !== 'Config') throw new Error('Cannot read kubeconfig: kind must be Config')
  const namedEntries = <Key extends string, T>(list: 'clusters' | 'users' | 'contexts', member: Key) => {
    const entries = value[list] ?? []
    if (!Array.isArray(entries)) throw new Error(`Cannot read kubeconfig: ${list} must be a list`)
    return entries.map((entry: unknown, index) => {
      if (!isRecord(entry) || typeof entry.name !== 'string')
        throw new Error(`Cannot read kubeconfig: ${list}[${index}].name is missing`)
      return { name: entry.name, [member]: (isRecord(entry[member]) ? entry[member] : {}) as T } as { name: string } & {
        [K in Key]: T
      }
    })
  }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: namedEntries<'cluster', KubeconfigCluster>('clusters', 'cluster'),
    users: namedEntries<'user', KubeconfigUser>('users', 'user'),
    contexts: namedEntries<'context', { cluster: string; user: string; namespace?: string }>('contexts', 'context'),
    'current-context': typeof value['current-context'] === 'string' ? value['current-context'] : '',
  }
}

/** Splits the value of `$KUBECONFIG` into paths. Like upstream, ignores empty paths. */
export const kubeconfigPaths = (variable: string | undefined): string[] =>
  (variable ?? '').split(delimiter).filter((path) => path !== '')

/**
 * Reads kubeconfig files and resolves the context. Several files are merged as in client-go: the first entry of a name and the first
 * current-context take effect. Missing files are ignored unless all files are missing.
 */
export async function loadKubeconfig(
  path: string | readonly string[],
  options: Omit<ResolveOptions, 'folder'> = {},
): Promise<ClusterAccess> {
  const paths = typeof path === 'string' ? [path] : path
  const loaded = await Promise.all(paths.map(readKubeconfig))
  const configs = loaded.filter((config) => config !== undefined)
  const names = paths.join(', ')
  if (configs.length === 0) throw new Error(`Cannot read kubeconfig ${names}: there is no such file`)
  try {
    return await resolveKubeconfig(mergeKubeconfigs(configs), options)
  } catch (err) {
    throw new Error(`${names}: ${(err as Error).message}`, { cause: err })
  }
}

/** Returns the kubeconfig with absolute paths; undefined when there is no such file. */
async function readKubeconfig(path: string): Promise<Kubeconfig | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (err) {
    const { code, message } = err as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new Error(`Cannot read kubeconfig ${path}: ${message}`, { cause: err })
  }
  try {
    return withAbsolutePaths(parseKubeconfig(text), dirname(resolve(path)))
  } catch (err) {
    throw new Error(`${path}: ${(err as Error).message}`, { cause: err })
  }
}

function withAbsolutePaths(config: Kubeconfig, folder: string): Kubeconfig {
  const absolute = <T extends object>(fields: T, names: readonly (keyof T)[]): T => {
    const paths = names.flatMap((name) => {
      const path = fields[name]
      return typeof path === 'string' && path !== '' ? [[name, resolve(folder, path)]] : []
    })
    return { ...fields, ...Object.fromEntries(paths) }
  }
  return {
    ...config,
    clusters: config.clusters.map(({ name, cluster }) => ({ name, cluster: absolute(cluster, ['certificate-authority']) })),
    users: config.users.map(({ name, user }) => ({
      name,
      user: absolute(user, ['client-certificate', 'client-key', 'tokenFile']),
    })),
  }
}

/** Concatenates the entries of all files. A look-up finds the first entry of a name. */
const mergeKubeconfigs = (configs: readonly Kubeconfig[]): Kubeconfig => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: configs.flatMap(({ clusters }) => clusters),
  users: configs.flatMap(({ users }) => users),
  contexts: configs.flatMap(({ contexts }) => contexts),
  'current-context': configs.map((config) => config['current-context']).find((name) => name !== '') ?? '',
})

/**
 * Resolves a context to the URL and credentials of its cluster. Reads certificates and keys from their files, unless the kubeconfig contains
 * them, but does not read the token file.
 */
export async function resolveKubeconfig(config: Kubeconfig, options: ResolveOptions = {}): Promise<ClusterAccess> {
  const contextName = options.context ?? config['current-context']
  if (contextName === '') throw new Error('Cannot use kubeconfig: it has no current-context')
  const { context } = find(config.contexts, contextName, 'context')
  if (typeof context.cluster !== 'string') throw new Error(`Cannot use kubeconfig: context "${contextName}" names no cluster`)
  const { cluster } = find(config.clusters, context.cluster, 'cluster')
  const { user } = context.user ? find(config.users, context.user, 'user') : { user: {} as KubeconfigUser }
  rejectIf(
    user.exec,
    `user "${context.user}" uses an exec credential plug-in, which is not supported: give a token or a client certificate`,
  )
  rejectIf(
    user['auth-provider'],
    `user "${context.user}" uses an auth-provider, which is not supported: give a token or a client certificate`,
  )
  // Without an error, requests would have the permissions of the user that impersonates.
  for (const field of ['as', 'as-uid', 'as-groups', 'as-user-extra'] as const) {
    rejectIf(user[field], `user "${context.user}" uses impersonation (${field}), which is not supported`)
  }
  rejectIf(cluster['proxy-url'], `cluster "${context.cluster}" uses proxy-url, which is not supported`)
  rejectIf(
    cluster['insecure-skip-tls-verify'] && !options.allowInsecure,
    `cluster "${context.cluster}" has insecure-skip-tls-verify: the server would not be verified. Give certificate-authority-data instead`,
  )
  if (typeof cluster.server !== 'string' || !URL.canParse(cluster.server))
    throw new Error(`Cannot use kubeconfig: cluster "${context.cluster}" has no server URL`)
  if (new URL(cluster.server).protocol !== 'https:')
    throw new Error(`Cannot use kubeconfig: the server of cluster "${context.cluster}" must be an https URL`)

  const readPEM = async (data: string | undefined, file: string | undefined) => {
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8')
    if (typeof file !== 'string') return undefined
    return readFile(resolve(options.folder ?? '.', file), 'utf8')
  }
  const ca = await readPEM(cluster['certificate-authority-data'], cluster['certificate-authority'])
  const certificate = await readPEM(user['client-certificate-data'], user['client-certificate'])
  const key = await readPEM(user['client-key-data'], user['client-key'])
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(ca === undefined ? {} : { ca }),
    ...(cluster['tls-server-name'] ? { servername: cluster['tls-server-name'] } : {}),
    ...(certificate === undefined ? {} : { certificate }),
    ...(key === undefined ? {} : { key }),
    // Upstream: a token file takes precedence over an inline token.
    ...(user.tokenFile ? { tokenFile: resolve(options.folder ?? '.', user.tokenFile) } : {}),
    ...(!user.tokenFile && user.token !== undefined ? { token: user.token } : {}),
    ...(user.username ? { basic: { username: user.username, password: user.password ?? '' } } : {}),
    ...(cluster['insecure-skip-tls-verify'] ? { insecure: true } : {}),
    ...(context.namespace ? { namespace: context.namespace } : {}),
  }
}

function find<T extends { name: string }>(list: readonly T[], name: string, noun: string): T {
  const named = list.find((entry) => entry.name === name)
  if (!named) throw new Error(`Cannot use kubeconfig: ${noun} "${name}" does not exist in it`)
  return named
}

function rejectIf(condition: unknown, problem: string): void {
  if (condition) throw new Error(`Cannot use kubeconfig: ${problem}`)
}

const encode = (text: string): string => Buffer.from(text, 'utf8').toString('base64')
