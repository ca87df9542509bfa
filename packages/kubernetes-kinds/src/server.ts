/** A Kubernetes API server: the generic server with Kubernetes' own kinds, admission plugins and controllers. */
import {
  type Admission,
  type Client,
  type Clock,
  createClient,
  CustomResourceDefinition,
  type Input,
  isReason,
  type KubeObject,
  type Logger,
  Namespace,
  type Random,
} from '@capstan/kube'
import {
  anyOf,
  type AuthorizationMode,
  authorizerOf,
  type BuiltinKinds,
  createGenericServer,
  type GenericServer,
  type GenericServerOptions,
  memoryStore,
  PendingWrites,
  staticTokens,
  type Store,
  type TokenIssuer,
  type TokenUser,
  type WebhookOptions,
} from '@capstan/apiserver/kinds'
import { type AdmissionPluginSwitches, controllerPlugins, enabledPlugins } from './admission/plugin-names.ts'
import { pluginsWith } from './admission/plugins.ts'
import type { TolerationSeconds } from './admission/pod-tolerations.ts'
import { rbacAuthorizer } from './auth/rbac.ts'
import {
  type ServiceAccountTokenOptions,
  type ServiceAccountTokens,
  serviceAccountTokens,
} from './auth/service-account-tokens.ts'
import { builtins } from './builtin-resources.ts'
import { runAPIServices } from './controllers/api-services.ts'
import { runClusterRoles } from './controllers/cluster-roles.ts'
import { runEventExpiry } from './controllers/event-expiry.ts'
import { runRootCA, runServiceAccounts } from './controllers/namespace-content.ts'
import { runNamespaces } from './controllers/namespaces.ts'
import { ensureSystemObjects } from './controllers/system-objects.ts'
import { runTokenSecrets } from './controllers/token-secrets.ts'
import { handlerFor } from './handlers.ts'
import type { KindState } from './kind-state.ts'
import { parsePortRange, parseRange, ServiceAddresses } from './kinds/service/addresses.ts'
import { type AdvertisedEndpoint, publishService } from './kubernetes-service.ts'

export interface ApiServerOptions {
  readonly clock: Clock
  readonly random: Random
  /** Store of all state; default: a store in memory. `close` of the server also closes the store. */
  readonly store?: Store
  /** Validation and defaulting of kinds beyond their schemas. */
  readonly admission?: readonly Admission[]
  /** CustomResourceDefinitions to create or update before `ready` resolves. */
  readonly customResources?: readonly Input<CustomResourceDefinition>[]
  /** Controllers that run in the server, and objects that it creates. Enabled by default, unless documented otherwise. */
  readonly controllers?: {
    readonly garbageCollector?: boolean
    readonly namespaces?: boolean
    /** Aggregates the rules of ClusterRoles, when the authorization modes include RBAC. */
    readonly clusterRoles?: boolean
    /** Creates the service account `default` in every namespace; disabled by default. */
    readonly serviceAccounts?: boolean
    /** Writes tokens into Secrets of type service-account-token; disabled by default. */
    readonly tokenSecrets?: boolean
    /** Publishes this CA certificate (PEM) in every namespace, as ConfigMap `kube-root-ca.crt`; absent: not published. */
    readonly rootCA?: string
    /** Deletes events this many milliseconds after they were last written; absent: events are kept. Upstream: --event-ttl. */
    readonly eventLifetime?: number
    /**
     * Creates system priority classes, flow schemas and priority levels at the start, and keeps an APIService for every served version of
     * every group except apiregistration.k8s.io, as kube-apiserver does; disabled by default.
     */
    readonly systemObjects?: boolean
    /** Creates the namespaces default, kube-system, kube-public and kube-node-lease. */
    readonly defaultNamespaces?: boolean
  }
  /**
   * Enables and disables admission plugins, by upstream's names. Default: the implemented plugins that upstream enables, except plugins that
   * rely on controllers which do not run here (`controllerPlugins`); ServiceAccount is enabled together with `controllers.serviceAccounts`.
   * Upstream: --enable-admission-plugins, --disable-admission-plugins.
   */
  readonly admissionPlugins?: AdmissionPluginSwitches
  /**
   * Default tolerations of pods for a node that is not ready or unreachable, in seconds; default: 300 each. Upstream:
   * --default-not-ready-toleration-seconds, --default-unreachable-toleration-seconds.
   */
  readonly tolerationSeconds?: TolerationSeconds
  /**
   * Whether pods that are bound to a node stay until the kubelet confirms their deletion, as on a real server; default: true. Set it to
   * false when the server has no kubelets: the server then deletes pods at once.
   */
  readonly gracefulDeletion?: boolean
  /** Range of IPv4 addresses for Services; default 10.0.0.0/24. Upstream: --service-cluster-ip-range. */
  readonly serviceClusterIPRange?: string
  /** Range of node ports for Services; default 30000-32767. Upstream: --service-node-port-range. */
  readonly serviceNodePortRange?: string
  /** Authorization modes, in order; default: every request is allowed. Upstream: --authorization-mode. */
  readonly authorization?: readonly AuthorizationMode[]
  /** Users by their static bearer token. */
  readonly tokens?: ReadonlyMap<string, TokenUser>
  readonly webhooks?: WebhookOptions
  /** Signing and verification of service account tokens. */
  readonly serviceAccountTokens?: ServiceAccountTokenOptions
  readonly log?: Logger
}

/** A Kubernetes API server. */
export interface ApiServer extends Omit<GenericServer, 'registry'> {
  /** Value for the option `issuer` of `createHandler`: the handler then publishes the keys that verify service account tokens. */
  readonly issuer: TokenIssuer
  /**
   * Publishes the address of the server for clients inside of the cluster: Service `kubernetes` in `default`, with its endpoints. An address
   * that pods cannot reach, such as 127.0.0.1, is not published as an endpoint.
   */
  advertise(endpoint: AdvertisedEndpoint): Promise<void>
}

export function createApiServer(options: ApiServerOptions): ApiServer {
  const { clock, random, controllers = {} } = options
  const store = options.store ?? memoryStore()
  const pending = new PendingWrites(store)
  const { enable = [], disable = [] } = options.admissionPlugins ?? {}
  const pluginsWithoutController = controllerPlugins.filter((name) => name !== 'ServiceAccount' || !controllers.serviceAccounts)
  const authorizer = authorizerOf(options.authorization ?? ['AlwaysAllow'], rbacAuthorizer(store))
  const tokens = serviceAccountTokens({ store, clock, random }, options.serviceAccountTokens)
  const serviceAddresses = new ServiceAddresses(
    parseRange(options.serviceClusterIPRange ?? '10.0.0.0/24'),
    parsePortRange(options.serviceNodePortRange ?? '30000-32767'),
    store,
    pending,
    random,
  )
  const kinds: BuiltinKinds = {
    resources: builtins,
    handlerFor,
    plugins: pluginsWith(options.tolerationSeconds ?? {}),
    state: { serviceAddresses, tokens } satisfies KindState,
  }
  const isRBAC = authorizer.modes.includes('RBAC')
  const { registry: _, ...server } = createGenericServer({
    clock,
    random,
    store,
    pending,
    kinds,
    enabled: enabledPlugins({ enable, disable: [...disable, ...pluginsWithoutController] }),
    admission: options.admission ?? [],
    gracefulDeletion: options.gracefulDeletion ?? true,
    authorizer,
    authenticateToken: anyOf(staticTokens(options.tokens), tokens.authenticate),
    apiAudiences: tokens.audiences,
    webhooks: options.webhooks ?? {},
    garbageCollector: controllers.garbageCollector ?? true,
    ...(options.log ? { log: options.log } : {}),
    startControllers: controllersOf(controllers, tokens, isRBAC),
    prepare: (client) => prepare(client, options),
  })
  return {
    ...server,
    issuer: tokens,
    async advertise(endpoint) {
      await publishService(createClient(server.transport({ agent: 'kube-apiserver' })), serviceAddresses.range, endpoint)
    },
  }
}

function controllersOf(
  controllers: NonNullable<ApiServerOptions['controllers']>,
  tokens: ServiceAccountTokens,
  isRBAC: boolean,
): GenericServerOptions['startControllers'] {
  return (options, clientAs) => {
    const { store, registry, clock, log } = options
    const stops: (() => void)[] = []
    const account = (name: string) => ({
      store,
      clock,
      log,
      client: clientAs('kube-controller-manager', `system:serviceaccount:kube-system:${name}`),
    })
    if (controllers.namespaces ?? true) stops.push(runNamespaces({ registry, ...account('namespace-controller') }))
    if (controllers.eventLifetime !== undefined) stops.push(runEventExpiry({ store, clock, log }, controllers.eventLifetime))
    if (controllers.serviceAccounts) stops.push(runServiceAccounts(account('service-account-controller')))
    if (controllers.systemObjects) stops.push(runAPIServices({ store, clock, log, client: clientAs('kube-apiserver') }))
    if (controllers.tokenSecrets) {
      stops.push(runTokenSecrets({ ...account('tokens-controller'), tokens, rootCA: controllers.rootCA }))
    }
    if (controllers.rootCA !== undefined) stops.push(runRootCA(account('root-ca-cert-publisher'), controllers.rootCA))
    if (isRBAC && (controllers.clusterRoles ?? true)) {
      stops.push(runClusterRoles(account('clusterrole-aggregation-controller')))
    }
    return stops
  }
}

const DefaultNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

async function prepare(client: Client, options: ApiServerOptions): Promise<void> {
  const work: Promise<unknown>[] = []
  if (options.controllers?.defaultNamespaces ?? true) {
    for (const name of DefaultNamespaces) work.push(unlessExists(client.create(Namespace, { metadata: { name } })))
  }
  for (const definition of options.customResources ?? []) work.push(install(client, definition))
  if (options.controllers?.systemObjects) work.push(ensureSystemObjects(client, options.clock.now()))
  await Promise.all(work)
  if (options.authorization?.includes('RBAC')) await (await import('./auth/bootstrap.ts')).bootstrapRBAC(client)
}

async function install(client: Client, definition: Input<CustomResourceDefinition>): Promise<void> {
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
