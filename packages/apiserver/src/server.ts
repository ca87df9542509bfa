/** One API server: state, verbs and the controllers that belong to it, without a socket in sight. */
import {
  type Admission,
  type ApiRequest,
  type Clock,
  createClient,
  CustomResourceDefinition,
  draft,
  type Input,
  isReason,
  type KubeObject,
  type Logger,
  Namespace,
  type Random,
  silent,
  type Transport,
  unknownKind,
  type UnknownObject,
} from '@capstan/kube'
import { type AdmissionPluginSwitches, controllerPlugins, enabledPlugins } from './admission/plugin-names.ts'
import { pluginsFor } from './admission/plugins.ts'
import type { Patience } from './admission/pod-tolerations.ts'
import { type ResolveService, WebhookCaller, type WebhookTransport } from './admission/webhook-caller.ts'
import { Policies } from './admission/policies.ts'
import { Webhooks } from './admission/webhooks.ts'
import { runAPIServices } from './controllers/api-services.ts'
import { runClusterRoles } from './controllers/cluster-roles.ts'
import { Converter } from './conversion/converter.ts'
import { runCustomResources } from './controllers/custom-resources.ts'
import { runEventExpiry } from './controllers/event-expiry.ts'
import { runGarbageCollector } from './controllers/garbage-collector.ts'
import { runRootCA, runServiceAccounts } from './controllers/namespace-content.ts'
import { ensureSystemObjects } from './controllers/system-objects.ts'
import { runNamespaces } from './controllers/namespaces.ts'
import { runTokenSecrets } from './controllers/token-secrets.ts'
import { attributesOf } from './auth/request-attributes.ts'
import { type AuthorizationMode, authorize, authorizerOf } from './auth/authorizer.ts'
import { type Authenticate, authenticator } from './auth/authenticate.ts'
import { rbacAuthorizer } from './auth/rbac.ts'
import { type ServiceAccountTokenOptions, serviceAccountTokens, type TokenIssuer } from './auth/service-account-tokens.ts'
import { anyOf, staticTokens, type TokenUser } from './auth/token.ts'
import type { Caller, Engine } from './engine.ts'
import { type AdvertisedEndpoint, publishService } from './kubernetes-service.ts'
import { parsePortRange, parseRange, ServiceAddresses } from './kinds/service/addresses.ts'
import type { Definition } from './registry/definition.ts'
import { Registry } from './registry/registry.ts'
import { memoryStore } from './store/memory.ts'
import { PendingWrites } from './store/pending.ts'
import type { Store } from './store/store.ts'
import { execute, openWatch } from './verbs/execute.ts'
import type { Plane } from './verbs/plane.ts'

export interface ApiServerOptions {
  readonly clock: Clock
  readonly random: Random
  /** Where the state lives; absent: in memory, until `close`. Closed with the server. */
  readonly store?: Store
  /** What kinds ask of writes beyond their schemas. */
  readonly admission?: readonly Admission[]
  /** Definitions that are there, in this form, once `ready` resolves. */
  readonly customResources?: readonly Input<CustomResourceDefinition>[]
  /** Which controllers run inside the server; all do unless told otherwise. */
  readonly controllers?: {
    readonly garbageCollector?: boolean
    readonly namespaces?: boolean
    /** Gathers the rules of ClusterRoles, where RBAC decides. */
    readonly clusterRoles?: boolean
    /** Creates the service account `default` in every namespace; off unless asked for. */
    readonly serviceAccounts?: boolean
    /** Puts tokens into Secrets that ask for one of a service account; off unless asked for. */
    readonly tokenSecrets?: boolean
    /** Publishes this certificate of an authority (PEM) in every namespace, as ConfigMap `kube-root-ca.crt`. */
    readonly rootCA?: string
    /** Deletes events so many milliseconds after they were last written; absent: they stay. Upstream: --event-ttl. */
    readonly eventLifetime?: number
    /**
     * Writes down what a server of its own does: system priority classes, flow schemas and priority levels, and an APIService for
     * every group and version; off unless asked for.
     */
    readonly systemObjects?: boolean
    /** Creates default, kube-system, kube-public and kube-node-lease. */
    readonly defaultNamespaces?: boolean
  }
  /**
   * Which admission plugins run, by upstream's names; those that upstream runs unless told otherwise do so here, but for
   * those that rely on controllers which do not run here (`controllerPlugins`); ServiceAccount does where accounts are made. Upstream: --enable-admission-plugins, --disable-admission-plugins.
   */
  readonly admissionPlugins?: AdmissionPluginSwitches
  /**
   * How long pods stay on a node that is not ready or cannot be reached, in seconds, unless they say; 300 each when absent. Upstream:
   * --default-not-ready-toleration-seconds, --default-unreachable-toleration-seconds.
   */
  readonly tolerationSeconds?: Patience
  /**
   * Whether pods that have been given a node stay until the node lets them go, as they do on any server; true when absent. Where no
   * kubelet would ever do so, they go at once.
   */
  readonly gracefulDeletion?: boolean
  /** Where Services get their addresses: a range of IPv4 addresses, 10.0.0.0/24 when absent. Upstream: --service-cluster-ip-range. */
  readonly serviceClusterIPRange?: string
  /** Where Services get their node ports; 30000-32767 when absent. Upstream: --service-node-port-range. */
  readonly serviceNodePortRange?: string
  /** Who may do what, asked in this order; everybody everything when absent. Upstream: --authorization-mode. */
  readonly authorization?: readonly AuthorizationMode[]
  /** Owners of static bearer tokens. */
  readonly tokens?: ReadonlyMap<string, TokenUser>
  /** How webhooks are reached: those of admission and of conversion, as configured through the API. */
  readonly webhooks?: {
    /** Where Services of this plane listen; without it, only webhooks with a URL can be called. */
    readonly resolveService?: ResolveService
    /** Absent: HTTPS. */
    readonly transport?: WebhookTransport
  }
  /** How tokens of service accounts are signed and known again. */
  readonly serviceAccountTokens?: ServiceAccountTokenOptions
  readonly log?: Logger
}

export interface ApiServer {
  readonly engine: Engine
  readonly store: Store
  /** Resolves when default namespaces and `customResources` are there. */
  readonly ready: Promise<void>
  /** Answers for the tokens of service accounts, for `createHandler`. */
  readonly issuer: TokenIssuer
  /** Who shows which credentials, for `listen`. */
  readonly authenticate: Authenticate
  /**
   * Requests in-process: answers are the stored objects themselves, frozen. `authorized` asks first whether the caller may do
   * what it asks for, as is done with requests from outside.
   */
  transport(caller?: Partial<Caller>, options?: { readonly authorized?: boolean }): Transport
  /** Publishes where clients inside of the cluster reach the server: as Service `kubernetes` in `default`, with its endpoints. */
  advertise(endpoint: AdvertisedEndpoint): Promise<void>
  close(): Promise<void>
}

const Administrator: Caller = { name: 'system:admin', groups: ['system:masters', 'system:authenticated'], agent: 'capstan' }

export function createApiServer(options: ApiServerOptions): ApiServer {
  const { clock, random, log = silent, controllers = {} } = options
  const store = options.store ?? memoryStore()
  const registry = new Registry()
  const stops: (() => void)[] = []
  const closing = new AbortController()

  const { enable = [], disable = [] } = options.admissionPlugins ?? {}
  const idle = controllerPlugins.filter((name) => name !== 'ServiceAccount' || !controllers.serviceAccounts)
  const enabled = enabledPlugins({ enable, disable: [...disable, ...idle] })
  const authorizer = authorizerOf(options.authorization ?? ['AlwaysAllow'], rbacAuthorizer(store))
  const tokens = serviceAccountTokens({ store, clock, random }, options.serviceAccountTokens)
  const authenticateToken = anyOf(staticTokens(options.tokens), tokens.authenticate)
  const apiAudiences = tokens.audiences
  const engine: Engine = {
    execute: (request, caller, signal) => execute(plane, request, caller, signal),
    watch: async (request, caller, signal) => openWatch(plane, request, caller, AbortSignal.any([signal, closing.signal])),
    resources: registry,
    authorizer,
  }
  const transport: ApiServer['transport'] = (caller = {}, { authorized = false } = {}) =>
    (authorized ? authorizedInProcess : inProcess)(engine, { ...Administrator, ...caller }, clock)
  const caller = new WebhookCaller({ clock, ...options.webhooks })
  const converter = new Converter({ random, caller })
  const inVersions = {
    versions: ({ storage }: Definition) => registry.list().filter((one) => one.storage === storage),
    convert: async (to: Definition, object: KubeObject) => draft(await converter.show(to, object)) as UnknownObject,
  }
  const webhooks = new Webhooks({ store, random, caller, log, authorizer, enabled, ...inVersions })
  const isEnabled = enabled.has('ValidatingAdmissionPolicy')
  const policies = new Policies({ store, registry, authorizer, isEnabled, ...inVersions })
  stops.push(() => policies.close())
  stops.push(() => caller.close())
  stops.push(() => webhooks.close())
  const pending = new PendingWrites(store)
  const plane: Plane = {
    store,
    pending,
    registry,
    clock,
    random,
    admission: options.admission ?? [],
    webhooks,
    policies,
    converter,
    reader: createClient(transport()),
    enabled,
    pluginsFor: pluginsFor(enabled, options.tolerationSeconds ?? {}),
    serviceAddresses: new ServiceAddresses(
      parseRange(options.serviceClusterIPRange ?? '10.0.0.0/24'),
      parsePortRange(options.serviceNodePortRange ?? '30000-32767'),
      store,
      pending,
      random,
    ),
    gracefulDeletion: options.gracefulDeletion ?? true,
    authorizer,
    authenticateToken,
    tokens,
    apiAudiences,
  }

  const collector = createClient(
    transport({ name: 'system:serviceaccount:kube-system:generic-garbage-collector', agent: 'kube-controller-manager' }),
  )
  stops.push(
    runCustomResources({
      store,
      registry,
      clock,
      log,
      async deleteInstance(storage, { metadata }) {
        const definition = registry.stored(storage)
        if (!definition) return
        const kind = unknownKind({ ...definition, scope: definition.namespaced ? 'Namespaced' : 'Cluster' })
        await collector.delete(kind, metadata)
      },
    }),
  )
  if (controllers.namespaces ?? true) stops.push(runNamespaces({ store, registry, clock, log, client: collector }))
  if (controllers.garbageCollector ?? true) stops.push(runGarbageCollector({ store, registry, clock, log, client: collector }))

  const publisher = (name: string) => ({
    store,
    clock,
    log,
    client: createClient(transport({ name: `system:serviceaccount:kube-system:${name}`, agent: 'kube-controller-manager' })),
  })
  if (controllers.eventLifetime !== undefined) stops.push(runEventExpiry({ store, clock, log }, controllers.eventLifetime))
  if (controllers.serviceAccounts) stops.push(runServiceAccounts(publisher('service-account-controller')))
  if (controllers.systemObjects)
    stops.push(runAPIServices({ ...publisher('aggregator'), client: createClient(transport({ agent: 'kube-apiserver' })) }))
  if (controllers.tokenSecrets) {
    const { rootCA } = controllers
    stops.push(runTokenSecrets({ ...publisher('tokens-controller'), tokens, rootCA }))
  }
  if (controllers.rootCA !== undefined) stops.push(runRootCA(publisher('root-ca-cert-publisher'), controllers.rootCA))
  if (authorizer.modes.includes('RBAC') && (controllers.clusterRoles ?? true)) {
    stops.push(runClusterRoles(publisher('clusterrole-aggregation-controller')))
  }

  const ready = prepare(createClient(transport({ agent: 'kube-apiserver' })), options)
  // Whoever does not await it is told nothing: the failure is that of `ready`.
  ready.catch(() => {})
  return {
    engine,
    store,
    ready,
    issuer: tokens,
    authenticate: authenticator(authenticateToken, apiAudiences),
    transport,
    async advertise(endpoint) {
      await ready
      await publishService(createClient(transport({ agent: 'kube-apiserver' })), plane.serviceAddresses.range, endpoint)
    },
    async close() {
      closing.abort()
      for (const stop of stops.reverse()) stop()
      await ready.catch(() => {})
      await store.close()
    },
  }
}

const DefaultNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

async function prepare(client: ReturnType<typeof createClient>, options: ApiServerOptions): Promise<void> {
  const work: Promise<unknown>[] = []
  if (options.controllers?.defaultNamespaces ?? true) {
    for (const name of DefaultNamespaces) work.push(unlessExists(client.create(Namespace, { metadata: { name } })))
  }
  for (const definition of options.customResources ?? []) work.push(install(client, definition))
  if (options.controllers?.systemObjects) work.push(ensureSystemObjects(client, options.clock.now()))
  await Promise.all(work)
  if (options.authorization?.includes('RBAC')) await (await import('./auth/bootstrap.ts')).bootstrapRBAC(client)
}

async function install(client: ReturnType<typeof createClient>, definition: Input<CustomResourceDefinition>): Promise<void> {
  const created = await unlessExists(client.create(CustomResourceDefinition, definition))
  if (created) return
  const { labels = {}, annotations = {} } = definition.metadata
  await client.patch(
    CustomResourceDefinition,
    { name: definition.metadata.name! },
    { type: 'merge', body: { metadata: { labels, annotations }, spec: definition.spec } },
  )
}

async function unlessExists<T extends KubeObject>(creation: Promise<T>): Promise<T | undefined> {
  try {
    return await creation
  } catch (err) {
    if (isReason(err, 'AlreadyExists')) return undefined
    throw err
  }
}

const inProcess = (engine: Engine, caller: Caller, clock: Clock): Transport => ({
  async send(request: ApiRequest, signal?: AbortSignal) {
    // Requests in this process may follow one another without end, and those from sockets would never have their turn.
    for (let pause = clock.breathe?.(); pause; pause = clock.breathe?.()) await pause
    signal?.throwIfAborted()
    return (await engine.execute(request, caller, signal)).body
  },
  watch: (request, signal) => engine.watch(request, caller, signal),
  close() {},
})

/** The same for somebody who may not do everything. */
function authorizedInProcess(engine: Engine, caller: Caller, clock: Clock): Transport {
  const { send, watch, close } = inProcess(engine, caller, clock)
  const check = (request: ApiRequest) => authorize(engine.authorizer, attributesOf(caller, request))
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
