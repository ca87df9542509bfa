/**
 * Tests the whole provider with core's Cluster and Machine controllers, on the virtual clock. `npm run interop -- old-contract` runs this
 * file with contract v1beta1.
 */
import { Cluster, coreKinds, Machine } from '@capstan/api'
import { listen, memoryStore, type Store } from '@capstan/apiserver'
import { createClusterCache, createClusterController, createMachineController } from '@capstan/core'
import {
  ConfigMap,
  createClient,
  draft,
  getCondition,
  isTrue,
  type KubeObject,
  minutes,
  Namespace,
  Node,
  Secret,
  seededRandom,
  seconds,
  silent,
  StatusError,
  type Transport,
  VirtualClock,
} from '@capstan/kube'
import { httpsTransport, makeAuthority, parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import { type TestEnv, testEnv, type TestEnvOptions } from '@capstan/testing'
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { localControllers } from './controllers.ts'
import { localKinds } from './kinds/all.ts'
import { LocalBootstrapConfig } from './kinds/local-bootstrap-config.ts'
import { LocalCluster } from './kinds/local-cluster.ts'
import { LocalControlPlane } from './kinds/local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from './kinds/local-machine.ts'
import { createWorkloads, type Workloads } from './workload/workloads.ts'

const kinds = [...coreKinds, ...localKinds]

interface World extends TestEnv {
  readonly workloads: Workloads
}

const openWorlds: World[] = []
afterEach(async () => {
  for (const world of openWorlds.splice(0)) await end(world)
})

async function end(world: World): Promise<void> {
  await world.close()
  await world.workloads.close()
}

/** Wraps a store so that it stays open when its server closes it, as if it were reopened from a data folder. */
const keptOpen = (store: Store): Store => ({
  get revision() {
    return store.revision
  },
  get: (objectKey) => store.get(objectKey),
  list: (resource, namespace) => store.list(resource, namespace),
  listAt: (revision, resource, namespace) => store.listAt(revision, resource, namespace),
  count: (resource) => store.count(resource),
  commit: (write) => store.commit(write),
  since: (revision, resource) => store.since(revision, resource),
  subscribe: (resource, listener) => store.subscribe(resource, listener),
  close: () => Promise.resolve(),
})

/** Returns stores that stay open when a workload API server closes them. */
function keptStores() {
  const stores = new Map<string, Store>()
  return {
    names: () => [...stores.keys()],
    openStore: (name: string): Promise<Store> => {
      const store = stores.get(name) ?? keptOpen(memoryStore())
      stores.set(name, store)
      return Promise.resolve(store)
    },
    removeStore: (name: string): Promise<void> => {
      stores.delete(name)
      return Promise.resolve()
    },
  }
}

async function aWorld(options: Partial<TestEnvOptions> & { stores?: ReturnType<typeof keptStores> } = {}): Promise<World> {
  const { stores = keptStores(), ...envOptions } = options
  let workloads!: Workloads
  const log = options.log ?? silent
  const env = await testEnv({
    kinds,
    controllers: ({ clock, random }) => {
      workloads = createWorkloads({ ...stores, clock, random, log })
      const clusters = createClusterCache({
        clock,
        random,
        log,
        connect: async (text) => {
          const { servername } = await resolveKubeconfig(parseKubeconfig(text))
          return createClient(await workloads.whenStarted(servername!))
        },
      })
      return [clusters.controller, createClusterController({ clusters }), createMachineController({ clusters })] as never
    },
    providers: () => localControllers({ workloads, endpoint: { host: '127.0.0.1', port: 6443 } }),
    ...envOptions,
  })
  const world = { ...env, workloads }
  openWorlds.push(world)
  return world
}

const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const key = (name: string) => ({ name, namespace: 'default' })
const ref = (apiGroup: string, kind: string, name: string) => ({ apiGroup, kind, name })
const machineTemplate = (name: string) => ref('infrastructure.capstan.dev', 'LocalMachineTemplate', name)

interface NewCluster {
  readonly namespace?: string
  readonly replicas?: number
  /** Whether the control plane runs without Machines. */
  readonly hosted?: boolean
  readonly simulated?: object
  /** `simulated` of the LocalControlPlane. */
  readonly simulatedControlPlane?: object
  readonly port?: number
}

async function createCluster(
  { client }: World,
  { namespace = 'default', replicas = 1, hosted, simulated = {}, simulatedControlPlane = {}, port }: NewCluster = {},
): Promise<void> {
  const metadata = { name: 'demo', namespace }
  await client.create(LocalMachineTemplate, {
    metadata: { name: 'control-plane', namespace },
    spec: { template: { spec: { simulated } } },
  })
  await client.create(LocalCluster, {
    metadata,
    spec: port === undefined ? {} : { controlPlaneEndpoint: { host: '127.0.0.1', port } },
  })
  await client.create(LocalControlPlane, {
    metadata,
    spec: {
      version: 'v1.35.0',
      simulated: simulatedControlPlane,
      ...(hosted ? { hosted } : { replicas, machineTemplate: { spec: { infrastructureRef: machineTemplate('control-plane') } } }),
    },
  })
  await client.create(Cluster, {
    metadata,
    spec: {
      infrastructureRef: ref('infrastructure.capstan.dev', 'LocalCluster', 'demo'),
      controlPlaneRef: ref('controlplane.capstan.dev', 'LocalControlPlane', 'demo'),
    },
  })
}

const machines = async ({ client }: World) => (await client.list(Machine, { namespace: 'default' })).items
const nodes = async ({ workloads }: World) => {
  const client = workloads.clientFor(key('demo'))
  return client ? (await client.list(Node)).items : undefined
}
const scale = ({ client }: World, replicas: number) =>
  client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { replicas } } })
const machineTexts = async (world: World) =>
  (await machines(world))
    .map((machine) => `${machine.status?.phase} in ${machine.status?.failureDomain} ${machine.spec.version}`)
    .sort()

test('a cluster without simulated delays is provisioned at once', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(2))

  expect(await machineTexts(world)).toEqual(['Running in a v1.35.0'])
  const controlPlane = await world.client.get(LocalControlPlane, key('demo'))
  expect(controlPlane.status).toMatchObject({
    initialization: { controlPlaneInitialized: true },
    replicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    upToDateReplicas: 1,
    version: 'v1.35.0',
  })
  expect(isTrue(controlPlane, 'Available')).toBe(true)
  const cluster = await world.client.get(Cluster, key('demo'))
  expect(cluster.spec.controlPlaneEndpoint).toEqual({ host: '127.0.0.1', port: 6443 })
  expect(cluster.status?.failureDomains?.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  expect((await nodes(world))?.map(({ spec }) => spec?.providerID)).toEqual(
    (await machines(world)).map(({ spec }) => spec.providerID),
  )
})

/**
 * Performs `act`, and returns the number of control plane Machines after each change in the next two minutes, as `with the version/all`.
 */
async function followMachines(world: World, act: () => Promise<unknown>, version = 'v1.35.0'): Promise<string> {
  const machineByName = new Map((await machines(world)).map((machine) => [machine.metadata.name, machine]))
  const count = () => `${[...machineByName.values()].filter(({ spec }) => spec.version === version).length}/${machineByName.size}`
  const counts = [count()]
  const stop = world.store.subscribe('machines.cluster.x-k8s.io', ({ key: { name }, object }) => {
    if (object) machineByName.set(name, object as Machine)
    else machineByName.delete(name)
    if (counts.at(-1) !== count()) counts.push(count())
  })
  await act()
  await world.advance(minutes(2))
  stop()
  return counts.join(' ')
}

test('a control plane scales 1, 3, 5, 1 one Machine at a time, spread over failure domains', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(5))
  const domains = async () =>
    (await machines(world))
      .map(({ status }) => status?.failureDomain ?? '')
      .sort()
      .join('')

  expect(await followMachines(world, () => scale(world, 3))).toBe('1/1 2/2 3/3')
  expect(await domains()).toBe('abc')
  expect(await followMachines(world, () => scale(world, 5))).toBe('3/3 4/4 5/5')
  expect(await domains()).toBe('aabbc')
  expect(await followMachines(world, () => scale(world, 1))).toBe('5/5 4/4 3/3 2/2 1/1')
  expect((await nodes(world))?.map(({ metadata }) => metadata.name)).toEqual(
    (await machines(world)).map(({ metadata }) => metadata.name),
  )
  await expect(scale(world, 2)).rejects.toThrow('spec.replicas: Forbidden: cannot be an even number when etcd is stacked')
})

test('a new version replaces one Machine at a time, and the API server is reachable afterwards', async () => {
  const world = await aWorld()
  await createCluster(world, { replicas: 3 })
  await world.advance(seconds(10))

  const upgrade = () =>
    world.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { version: 'v1.36.0' } } })
  expect(await followMachines(world, upgrade, 'v1.36.0')).toBe('0/3 1/4 1/3 2/4 2/3 3/4 3/3')
  expect(await machineTexts(world)).toEqual(['Running in a v1.36.0', 'Running in b v1.36.0', 'Running in c v1.36.0'])
  expect((await nodes(world))?.map(({ status }) => status?.nodeInfo?.kubeletVersion)).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
  const kubeadmConfig = await world.workloads
    .clientFor(key('demo'))!
    .get(ConfigMap, { namespace: 'kube-system', name: 'kubeadm-config' })
  expect(kubeadmConfig.data?.ClusterConfiguration).toContain('kubernetesVersion: v1.36.0')
  expect((await world.client.get(LocalControlPlane, key('demo'))).status).toMatchObject({
    version: 'v1.36.0',
    versions: [{ version: 'v1.36.0', replicas: 3 }],
    upToDateReplicas: 3,
  })
})

async function addWorker({ client }: World, name: string, namespace = 'default'): Promise<void> {
  const metadata = { name, namespace }
  await client.create(LocalMachine, { metadata, spec: {} })
  await client.create(LocalBootstrapConfig, { metadata, spec: { nodeLabels: { tier: 'blue' } } })
  await client.create(Machine, {
    metadata,
    spec: {
      clusterName: 'demo',
      version: 'v1.35.0',
      infrastructureRef: ref('infrastructure.capstan.dev', 'LocalMachine', name),
      bootstrap: { configRef: ref('bootstrap.capstan.dev', 'LocalBootstrapConfig', name) },
    },
  })
}

/** Returns the names of a cluster's objects in the store, as `resource/name`. */
const objectNames = ({ store }: World) =>
  [
    'clusters.cluster.x-k8s.io',
    'machines.cluster.x-k8s.io',
    'localclusters.infrastructure.capstan.dev',
    'localmachines.infrastructure.capstan.dev',
    'localcontrolplanes.controlplane.capstan.dev',
    'localbootstrapconfigs.bootstrap.capstan.dev',
    'secrets',
  ].flatMap((resource) => store.list(resource).map(({ metadata }) => `${resource.split('.')[0]}/${metadata.name}`))

test('a worker waits for the control plane and joins; a deleted Cluster deletes its objects in order', async () => {
  const stores = keptStores()
  const world = await aWorld({ stores })
  await addWorker(world, 'worker')
  await createCluster(world, { replicas: 3, simulated: { provisioningDelay: '10s' } })
  await world.advance(seconds(5))
  const worker = await world.client.get(LocalBootstrapConfig, key('worker'))
  expect(getCondition(worker, 'Ready')?.message).toContain('Waiting for Cluster control plane to be initialized')
  await world.advance(minutes(1))

  const node = (await nodes(world))?.find(({ metadata }) => metadata.name === 'worker')
  expect(node?.metadata.labels?.tier).toBe('blue')
  expect(node?.spec?.taints ?? []).toEqual([])

  const deleted: string[] = []
  const recordDeletion = ({ object, previous }: { object: KubeObject | undefined; previous: KubeObject | undefined }) => {
    if (!object) deleted.push(previous!.kind)
  }
  for (const { group, plural } of [Machine, LocalControlPlane, LocalCluster, Cluster])
    world.store.subscribe(`${plural}.${group}`, recordDeletion)
  await world.client.delete(Cluster, key('demo'))
  await world.advance(minutes(2))
  expect(deleted).toEqual(['Machine', 'Machine', 'Machine', 'Machine', 'LocalControlPlane', 'LocalCluster', 'Cluster'])
  expect(objectNames(world)).toEqual([])
  expect(stores.names()).toEqual([])
})

test.each<[string, NewCluster, number]>([
  ['of a control plane with a Machine that has not booted', { simulated: { provisioningDelay: '1h' } }, 0],
  ['of a control plane with a Node that is not initialized', { simulatedControlPlane: { initializationDelay: '1h' } }, 0],
  ['of an initialized control plane with Machines', { replicas: 3 }, 1],
  [
    'of a hosted control plane that is not initialized',
    { hosted: true, simulatedControlPlane: { initializationDelay: '1h' } },
    0,
  ],
  ['of a hosted control plane that is initialized', { hosted: true }, 1],
])('a deleted namespace deletes all objects of a Cluster: %s', async (_, options, workers) => {
  const world = await aWorld()
  await world.client.create(Namespace, { metadata: { name: 'team' } })
  await createCluster(world, { ...options, namespace: 'team' })
  if (workers > 0) await addWorker(world, 'worker', 'team')
  await world.advance(seconds(30))
  const controlPlane = await world.client.get(LocalControlPlane, { namespace: 'team', name: 'demo' })
  expect(controlPlane.status?.initialization?.controlPlaneInitialized ?? false).toBe(workers > 0)

  await world.client.delete(Namespace, { name: 'team' })
  await world.advance(minutes(5))
  expect(objectNames(world)).toEqual([])
  await expect(world.client.get(Namespace, { name: 'team' })).rejects.toThrow('namespaces "team" not found')
})

test('delays are measured from their start, even after a restart', async () => {
  const [stores, store, clock] = [keptStores(), keptOpen(memoryStore()), new VirtualClock()]
  const world = await aWorld({ stores, store, clock })
  await createCluster(world, { simulated: { provisioningDelay: '30s', nodeDelay: '20s' } })
  await world.advance(seconds(29))
  expect(await machineTexts(world)).toEqual(['Provisioning in undefined v1.35.0'])
  await end(world)

  const restarted = await aWorld({ stores, store, clock })
  await restarted.advance(seconds(2))
  expect(await machineTexts(restarted)).toEqual(['Provisioned in a v1.35.0'])
  await restarted.advance(seconds(17))
  expect(await nodes(restarted)).toBeUndefined()
  await restarted.advance(seconds(3))
  expect(await machineTexts(restarted)).toEqual(['Running in a v1.35.0'])
})

test('a simulated failure is reported in conditions, and ends after its attempts', async () => {
  const world = await aWorld()
  const failure = { at: 'provisioning', message: 'no capacity in zone a', times: 2 }
  await createCluster(world, { simulated: { provisioningDelay: '1s', failure } })
  await world.advance(seconds(3))
  const [machine] = await machines(world)
  expect(getCondition(machine!, 'InfrastructureReady')?.message).toContain('* Provisioned: no capacity in zone a')
  await world.advance(seconds(20))
  expect(await machineTexts(world)).toEqual(['Running in a v1.35.0'])
})

test('a permanent failure is not retried until it is removed from the spec', async () => {
  const world = await aWorld()
  await createCluster(world, { simulated: { failure: { at: 'node', message: 'kernel panic' } } })
  // Long enough for five failed attempts to connect, after which conditions report that there is no connection.
  await world.advance(minutes(5))
  const [machine] = await machines(world)
  expect(getCondition(await world.client.get(LocalMachine, key(machine!.metadata.name)), 'Ready')).toMatchObject({
    status: 'False',
    message: '* NodeProvisioned: kernel panic',
  })
  const { revision } = world.store
  await world.advance(minutes(10))
  expect(world.store.revision).toBe(revision)

  await world.client.patch(LocalMachine, key(machine!.metadata.name), { type: 'merge', body: { spec: { simulated: null } } })
  await world.advance(seconds(20))
  expect(await machineTexts(world)).toEqual(['Running in a v1.35.0'])
})

test('a failing kubelet of the new version blocks the rollout', async () => {
  const world = await aWorld()
  await createCluster(world, { replicas: 3 })
  await world.advance(seconds(10))
  const failing = { simulated: { failure: { at: 'kubelet' as const, message: 'unsupported flag' } } }
  await world.client.create(LocalMachineTemplate, { ...named('broken'), spec: { template: { spec: failing } } })
  const body = { spec: { version: 'v1.36.0', machineTemplate: { spec: { infrastructureRef: machineTemplate('broken') } } } }
  const upgrade = () => world.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body })
  expect(await followMachines(world, upgrade, 'v1.36.0')).toBe('0/3 1/4')
  const controlPlane = await world.client.get(LocalControlPlane, key('demo'))
  expect(getCondition(controlPlane, 'Available')).toMatchObject({
    status: 'True',
    message: '* 3 of 4 Machines have healthy control plane components, at least 1 required',
  })
  expect(getCondition(controlPlane, 'RollingOut')?.message).toBe(
    'Rolling out 3 not up-to-date replicas\n* Version v1.35.0, v1.36.0 required\n* LocalMachine is not up-to-date',
  )
  expect(getCondition(controlPlane, 'ScalingDown')?.message).toBe(
    'Scaling down from 4 to 3 replicas is blocked because:\n* waiting for control plane components to become healthy',
  )
})

test('a cluster with a certificate authority of the user is provisioned, and the Secret of the authority is not changed', async () => {
  const world = await aWorld()
  const { certificate, key: privateKey } = await makeAuthority(world.clock, { commonName: 'ours' })
  const data = { 'tls.crt': btoa(certificate), 'tls.key': btoa(privateKey) }
  await world.client.create(Secret, { ...named('demo-ca'), type: 'Opaque', data })
  await createCluster(world)
  await world.advance(seconds(5))
  expect(await machineTexts(world)).toEqual(['Running in a v1.35.0'])
  const secret = await world.client.get(Secret, key('demo-ca'))
  expect(secret.data).toEqual(data)
  expect(secret.metadata.ownerReferences).toBeUndefined()
})

test('a certificate authority that is deleted after initialization is not recreated, and scaling is blocked', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(5))
  await world.client.delete(Secret, key('demo-ca'))
  await scale(world, 3)
  await world.advance(minutes(1))
  const controlPlane = await world.client.get(LocalControlPlane, key('demo'))
  expect(getCondition(controlPlane, 'CertificatesAvailable')).toMatchObject({
    status: 'False',
    message: 'Cluster certificate for ca is not available, please check cluster certificate secrets',
  })
  expect(getCondition(controlPlane, 'ScalingUp')?.message).toBe(
    'Scaling up from 1 to 3 replicas is blocked because:\n* cluster certificates are missing or unknown',
  )
  expect(await machines(world)).toHaveLength(1)
})

test('all certificates of a cluster are Secrets as the contract requires, and Secrets of the user are not changed', async () => {
  const world = await aWorld()
  const ownAuthority = await makeAuthority(world.clock, { commonName: 'ours' })
  const data = { 'tls.crt': btoa(ownAuthority.certificate), 'tls.key': btoa(ownAuthority.key) }
  const labels = { 'cluster.x-k8s.io/cluster-name': 'demo' }
  await world.client.create(Secret, {
    metadata: { ...named('demo-etcd').metadata, labels },
    type: 'cluster.x-k8s.io/secret',
    data,
  })
  await createCluster(world)
  await world.advance(seconds(5))
  for (const purpose of ['ca', 'proxy', 'sa', 'kubeconfig']) {
    expect(await world.client.get(Secret, key(`demo-${purpose}`))).toMatchObject({
      type: 'cluster.x-k8s.io/secret',
      metadata: { labels, ownerReferences: [{ kind: 'LocalControlPlane', name: 'demo', controller: true }] },
    })
  }
  const etcd = await world.client.get(Secret, key('demo-etcd'))
  expect(etcd.data).toEqual(data)
  expect(etcd.metadata.ownerReferences).toBeUndefined()

  const text = async (purpose: string, name: string) =>
    atob((await world.client.get(Secret, key(`demo-${purpose}`))).data![name]!)
  for (const purpose of ['ca', 'proxy']) {
    const authority = new X509Certificate(await text(purpose, 'tls.crt'))
    expect([authority.ca, authority.subject]).toEqual([true, 'CN=kubernetes'])
    expect(authority.checkPrivateKey(createPrivateKey(await text(purpose, 'tls.key')))).toBe(true)
  }
  // As upstream, the certificate of `sa` is the public key of its private key.
  const publicKey = createPublicKey(await text('sa', 'tls.crt'))
  expect(createPublicKey(await text('sa', 'tls.key')).equals(publicKey)).toBe(true)
})

test('a deleted kubeconfig is recreated', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(5))
  const { uid } = (await world.client.get(Secret, key('demo-kubeconfig'))).metadata
  await world.client.delete(Secret, key('demo-kubeconfig'))
  await world.advance(seconds(5))
  expect((await world.client.get(Secret, key('demo-kubeconfig'))).metadata.uid).not.toBe(uid)
})

test('an idle cluster writes nothing', async () => {
  const stores = keptStores()
  const world = await aWorld({ stores })
  await createCluster(world, { replicas: 3 })
  await world.advance(minutes(1))
  const workload = (await stores.openStore('workload_default_demo')).revision
  const { revision } = world.store
  await world.advance(minutes(30))
  expect(world.store.revision).toBe(revision)
  expect((await stores.openStore('workload_default_demo')).revision).toBe(workload)
})

test('a paused control plane is not changed', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(5))
  const paused = { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }
  await world.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: paused })
  await scale(world, 3)
  await world.advance(minutes(1))
  expect(await machines(world)).toHaveLength(1)
  expect(isTrue(await world.client.get(LocalControlPlane, key('demo')), 'Paused')).toBe(true)
  await world.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { metadata: { annotations: null } } })
  await world.advance(minutes(1))
  expect(await machines(world)).toHaveLength(3)
})

test('a paused cluster is reachable after a restart', async () => {
  const [stores, store, clock] = [keptStores(), keptOpen(memoryStore()), new VirtualClock()]
  const world = await aWorld({ stores, store, clock })
  await createCluster(world)
  await world.advance(seconds(5))
  await world.client.patch(Cluster, key('demo'), { type: 'merge', body: { spec: { paused: true } } })
  await world.advance(seconds(5))
  await end(openWorlds.pop()!)

  const restarted = await aWorld({ isInstalled: true, stores, store, clock })
  await restarted.settle()
  expect(await nodes(restarted)).toHaveLength(1)
})

test('labels and deletion timeouts of the machine template propagate to existing Machines without a rollout', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(5))
  const [machineBefore] = await machines(world)
  const machineTemplate = { metadata: { labels: { team: 'a' } }, spec: { deletion: { nodeDrainTimeoutSeconds: 7 } } }
  await world.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { machineTemplate } } })
  await world.advance(seconds(10))
  const [machineAfter] = await machines(world)
  expect(machineAfter).toMatchObject({
    metadata: { uid: machineBefore!.metadata.uid, labels: { team: 'a' } },
    spec: { deletion: { nodeDrainTimeoutSeconds: 7 } },
  })
  expect((await world.client.get(LocalMachine, key(machineAfter!.metadata.name))).metadata.labels?.team).toBe('a')
})

/** Returns a function that creates a store in which the kinds are installed already, for quick starts. */
async function installedStore(): Promise<() => Promise<Store>> {
  const world = await aWorld()
  const installed = ['customresourcedefinitions.apiextensions.k8s.io', 'namespaces'].flatMap((resource) =>
    world.store.list(resource).map((object) => ({ resource, object })),
  )
  return async () => {
    const store = memoryStore()
    for (const { resource, object } of installed) {
      const objectKey = { resource, namespace: '', name: object.metadata.name }
      await store.commit({ key: objectKey, previous: undefined, object: draft(object) })
    }
    return keptOpen(store)
  }
}

/** Simulates a process that is stopped after the given number of writes: all later writes fail. */
const cutOffAfter =
  (writes: number) =>
  (transport: Transport): Transport => ({
    ...transport,
    send: (request, signal) => {
      const isWrite = request.verb !== 'get' && request.verb !== 'list'
      if (isWrite && writes-- <= 0) return Promise.reject(new StatusError('ServiceUnavailable', 'the process has stopped'))
      return transport.send(request, signal)
    },
    watch: (request, signal) => transport.watch(request, signal),
  })

test('each object is created once, whichever write of the creation of a cluster is the last before the process is stopped', async () => {
  const newStore = await installedStore()
  for (let writes = 0; ; writes++) {
    const [stores, store, clock] = [keptStores(), await newStore(), new VirtualClock()]
    const world = await aWorld({ isInstalled: true, stores, store, clock, between: cutOffAfter(writes) })
    await createCluster(world)
    await world.settle()
    const finished = (await machineTexts(world)).join() === 'Running in a v1.35.0'
    await end(openWorlds.pop()!)

    const restarted = await aWorld({ isInstalled: true, stores, store, clock, seed: 2 })
    await restarted.advance(seconds(30))
    expect([writes, ...(await machineTexts(restarted))]).toEqual([writes, 'Running in a v1.35.0'])
    const [machine] = await machines(restarted)
    const name = machine!.metadata.name
    expect(objectNames(restarted)).toEqual([
      'clusters/demo',
      `machines/${name}`,
      'localclusters/demo',
      `localmachines/${name}`,
      'localcontrolplanes/demo',
      `localbootstrapconfigs/${name}`,
      ...[`secrets/${name}`, ...['ca', 'etcd', 'kubeconfig', 'proxy', 'sa'].map((purpose) => `secrets/demo-${purpose}`)].sort(),
    ])
    await end(openWorlds.pop()!)
    if (finished) break
  }
})

test.each([4, 11, 17, 23, 30, 38, 47])(
  'a rollout that is stopped after write %d continues after the next start',
  async (writes) => {
    const [stores, store, clock] = [keptStores(), keptOpen(memoryStore()), new VirtualClock()]
    const firstWorld = await aWorld({ stores, store, clock })
    await createCluster(firstWorld, { replicas: 3 })
    await firstWorld.advance(seconds(10))
    await firstWorld.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { version: 'v1.36.0' } } })
    await end(openWorlds.pop()!)

    const stopped = await aWorld({ isInstalled: true, stores, store, clock, between: cutOffAfter(writes) })
    await stopped.advance(seconds(20))
    await end(openWorlds.pop()!)

    const restarted = await aWorld({ isInstalled: true, stores, store, clock, seed: 2 })
    const counts = await followMachines(restarted, () => Promise.resolve(), 'v1.36.0')
    expect(counts).toMatch(/3\/3$/)
    expect(counts).not.toMatch(/\/[0125-9]/)
    expect(await machineTexts(restarted)).toEqual(['Running in a v1.36.0', 'Running in b v1.36.0', 'Running in c v1.36.0'])
    expect(objectNames(restarted).filter((name) => name.startsWith('local'))).toHaveLength(2 + 3 + 3)
  },
)

test('a client connects to the workload API server over TLS with the kubeconfig of the cluster', async () => {
  // TLS checks certificates against the system clock, not the virtual clock.
  const clock = new VirtualClock(Date.now())
  const world = await aWorld({ clock })
  const listener = await listen({ port: 0, endpointFor: (name) => world.workloads.endpointFor(name ?? ''), clock })
  try {
    await createCluster(world, { port: listener.port })
    await world.advance(seconds(5))
    const secret = await world.client.get(Secret, key('demo-kubeconfig'))
    const access = await resolveKubeconfig(parseKubeconfig(Buffer.from(secret.data!.value!, 'base64').toString('utf8')))
    expect(access).toMatchObject({ server: listener.url, servername: 'demo.default.clusters.capstan.dev' })
    const transport = httpsTransport(access, { clock, random: seededRandom(1) })
    const { items } = await createClient(transport).list(Node)
    expect(items.map(({ metadata }) => metadata.name)).toEqual((await machines(world)).map(({ metadata }) => metadata.name))
    transport.close()
  } finally {
    await listener.close(0)
  }
})

test('when a user replaces the certificate authority, the kubeconfig and the workload API server use the new authority', async () => {
  const clock = new VirtualClock(Date.now())
  const world = await aWorld({ clock })
  const listener = await listen({ port: 0, endpointFor: (name) => world.workloads.endpointFor(name ?? ''), clock })
  const access = async () => {
    const secret = await world.client.get(Secret, key('demo-kubeconfig'))
    return resolveKubeconfig(parseKubeconfig(Buffer.from(secret.data!.value!, 'base64').toString('utf8')))
  }
  const nodesWith = async (kubeconfig: Awaited<ReturnType<typeof access>>) => {
    const transport = httpsTransport(kubeconfig, { clock, random: seededRandom(1) })
    try {
      return (await createClient(transport).list(Node)).items.length
    } finally {
      transport.close()
    }
  }
  try {
    await createCluster(world, { port: listener.port })
    await world.advance(seconds(5))
    const oldAccess = await access()
    expect(await nodesWith(oldAccess)).toBe(1)

    const newAuthority = await makeAuthority(clock, { commonName: 'next' })
    const data = { 'tls.crt': btoa(newAuthority.certificate), 'tls.key': btoa(newAuthority.key) }
    await world.client.patch(Secret, key('demo-ca'), { type: 'merge', body: { data } })
    await world.settle()
    expect(await nodesWith(await access())).toBe(1)
    await expect(nodesWith(oldAccess)).rejects.toThrow(/certificate/)
  } finally {
    await listener.close(0)
  }
})
