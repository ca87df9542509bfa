/**
 * The generic API server: state, verbs, admission, custom resources, without a socket. It contains no built-in kinds: the caller passes
 * them as tables (`GenericServerOptions.kinds`), as upstream's kube-apiserver passes its registries to k8s.io/apiserver.
 */
import {
  type Admission,
  type ApiRequest,
  appendAll,
  type Client,
  type Clock,
  createClient,
  draft,
  type KubeObject,
  type Logger,
  pauseIfDue,
  type Random,
  silent,
  StatusError,
  type Transport,
  unknownKind,
  type UnknownObject,
} from '@capstan/kube'
import { type Plugin, pluginsFor } from './admission/plugin.ts'
import { Policies } from './admission/policies.ts'
import { type ResolveService, WebhookCaller, type WebhookTransport } from './admission/webhook-caller.ts'
import { Webhooks } from './admission/webhooks.ts'
import { type Authenticate, authenticator } from './auth/authenticate.ts'
import { authorize, type Authorizer } from './auth/authorizer.ts'
import { attributesOf } from './auth/request-attributes.ts'
import type { AuthenticateToken } from './auth/token.ts'
import type { Caller } from './auth/user.ts'
import { runCustomResources } from './controllers/custom-resources.ts'
import { runGarbageCollector } from './controllers/garbage-collector.ts'
import type { ControllerOptions } from './controllers/options.ts'
import { Converter } from './conversion/converter.ts'
import { apiPaths, apiResourceList, groupsOf } from './http/discovery/discovery.ts'
import type { ResourceInfo } from './registry/resource-info.ts'
import { type BuiltinResources, Registry } from './registry/registry.ts'
import type { PendingWrites } from './store/pending.ts'
import type { Store } from './store/store.ts'
import type { Engine } from './verbs/engine.ts'
import { execute, openWatch } from './verbs/execute.ts'
import type { RequestContext, Handler, ServerContext } from './verbs/context.ts'

/** Options for calls of admission and conversion webhooks, which are configured through the API. */
export interface WebhookOptions {
  /** Returns the address of a Service; without this function, only webhooks with a URL can be called. */
  readonly resolveService?: ResolveService
  /** Default: HTTPS. */
  readonly transport?: WebhookTransport
}

/** Built-in kinds, which the caller of `createGenericServer` provides. */
export interface BuiltinKinds {
  readonly resources: BuiltinResources
  /** Returns the handler of requests for a kind that is not stored, or for a subresource that the generic verbs do not implement. */
  readonly handlerFor: (context: RequestContext) => Handler | undefined
  /** Admission plugins except NamespaceLifecycle, webhooks and policies, in the order in which they are called. */
  readonly plugins: readonly Plugin[]
  /** State of the kinds for this server, passed to their strategies with every write. */
  readonly state: unknown
}

export interface GenericServerOptions {
  readonly clock: Clock
  readonly random: Random
  /** The store of all objects. Closing the server closes it, too. */
  readonly store: Store
  readonly pending: PendingWrites
  readonly kinds: BuiltinKinds
  /**
   * Names of enabled admission plugins. The server itself implements NamespaceLifecycle, webhooks and policies; other plugins are in `kinds`.
   */
  readonly enabled: ReadonlySet<string>
  /** In-process admission: functions of the program that embeds the server. */
  readonly admission: readonly Admission[]
  /** Whether pods that are bound to a node stay until the kubelet confirms their deletion. */
  readonly gracefulDeletion: boolean
  readonly authorizer: Authorizer
  readonly authenticateToken: AuthenticateToken
  /** Audiences of tokens for this server. */
  readonly apiAudiences: readonly string[]
  readonly webhooks: WebhookOptions
  /** Whether the garbage collector runs, which deletes dependents of deleted owners. */
  readonly garbageCollector: boolean
  readonly log?: Logger
  /**
   * Starts controllers of `kinds`; returns functions that stop them. `as` creates a client with a user agent and, if given, the user name
   * of a service account.
   */
  readonly startControllers: (options: Omit<ControllerOptions, 'client'>, as: ClientAs) => readonly (() => void)[]
  /** Writes the objects that every server has when it is ready. */
  readonly prepare: (client: Client) => Promise<void>
}

/**
 * Returns an in-process client with a user agent. `name` is its user name, such as that of a service account; default: the administrator.
 * With any name, the client has all permissions: its requests are not authorized, and its groups are those of the administrator.
 */
export type ClientAs = (agent: string, name?: string) => Client

export interface GenericServer {
  readonly engine: Engine
  readonly store: Store
  readonly registry: Registry
  /** Resolves when `prepare` has succeeded; rejects when it has failed. */
  readonly ready: Promise<void>
  /** Authenticates credentials, for `listen`. */
  readonly authenticate: Authenticate
  /**
   * Returns a transport that sends requests in-process, once the server is ready. Objects in responses are frozen, and may be the stored
   * objects themselves. With `authorized`, each request except those for discovery is authorized first.
   */
  transport(caller?: Partial<Caller>, options?: { readonly authorized?: boolean }): Transport
  close(): Promise<void>
}

const Administrator: Caller = { name: 'system:admin', groups: ['system:masters', 'system:authenticated'], agent: 'capstan' }

/** Creates a server, starts its controllers and calls `options.prepare`. */
export function createGenericServer(options: GenericServerOptions): GenericServer {
  const { clock, random, store, pending, kinds, enabled, authorizer, authenticateToken, apiAudiences, log = silent } = options
  const registry = new Registry(kinds.resources)
  const cleanups: (() => void)[] = []
  const closing = new AbortController()
  const engine: Engine = {
    execute: (request, caller, ended) => execute(server, request, caller, ended),
    watch: async (request, caller, signal) => openWatch(server, request, caller, AbortSignal.any([signal, closing.signal])),
    resources: registry,
    authorizer,
  }
  const transport: GenericServer['transport'] = (caller = {}, { authorized = false } = {}) =>
    (authorized ? authorizedInProcess : inProcess)(engine, { ...Administrator, ...caller }, clock)
  const clientAs: ClientAs = (agent, name) => createClient(transport({ agent, ...(name === undefined ? {} : { name }) }))
  const caller = new WebhookCaller({ clock, ...options.webhooks })
  const converter = new Converter({ clock, random, caller })
  const inVersions = {
    versions: ({ storage }: ResourceInfo) => registry.list().filter((info) => info.storage === storage),
    convert: async (to: ResourceInfo, object: KubeObject) => draft(await converter.convert(to, object)) as UnknownObject,
  }
  const webhooks = new Webhooks({ store, clock, random, caller, log, authorizer, enabled, ...inVersions })
  const isEnabled = enabled.has('ValidatingAdmissionPolicy')
  const policies = new Policies({ store, registry, authorizer, isEnabled, ...inVersions })
  cleanups.push(() => policies.close())
  cleanups.push(() => caller.close())
  cleanups.push(() => webhooks.close())
  const server: ServerContext = {
    store,
    pending,
    registry,
    clock,
    random,
    admission: options.admission,
    webhooks,
    policies,
    converter,
    reader: createClient(transport()),
    enabled,
    pluginsFor: pluginsFor(kinds.plugins.filter(({ name }) => enabled.has(name))),
    handlerFor: kinds.handlerFor,
    kindState: kinds.state,
    gracefulDeletion: options.gracefulDeletion,
    authorizer,
    authenticateToken,
    apiAudiences,
  }

  const collector = clientAs('kube-controller-manager', 'system:serviceaccount:kube-system:generic-garbage-collector')
  cleanups.push(
    runCustomResources({
      store,
      registry,
      clock,
      log,
      async deleteInstance(storage, { metadata }) {
        const info = registry.stored(storage)
        if (!info) return
        const kind = unknownKind({ ...info, scope: info.namespaced ? 'Namespaced' : 'Cluster' })
        await collector.delete(kind, metadata)
      },
    }),
  )
  if (options.garbageCollector) cleanups.push(runGarbageCollector({ store, registry, clock, log, client: collector }))
  appendAll(cleanups, options.startControllers({ store, registry, clock, log }, clientAs))

  const ready = options.prepare(clientAs('kube-apiserver'))
  // Prevents an unhandled rejection when no caller awaits `ready`.
  ready.catch(() => {})
  return {
    engine,
    store,
    registry,
    ready,
    authenticate: authenticator(authenticateToken, apiAudiences),
    transport: (...args) => whenReady(transport(...args), ready),
    async close() {
      closing.abort()
      for (const cleanUp of cleanups.reverse()) cleanUp()
      await ready.catch(() => {})
      await store.close()
    },
  }
}

const inProcess = (engine: Engine, caller: Caller, clock: Clock): Transport => ({
  async send(request: ApiRequest, signal?: AbortSignal) {
    // Without these pauses, in-process requests could follow one another endlessly and block requests from sockets.
    const pause = pauseIfDue(clock)
    if (pause) await pause
    signal?.throwIfAborted()
    request.beforeSend?.()
    if (request.plural === '') return discoveryDocument(engine, request)
    return (await engine.execute(request, caller, signal && (() => signal))).body
  },
  watch: (request, signal) => engine.watch(request, caller, signal),
  close() {},
})

/** Delays requests until the server is ready, because the default namespaces may be missing before. */
function whenReady({ send, watch, close }: Transport, ready: Promise<void>): Transport {
  let isReady = false
  const whenPrepared = ready.then(() => void (isReady = true))
  whenPrepared.catch(() => {})
  return {
    send: (request, signal) => (isReady ? send(request, signal) : whenPrepared.then(() => send(request, signal))),
    watch: (request, signal) => (isReady ? watch(request, signal) : whenPrepared.then(() => watch(request, signal))),
    close,
  }
}

/** Responds to a discovery request for the resources of a group and version, or, if both are empty, for the paths of the server. */
function discoveryDocument({ resources }: Engine, { group, version }: ApiRequest): object {
  if (version === '') return apiPaths(groupsOf(resources.list()))
  const served = resources.list().filter((info) => info.group === group && info.version === version)
  if (served.length > 0) return apiResourceList(group, version, served)
  throw new StatusError('NotFound', 'the server could not find the requested resource')
}

/** In-process transport that authorizes each request. */
function authorizedInProcess(engine: Engine, caller: Caller, clock: Clock): Transport {
  const { send, watch, close } = inProcess(engine, caller, clock)
  // Every authenticated user may discover resources.
  const check = (request: ApiRequest) => {
    if (request.plural !== '') authorize(engine.authorizer, attributesOf(caller, request))
  }
  return {
    async send(request, signal) {
      check(request)
      return send(request, signal)
    },
    async watch(request, signal) {
      check(request)
      return watch(request, signal)
    },
    close,
  }
}
