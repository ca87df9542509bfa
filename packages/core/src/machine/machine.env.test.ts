/** The Cluster and Machine controllers over a workload cluster, with a provider that the test plays. */
import { Cluster, ClusterClass, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { createApiServer, memoryStore } from '@capstan/apiserver'
import {
  createClient,
  getCondition,
  type Kind,
  type KubeObject,
  Node,
  orAbsent,
  Secret,
  seededRandom,
  seconds,
  silent,
  VirtualClock,
} from '@capstan/kube'
import {
  DevCluster,
  DevConfig,
  DevControlPlane,
  DevMachine,
  aCluster,
  aMachine,
  devKinds,
  nodeConditions,
  testEnv,
} from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { createClusterCache } from '../cluster-cache/cluster-cache.ts'
import { createClusterController } from '../cluster/controller.ts'
import { createMachineController } from './controller.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function aWorld() {
  const clock = new VirtualClock()
  const random = seededRandom(2)
  const workload = createApiServer({ store: memoryStore(), clock, random, log: silent, admission: [] })
  await workload.ready
  closers.push(() => workload.close())
  const workloadClient = createClient(workload.transport())

  const clusters = createClusterCache({
    connect: async () => createClient(workload.transport()),
    clock,
    random,
    log: silent,
  })
  const env = await testEnv({
    clock,
    kinds: [Cluster, ClusterClass, Machine, MachineSet, MachineDeployment, ...devKinds],
    controllers: [clusters.controller, createClusterController({ clusters }), createMachineController({ clusters })] as never,
  })
  closers.push(() => env.close())
  const { client } = env
  const key = (name: string) => ({ namespace: 'default', name })
  return {
    ...env,
    workload: workloadClient,
    clusters,
    key,
    create: <T extends KubeObject>(kind: Kind<T>, name: string, fields: object = {}) =>
      client.create(kind, { metadata: { name, namespace: 'default' }, ...fields } as never),
    async patch<T extends KubeObject>(kind: Kind<T>, name: string, body: { status?: object; [field: string]: unknown }) {
      const { status, ...main } = body
      if (Object.keys(main).length > 0) await client.patch(kind, key(name), { type: 'merge', body: main })
      if (status) await client.patch(kind, key(name), { type: 'merge', body: { status } }, { subresource: 'status' })
      await env.settle()
    },
    cluster: () => client.get(Cluster, key('demo')),
    machine: () => client.get(Machine, key('m1')),
  }
}

const condition = (object: KubeObject, type: string) => {
  const found = getCondition(object as never, type)
  return found && `${found.status} ${found.reason}${found.message ? `: ${found.message}` : ''}`
}

async function provision(world: Awaited<ReturnType<typeof aWorld>>) {
  const { metadata: _, apiVersion: _v, kind: _k, ...cluster } = aCluster()
  await world.create(Cluster, 'demo', cluster)
  await world.create(DevCluster, 'demo', { spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } } })
  await world.create(DevControlPlane, 'demo')
  await world.patch(DevCluster, 'demo', { status: { initialization: { provisioned: true } } })
  await world.create(Secret, 'demo-kubeconfig', { stringData: { value: 'how to reach it' } })
  await world.patch(DevControlPlane, 'demo', { status: { initialization: { controlPlaneInitialized: true } } })
}

async function provisionMachine(world: Awaited<ReturnType<typeof aWorld>>, labels: Record<string, string> = {}) {
  const { spec } = aMachine()
  await world.create(DevConfig, 'm1')
  await world.create(DevMachine, 'm1')
  await world.client.create(Machine, { metadata: { name: 'm1', namespace: 'default', labels }, spec })
  await world.settle()
  await world.patch(DevConfig, 'm1', { status: { initialization: { dataSecretCreated: true }, dataSecretName: 'm1-data' } })
  await world.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1' }, status: { initialization: { provisioned: true } } })
  await world.workload.create(Node, { metadata: { name: 'node-1' }, spec: { providerID: 'dev:///m1' } })
  await world.workload.patch(
    Node,
    { name: 'node-1' },
    { type: 'merge', body: { status: { conditions: nodeConditions(), nodeInfo: { kubeletVersion: 'v1.34.0' } } } },
    { subresource: 'status' },
  )
  await world.settle()
}

test('a Cluster follows its infrastructure and control plane until its workload cluster is reached', async () => {
  const world = await aWorld()
  const { metadata: _, apiVersion: _v, kind: _k, ...fields } = aCluster()
  await world.create(Cluster, 'demo', fields)
  await world.settle()
  let cluster = await world.cluster()
  expect(cluster.metadata.finalizers).toEqual(['cluster.cluster.x-k8s.io'])
  expect(cluster.status?.phase).toBe('Provisioning')
  expect(condition(cluster, 'InfrastructureReady')).toBe('False ObjectDoesNotExist: DevCluster does not exist')

  await world.create(DevCluster, 'demo', { spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } } })
  await world.create(DevControlPlane, 'demo')
  await world.settle()
  const infra = await world.client.get(DevCluster, world.key('demo'))
  expect(infra.metadata.labels).toEqual({ 'cluster.x-k8s.io/cluster-name': 'demo' })
  expect(infra.metadata.ownerReferences).toMatchObject([{ kind: 'Cluster', name: 'demo', uid: cluster.metadata.uid }])

  await world.patch(DevCluster, 'demo', { status: { initialization: { provisioned: true } } })
  cluster = await world.cluster()
  expect(cluster.spec.controlPlaneEndpoint).toEqual({ host: '127.0.0.1', port: 6443 })
  expect(cluster.status).toMatchObject({ phase: 'Provisioned', initialization: { infrastructureProvisioned: true } })
  expect(condition(cluster, 'RemoteConnectionProbe')).toBe('False ProbeFailed: Remote connection not established yet')

  await world.create(Secret, 'demo-kubeconfig', { stringData: { value: 'how to reach it' } })
  await world.patch(DevControlPlane, 'demo', { status: { initialization: { controlPlaneInitialized: true } } })
  cluster = await world.cluster()
  expect(condition(cluster, 'RemoteConnectionProbe')).toBe('True ProbeSucceeded')
  expect(condition(cluster, 'Available')).toBe('True Available')
})

test('a Machine takes over its identity, finds its Node, and is Available', async () => {
  const world = await aWorld()
  await provision(world)
  await provisionMachine(world, { 'node-role.kubernetes.io/worker': '' })
  const machine = await world.machine()
  expect(machine.spec).toMatchObject({ providerID: 'dev:///m1', bootstrap: { dataSecretName: 'm1-data' } })
  expect(machine.status).toMatchObject({ phase: 'Running', nodeRef: { name: 'node-1' }, nodeInfo: { kubeletVersion: 'v1.34.0' } })
  expect(['Ready', 'Available', 'NodeHealthy'].map((type) => condition(machine, type))).toEqual([
    'True Ready',
    'True Available',
    'True NodeHealthy',
  ])
  const node = await world.workload.get(Node, { name: 'node-1' })
  expect(node.metadata.labels).toMatchObject({ 'node-role.kubernetes.io/worker': '' })
  expect(node.metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/machine': 'm1', 'cluster.x-k8s.io/cluster-name': 'demo' })
  const infra = await world.client.get(DevMachine, world.key('m1'))
  expect(infra.metadata.ownerReferences).toMatchObject([{ kind: 'Machine', name: 'm1', controller: true }])
})

test('at rest nothing is written', async () => {
  const world = await aWorld()
  await provision(world)
  await provisionMachine(world)
  await world.advance(seconds(30))
  const revision = world.store.revision
  await world.advance(seconds(600))
  expect(world.store.revision).toBe(revision)
})

test('a Machine goes after its hooks, its host, and only then its Node', async () => {
  const world = await aWorld()
  await provision(world)
  await provisionMachine(world)
  await world.create(Machine, 'cp', {
    metadata: {
      name: 'cp',
      namespace: 'default',
      labels: { 'cluster.x-k8s.io/control-plane': '', 'cluster.x-k8s.io/cluster-name': 'demo' },
    },
    spec: aMachine({ metadata: { name: 'cp' } }).spec,
  })
  await world.patch(Machine, 'm1', {
    metadata: { annotations: { 'pre-drain.delete.hook.machine.cluster.x-k8s.io/x': 'me' } },
  })
  await world.patch(DevMachine, 'm1', { metadata: { finalizers: ['example.com/host'] } })
  await world.client.delete(Machine, world.key('m1'))
  await world.settle()
  expect(condition(await world.machine(), 'Deleting')).toBe(
    'True WaitingForPreDrainHook: Waiting for pre-drain hooks to succeed (hooks: pre-drain.delete.hook.machine.cluster.x-k8s.io/x)',
  )

  await world.patch(Machine, 'm1', { metadata: { annotations: { 'pre-drain.delete.hook.machine.cluster.x-k8s.io/x': null } } })
  const machine = await world.machine()
  expect(machine.status?.phase).toBe('Deleting')
  expect(condition(machine, 'Deleting')).toBe('True WaitingForInfrastructureDeletion: Waiting for DevMachine to be deleted')
  expect((await world.workload.get(Node, { name: 'node-1' })).spec?.unschedulable).toBe(true)

  await world.patch(DevMachine, 'm1', { metadata: { finalizers: null } })
  expect(await orAbsent(world.machine())).toBeUndefined()
  expect(await orAbsent(world.workload.get(Node, { name: 'node-1' }))).toBeUndefined()
  expect(await orAbsent(world.client.get(DevConfig, world.key('m1')))).toBeUndefined()
})

test('a Cluster takes its workers, its control plane and its infrastructure down in this order', async () => {
  const world = await aWorld()
  await provision(world)
  await provisionMachine(world)
  await world.patch(DevMachine, 'm1', { metadata: { finalizers: ['example.com/host'] } })
  await world.patch(DevControlPlane, 'demo', { metadata: { finalizers: ['example.com/control-plane'] } })
  await world.client.delete(Cluster, world.key('demo'))
  await world.settle()
  expect(condition(await world.cluster(), 'Deleting')).toBe('True WaitingForWorkersDeletion: * Worker Machines: m1')

  await world.patch(DevMachine, 'm1', { metadata: { finalizers: null } })
  expect(condition(await world.cluster(), 'Deleting')).toBe(
    'True WaitingForControlPlaneDeletion: Waiting for DevControlPlane to be deleted',
  )
  await world.patch(DevControlPlane, 'demo', { metadata: { finalizers: null } })
  expect(await orAbsent(world.cluster())).toBeUndefined()
  expect(await orAbsent(world.client.get(DevCluster, world.key('demo')))).toBeUndefined()
})

test('a paused Cluster holds its Machines, and only says so', async () => {
  const world = await aWorld()
  await provision(world)
  await world.patch(Cluster, 'demo', { spec: { paused: true } })
  await provisionMachine(world)
  const machine = await world.machine()
  expect(machine.metadata.finalizers).toBeUndefined()
  expect(machine.status?.conditions?.map(({ type, status }) => `${type} ${status}`)).toEqual(['Paused True'])

  await world.patch(Cluster, 'demo', { spec: { paused: false } })
  expect(condition(await world.machine(), 'Paused')).toBe('False NotPaused')
  expect((await world.machine()).status?.phase).toBe('Running')
})
