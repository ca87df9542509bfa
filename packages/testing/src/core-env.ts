/**
 * Environment with core's controllers of Clusters, Machines, MachinePools, ClusterResourceSets, ClusterResourceSetBindings and
 * MachineHealthChecks, and a workload cluster. The test itself acts as the provider.
 */
import { Cluster, coreKinds, Machine } from '@capstan/api'
import { memoryStore } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { type Controller, controller } from '@capstan/controller'
import {
  type ClusterCache,
  createClusterCache,
  createClusterController,
  createClusterResourceSetBindingController,
  createClusterResourceSetController,
  createMachineController,
  createMachineHealthCheckController,
  createMachinePoolController,
  type FeatureGates,
} from '@capstan/core'
import type { RuntimeClient } from '@capstan/extension'
import {
  type Client,
  type ConditionSource,
  createClient,
  getCondition,
  type Kind,
  type KubeObject,
  Node,
  type ObjectKey,
  Secret,
  seconds,
  seededRandom,
  silent,
  StatusError,
  type Transport,
  VirtualClock,
} from '@capstan/kube'
import { abortable } from './abortable.ts'
import { aCluster, aMachine, nodeConditions, stateText } from './core-objects.ts'
import { DevCluster, DevConfig, DevControlPlane, DevMachine, devKinds } from './dev-provider.ts'
import { type TestEnv, type TestEnvOptions, testEnv } from './env.ts'

/** The environment. `create`, `patch` and `get` use the namespace `default` of the management cluster. */
export interface CoreEnv extends TestEnv {
  /** A client of the workload cluster. */
  readonly workload: Client
  readonly clusters: ClusterCache
  /** Whether core's controllers can reach the workload cluster. Default: true; a test may change it. */
  reachable: boolean
  create<T extends KubeObject>(kind: Kind<T>, name: string, fields?: object): Promise<T>
  /** Patches an object and its status, then settles. */
  patch<T extends KubeObject>(kind: Kind<T>, name: string, body: { status?: object; [field: string]: unknown }): Promise<void>
  get<T extends KubeObject>(kind: Kind<T>, name: string): Promise<T>
  /**
   * Creates the Cluster `demo`, its kubeconfig Secret, and the objects of its provider, which report that the infrastructure is provisioned
   * and the control plane initialized. Advances the clock by 30 seconds.
   */
  provisionCluster(spec?: Partial<Cluster['spec']>): Promise<void>
  /**
   * Creates a Machine, its bootstrap config, its infrastructure machine and its Node. The bootstrap config reports its data Secret; the
   * infrastructure machine reports that it is provisioned. Advances the clock by 30 seconds.
   */
  provisionMachine(name: string, options?: { labels?: { [key: string]: string }; spec?: Partial<Machine['spec']> }): Promise<void>
}

export async function coreEnv(
  options: Partial<TestEnvOptions> & {
    furtherControllers?: readonly Controller[]
    runtime?: RuntimeClient
    gates?: FeatureGates
  } = {},
): Promise<CoreEnv> {
  const {
    furtherControllers = [],
    runtime,
    gates = {},
    clock = new VirtualClock(),
    between = (same) => same,
    ...envOptions
  } = options
  const random = seededRandom(2)
  const workloadServer = createApiServer({
    store: memoryStore(),
    clock,
    random,
    log: silent,
    admission: [],
    gracefulDeletion: false,
  })
  await workloadServer.ready
  const workload = createClient(workloadServer.transport())
  let reachable = true
  const clusters = createClusterCache({
    connect: async () => createClient(whenReachable(workloadServer.transport(), () => reachable)),
    clock,
    random,
    log: silent,
  })
  const env = await testEnv({
    clock,
    kinds: [...coreKinds, ...devKinds],
    controllers: [
      controller(clusters.controller),
      controller(createClusterController({ clusters, gates })),
      controller(createMachineController({ clusters, ...(runtime && { runtime }) })),
      ...(gates.MachinePool === false ? [] : [controller(createMachinePoolController({ clusters }))]),
      createClusterResourceSetController({ clusters }),
      createClusterResourceSetBindingController({ gates }),
      controller(createMachineHealthCheckController({ clusters })),
      ...furtherControllers,
    ],
    ...envOptions,
    between: (transport) => abortable(between(transport)),
  })
  const { client } = env
  /**
   * Advances the clock until the rate limit no longer delays keys that were reconciled often while the test created its objects.
   */
  const advancePastRateLimit = () => env.advance(seconds(30))
  const key = (name: string): ObjectKey => ({ namespace: 'default', name })

  const core: Omit<CoreEnv, keyof TestEnv | 'reachable'> = {
    workload,
    clusters,
    create: (kind, name, fields = {}) =>
      client.create(kind, { ...fields, metadata: { ...(fields as KubeObject).metadata, name, namespace: 'default' } } as never),
    async patch(kind, name, { status, ...main }) {
      if (Object.keys(main).length > 0) await client.patch(kind, key(name), { type: 'merge', body: main })
      if (status) await client.patch(kind, key(name), { type: 'merge', body: { status } }, { subresource: 'status' })
      await env.settle()
    },
    get: (kind, name) => client.get(kind, key(name)),
    async provisionCluster(spec = {}) {
      await core.create(Cluster, 'demo', { spec: { ...aCluster().spec, ...spec } })
      await core.create(DevCluster, 'demo', { spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } } })
      await core.create(DevControlPlane, 'demo')
      await core.patch(DevCluster, 'demo', { status: { initialization: { provisioned: true } } })
      await core.create(Secret, 'demo-kubeconfig', { stringData: { value: 'how to reach it' } })
      await core.patch(DevControlPlane, 'demo', { status: { initialization: { controlPlaneInitialized: true } } })
      await advancePastRateLimit()
    },
    async provisionMachine(name, { labels = {}, spec = {} } = {}) {
      const providerID = `dev:///${name}`
      await core.create(DevConfig, name)
      await core.create(DevMachine, name)
      await core.create(Machine, name, { metadata: { labels }, spec: { ...aMachine({ metadata: { name } }).spec, ...spec } })
      await env.settle()
      await core.patch(DevConfig, name, {
        status: { initialization: { dataSecretCreated: true }, dataSecretName: `${name}-data` },
      })
      await core.patch(DevMachine, name, { spec: { providerID }, status: { initialization: { provisioned: true } } })
      await workload.create(Node, { metadata: { name: `node-${name}` }, spec: { providerID } })
      const status = { conditions: nodeConditions(), nodeInfo: { kubeletVersion: 'v1.34.0' } }
      await workload.patch(Node, { name: `node-${name}` }, { type: 'merge', body: { status } }, { subresource: 'status' })
      await advancePastRateLimit()
    },
  }
  return {
    ...env,
    ...core,
    get reachable() {
      return reachable
    },
    set reachable(value) {
      reachable = value
    },
    async close() {
      await env.close()
      await workloadServer.close()
    },
  }
}

/** Returns a condition of an object, formatted by `stateText`. */
export function conditionText(object: ConditionSource, type: string): string | undefined {
  const condition = getCondition(object, type)
  return condition && stateText(condition)
}

/** Makes requests fail while `reachable` returns false. Open watches are not interrupted. */
const whenReachable = (transport: Transport, reachable: () => boolean): Transport => ({
  close: () => transport.close(),
  watch: (request, signal) => (reachable() ? transport.watch(request, signal) : Promise.reject(unreachableError())),
  send: (request, signal) => (reachable() ? transport.send(request, signal) : Promise.reject(unreachableError())),
})

const unreachableError = () => new StatusError('ServiceUnavailable', 'connect ECONNREFUSED')
