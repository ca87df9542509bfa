/**
 * Tests the provider together with core's Cluster and Machine controllers, on the virtual clock. `npm run interop -- old-contract` runs this
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

/** An environment with the local provider, core's Cluster and Machine controllers, and simulated workload clusters. */
interface LocalEnv extends TestEnv {
  readonly workloads: Workloads
}

const openEnvs: LocalEnv[] = []
afterEach(async () => {
  for (const env of openEnvs.splice(0)) await end(env)
})

async function end(env: LocalEnv): Promise<void> {
  await env.close()
  await env.workloads.close()
}

/** Wraps a store so that `close` has no effect, and a restarted server continues with its objects, as with a store on disk. */
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

async function startEnv(options: Partial<TestEnvOptions> & { stores?: ReturnType<typeof keptStores> } = {}): Promise<LocalEnv> {
  const { stores = keptStores(), ...envOptions } = options
  let workloads!: Workloads
  const log = options.log ?? silent
  const started = await testEnv({
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
  const env = { ...started, workloads }
  openEnvs.push(env)
  return env
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
  /** `simulated` of the control plane's LocalMachines. */
  readonly simulated?: object
  /** `simulated` of the LocalControlPlane. */
  readonly simulatedControlPlane?: object
  readonly port?: number
}

async function createCluster(
  { client }: LocalEnv,
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

const machines = async ({ client }: LocalEnv) => (await client.list(Machine, { namespace: 'default' })).items
const nodes = async ({ workloads }: LocalEnv) => {
  const client = workloads.clientFor(key('demo'))
  return client ? (await client.list(Node)).items : undefined
}
const scale = ({ client }: LocalEnv, replicas: number) =>
  client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { replicas } } })
const machineTexts = async (env: LocalEnv) =>
  (await machines(env))
    .map((machine) => `${machine.status?.phase} in ${machine.status?.failureDomain} ${machine.spec.version}`)
    .sort()

test('a cluster without simulated delays is provisioned within two seconds', async () => {
  const env = await startEnv()
  await createCluster(env)
  await env.advance(seconds(2))

  expect(await machineTexts(env)).toEqual(['Running in a v1.35.0'])
  const controlPlane = await env.client.get(LocalControlPlane, key('demo'))
  expect(controlPlane.status).toMatchObject({
    initialization: { controlPlaneInitialized: true },
    replicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    upToDateReplicas: 1,
    version: 'v1.35.0',
  })
  expect(isTrue(controlPlane, 'Available')).toBe(true)
  const cluster = await env.client.get(Cluster, key('demo'))
  expect(cluster.spec.controlPlaneEndpoint).toEqual({ host: '127.0.0.1', port: 6443 })
  expect(cluster.status?.failureDomains?.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  expect((await nodes(env))?.map(({ spec }) => spec?.providerID)).toEqual(
    (await machines(env)).map(({ spec }) => spec.providerID),
  )
})

/**
 * Performs `act`, follows the Machines for two minutes, and returns their counts at the start and after each change. A count of `2/3` means
 * that two of three Machines have the version.
 */
async function followMachines(env: LocalEnv, act: () => Promise<unknown>, version = 'v1.35.0'): Promise<string> {
  const machineByName = new Map((await machines(env)).map((machine) => [machine.metadata.name, machine]))
  const count = () => `${[...machineByName.values()].filter(({ spec }) => spec.version === version).length}/${machineByName.size}`
  const counts = [count()]
  const stop = env.store.subscribe('machines.cluster.x-k8s.io', ({ key: { name }, object }) => {
    if (object) machineByName.set(name, object as Machine)
    else machineByName.delete(name)
    if (counts.at(-1) !== count()) counts.push(count())
  })
  await act()
  await env.advance(minutes(2))
  stop()
  return counts.join(' ')
}

test('a control plane scales from 1 to 3, to 5 and to 1, one Machine at a time, spread over failure domains; an even number is rejected', async () => {
  const env = await startEnv()
  await createCluster(env)
  await env.advance(seconds(5))
  const domains = async () =>
    (await machines(env))
      .map(({ status }) => status?.failureDomain ?? '')
      .sort()
      .join('')

  expect(await followMachines(env, () => scale(env, 3))).toBe('1/1 2/2 3/3')
  expect(await domains()).toBe('abc')
  expect(await followMachines(env, () => scale(env, 5))).toBe('3/3 4/4 5/5')
  expect(await domains()).toBe('aabbc')
  expect(await followMachines(env, () => scale(env, 1))).toBe('5/5 4/4 3/3 2/2 1/1')
  expect((await nodes(env))?.map(({ metadata }) => metadata.name)).toEqual(
    (await machines(env)).map(({ metadata }) => metadata.name),
  )
  await expect(scale(env, 2)).rejects.toThrow('spec.replicas: Forbidden: cannot be an even number when etcd is stacked')
})

test('a new version replaces one Machine at a time, and the workload API server is reachable afterwards', async () => {
  const env = await startEnv()
  await createCluster(env, { replicas: 3 })
  await env.advance(seconds(10))

  const upgrade = () =>
    env.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { version: 'v1.36.0' } } })
  expect(await followMachines(env, upgrade, 'v1.36.0')).toBe('0/3 1/4 1/3 2/4 2/3 3/4 3/3')
  expect(await machineTexts(env)).toEqual(['Running in a v1.36.0', 'Running in b v1.36.0', 'Running in c v1.36.0'])
  expect((await nodes(env))?.map(({ status }) => status?.nodeInfo?.kubeletVersion)).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
  const kubeadmConfig = await env.workloads
    .clientFor(key('demo'))!
    .get(ConfigMap, { namespace: 'kube-system', name: 'kubeadm-config' })
  expect(kubeadmConfig.data?.ClusterConfiguration).toContain('kubernetesVersion: v1.36.0')
  expect((await env.client.get(LocalControlPlane, key('demo'))).status).toMatchObject({
    version: 'v1.36.0',
    versions: [{ version: 'v1.36.0', replicas: 3 }],
    upToDateReplicas: 3,
  })
})

async function addWorker({ client }: LocalEnv, name: string, namespace = 'default'): Promise<void> {
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
const objectNames = ({ store }: LocalEnv) =>
  [
    'clusters.cluster.x-k8s.io',
    'machines.cluster.x-k8s.io',
    'localclusters.infrastructure.capstan.dev',
    'localmachines.infrastructure.capstan.dev',
    'localcontrolplanes.controlplane.capstan.dev',
    'localbootstrapconfigs.bootstrap.capstan.dev',
    'secrets',
  ].flatMap((resource) => store.list(resource).map(({ metadata }) => `${resource.split('.')[0]}/${metadata.name}`))

test('a worker waits for the control plane and joins; the deletion of a Cluster deletes its objects in order', async () => {
  const stores = keptStores()
  const env = await startEnv({ stores })
  await addWorker(env, 'worker')
  await createCluster(env, { replicas: 3, simulated: { provisioningDelay: '10s' } })
  await env.advance(seconds(5))
  const worker = await env.client.get(LocalBootstrapConfig, key('worker'))
  expect(getCondition(worker, 'Ready')?.message).toContain('Waiting for Cluster control plane to be initialized')
  await env.advance(minutes(1))

  const node = (await nodes(env))?.find(({ metadata }) => metadata.name === 'worker')
  expect(node?.metadata.labels?.tier).toBe('blue')
  expect(node?.spec?.taints ?? []).toEqual([])

  const deleted: string[] = []
  const recordDeletion = ({ object, previous }: { object: KubeObject | undefined; previous: KubeObject | undefined }) => {
    if (!object) deleted.push(previous!.kind)
  }
  for (const { group, plural } of [Machine, LocalControlPlane, LocalCluster, Cluster])
    env.store.subscribe(`${plural}.${group}`, recordDeletion)
  await env.client.delete(Cluster, key('demo'))
  await env.advance(minutes(2))
  expect(deleted).toEqual(['Machine', 'Machine', 'Machine', 'Machine', 'LocalControlPlane', 'LocalCluster', 'Cluster'])
  expect(objectNames(env)).toEqual([])
  expect(stores.names()).toEqual([])
})

test.each<[string, NewCluster, boolean]>([
  ['a control plane with a Machine that has not booted', { simulated: { provisioningDelay: '1h' } }, false],
  ['an uninitialized control plane with a Node', { simulatedControlPlane: { initializationDelay: '1h' } }, false],
  ['an initialized control plane with Machines', { replicas: 3 }, true],
  ['an uninitialized hosted control plane', { hosted: true, simulatedControlPlane: { initializationDelay: '1h' } }, false],
  ['an initialized hosted control plane', { hosted: true }, true],
])('the deletion of a namespace deletes all objects of a Cluster with %s', async (_, options, isInitialized) => {
  const env = await startEnv()
  await env.client.create(Namespace, { metadata: { name: 'team' } })
  await createCluster(env, { ...options, namespace: 'team' })
  if (isInitialized) await addWorker(env, 'worker', 'team')
  await env.advance(seconds(30))
  const controlPlane = await env.client.get(LocalControlPlane, { namespace: 'team', name: 'demo' })
  expect(controlPlane.status?.initialization?.controlPlaneInitialized ?? false).toBe(isInitialized)

  await env.client.delete(Namespace, { name: 'team' })
  await env.advance(minutes(5))
  expect(objectNames(env)).toEqual([])
  await expect(env.client.get(Namespace, { name: 'team' })).rejects.toThrow('namespaces "team" not found')
})

test('delays are measured from their start, even after a restart', async () => {
  const [stores, store, clock] = [keptStores(), keptOpen(memoryStore()), new VirtualClock()]
  const env = await startEnv({ stores, store, clock })
  await createCluster(env, { simulated: { provisioningDelay: '30s', nodeDelay: '20s' } })
  await env.advance(seconds(29))
  expect(await machineTexts(env)).toEqual(['Provisioning in undefined v1.35.0'])
  await end(env)

  const restarted = await startEnv({ stores, store, clock })
  await restarted.advance(seconds(2))
  expect(await machineTexts(restarted)).toEqual(['Provisioned in a v1.35.0'])
  await restarted.advance(seconds(17))
  expect(await nodes(restarted)).toBeUndefined()
  await restarted.advance(seconds(3))
  expect(await machineTexts(restarted)).toEqual(['Running in a v1.35.0'])
})

test('a simulated failure is reported in conditions, and ends after the configured number of attempts', async () => {
  const env = await startEnv()
  const failure = { at: 'provisioning', message: 'no capacity in zone a', times: 2 }
  await createCluster(env, { simulated: { provisioningDelay: '1s', failure } })
  await env.advance(seconds(3))
  const [machine] = await machines(env)
  expect(getCondition(machine!, 'InfrastructureReady')?.message).toContain('* Provisioned: no capacity in zone a')
  await env.advance(seconds(20))
  expect(await machineTexts(env)).toEqual(['Running in a v1.35.0'])
})

test('a permanent failure is not retried until it is removed from the spec', async () => {
  const env = await startEnv()
  await createCluster(env, { simulated: { failure: { at: 'node', message: 'kernel panic' } } })
  // After about two minutes without a connection to the workload cluster, core reports this. Afterwards nothing is written.
  await env.advance(minutes(5))
  const [machine] = await machines(env)
  expect(getCondition(await env.client.get(LocalMachine, key(machine!.metadata.name)), 'Ready')).toMatchObject({
    status: 'False',
    message: '* NodeProvisioned: kernel panic',
  })
  const { revision } = env.store
  await env.advance(minutes(10))
  expect(env.store.revision).toBe(revision)

  await env.client.patch(LocalMachine, key(machine!.metadata.name), { type: 'merge', body: { spec: { simulated: null } } })
  await env.advance(seconds(20))
  expect(await machineTexts(env)).toEqual(['Running in a v1.35.0'])
})

test('a failing kubelet of the new version blocks the rollout', async () => {
  const env = await startEnv()
  await createCluster(env, { replicas: 3 })
  await env.advance(seconds(10))
  const failing = { simulated: { failure: { at: 'kubelet' as const, message: 'unsupported flag' } } }
  await env.client.create(LocalMachineTemplate, { ...named('broken'), spec: { template: { spec: failing } } })
  const body = { spec: { version: 'v1.36.0', machineTemplate: { spec: { infrastructureRef: machineTemplate('broken') } } } }
  const upgrade = () => env.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body })
  expect(await followMachines(env, upgrade, 'v1.36.0')).toBe('0/3 1/4')
  const controlPlane = await env.client.get(LocalControlPlane, key('demo'))
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
  const env = await startEnv()
  const { certificate, key: privateKey } = await makeAuthority(env.clock, { commonName: 'ours' })
  const data = { 'tls.crt': btoa(certificate), 'tls.key': btoa(privateKey) }
  await env.client.create(Secret, { ...named('demo-ca'), type: 'Opaque', data })
  await createCluster(env)
  await env.advance(seconds(5))
  expect(await machineTexts(env)).toEqual(['Running in a v1.35.0'])
  const secret = await env.client.get(Secret, key('demo-ca'))
  expect(secret.data).toEqual(data)
  expect(secret.metadata.ownerReferences).toBeUndefined()
})

test('a certificate authority that is deleted after initialization is not recreated, and scaling is blocked', async () => {
  const env = await startEnv()
  await createCluster(env)
  await env.advance(seconds(5))
  await env.client.delete(Secret, key('demo-ca'))
  await scale(env, 3)
  await env.advance(minutes(1))
  const controlPlane = await env.client.get(LocalControlPlane, key('demo'))
  expect(getCondition(controlPlane, 'CertificatesAvailable')).toMatchObject({
    status: 'False',
    message: 'Cluster certificate for ca is not available, please check cluster certificate secrets',
  })
  expect(getCondition(controlPlane, 'ScalingUp')?.message).toBe(
    'Scaling up from 1 to 3 replicas is blocked because:\n* cluster certificates are missing or unknown',
  )
  expect(await machines(env)).toHaveLength(1)
})

test('all certificates of a cluster are Secrets as the contract requires, and Secrets of the user are not changed', async () => {
  const env = await startEnv()
  const ownAuthority = await makeAuthority(env.clock, { commonName: 'ours' })
  const data = { 'tls.crt': btoa(ownAuthority.certificate), 'tls.key': btoa(ownAuthority.key) }
  const labels = { 'cluster.x-k8s.io/cluster-name': 'demo' }
  await env.client.create(Secret, {
    metadata: { ...named('demo-etcd').metadata, labels },
    type: 'cluster.x-k8s.io/secret',
    data,
  })
  await createCluster(env)
  await env.advance(seconds(5))
  for (const purpose of ['ca', 'proxy', 'sa', 'kubeconfig']) {
    expect(await env.client.get(Secret, key(`demo-${purpose}`))).toMatchObject({
      type: 'cluster.x-k8s.io/secret',
      metadata: { labels, ownerReferences: [{ kind: 'LocalControlPlane', name: 'demo', controller: true }] },
    })
  }
  const etcd = await env.client.get(Secret, key('demo-etcd'))
  expect(etcd.data).toEqual(data)
  expect(etcd.metadata.ownerReferences).toBeUndefined()

  const text = async (purpose: string, name: string) => atob((await env.client.get(Secret, key(`demo-${purpose}`))).data![name]!)
  for (const purpose of ['ca', 'proxy']) {
    const authority = new X509Certificate(await text(purpose, 'tls.crt'))
    expect([authority.ca, authority.subject]).toEqual([true, 'CN=kubernetes'])
    expect(authority.checkPrivateKey(createPrivateKey(await text(purpose, 'tls.key')))).toBe(true)
  }
  // As in upstream, `tls.crt` of the Secret `demo-sa` contains a public key instead of a certificate.
  const publicKey = createPublicKey(await text('sa', 'tls.crt'))
  expect(createPublicKey(await text('sa', 'tls.key')).equals(publicKey)).toBe(true)
})

test('a deleted kubeconfig is recreated', async () => {
  const env = await startEnv()
  await createCluster(env)
  await env.advance(seconds(5))
  const { uid } = (await env.client.get(Secret, key('demo-kubeconfig'))).metadata
  await env.client.delete(Secret, key('demo-kubeconfig'))
  await env.advance(seconds(5))
  expect((await env.client.get(Secret, key('demo-kubeconfig'))).metadata.uid).not.toBe(uid)
})

test('an idle cluster writes nothing', async () => {
  const stores = keptStores()
  const env = await startEnv({ stores })
  await createCluster(env, { replicas: 3 })
  await env.advance(minutes(1))
  const workloadRevision = (await stores.openStore('workload_default_demo')).revision
  const { revision } = env.store
  await env.advance(minutes(30))
  expect(env.store.revision).toBe(revision)
  expect((await stores.openStore('workload_default_demo')).revision).toBe(workloadRevision)
})

test('a paused control plane is not scaled until it is resumed', async () => {
  const env = await startEnv()
  await createCluster(env)
  await env.advance(seconds(5))
  const paused = { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }
  await env.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: paused })
  await scale(env, 3)
  await env.advance(minutes(1))
  expect(await machines(env)).toHaveLength(1)
  expect(isTrue(await env.client.get(LocalControlPlane, key('demo')), 'Paused')).toBe(true)
  await env.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { metadata: { annotations: null } } })
  await env.advance(minutes(1))
  expect(await machines(env)).toHaveLength(3)
})

test('a paused cluster is reachable after a restart', async () => {
  const [stores, store, clock] = [keptStores(), keptOpen(memoryStore()), new VirtualClock()]
  const env = await startEnv({ stores, store, clock })
  await createCluster(env)
  await env.advance(seconds(5))
  await env.client.patch(Cluster, key('demo'), { type: 'merge', body: { spec: { paused: true } } })
  await env.advance(seconds(5))
  await end(openEnvs.pop()!)

  const restarted = await startEnv({ isInstalled: true, stores, store, clock })
  await restarted.settle()
  expect(await nodes(restarted)).toHaveLength(1)
})

test('labels and deletion timeouts of the machine template propagate to existing Machines without a rollout', async () => {
  const env = await startEnv()
  await createCluster(env)
  await env.advance(seconds(5))
  const [machineBefore] = await machines(env)
  const machineTemplate = { metadata: { labels: { team: 'a' } }, spec: { deletion: { nodeDrainTimeoutSeconds: 7 } } }
  await env.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { machineTemplate } } })
  await env.advance(seconds(10))
  const [machineAfter] = await machines(env)
  expect(machineAfter).toMatchObject({
    metadata: { uid: machineBefore!.metadata.uid, labels: { team: 'a' } },
    spec: { deletion: { nodeDrainTimeoutSeconds: 7 } },
  })
  expect((await env.client.get(LocalMachine, key(machineAfter!.metadata.name))).metadata.labels?.team).toBe('a')
})

/** Returns a function that creates a store in which the kinds are already installed, so that environments start quickly. */
async function installedStore(): Promise<() => Promise<Store>> {
  const env = await startEnv()
  const installed = ['customresourcedefinitions.apiextensions.k8s.io', 'namespaces'].flatMap((resource) =>
    env.store.list(resource).map((object) => ({ resource, object })),
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

test('after a restart, each object of a new cluster exists once, whichever write was the last before the process was stopped', async () => {
  const newStore = await installedStore()
  for (let writes = 0; ; writes++) {
    const [stores, store, clock] = [keptStores(), await newStore(), new VirtualClock()]
    const env = await startEnv({ isInstalled: true, stores, store, clock, between: cutOffAfter(writes) })
    await createCluster(env)
    await env.settle()
    const finished = (await machineTexts(env)).join() === 'Running in a v1.35.0'
    await end(openEnvs.pop()!)

    const restarted = await startEnv({ isInstalled: true, stores, store, clock, seed: 2 })
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
    await end(openEnvs.pop()!)
    if (finished) break
  }
})

test.each([4, 11, 17, 23, 30, 38, 47])(
  'a rollout continues after a restart when the process was stopped after write %d',
  async (writes) => {
    const [stores, store, clock] = [keptStores(), keptOpen(memoryStore()), new VirtualClock()]
    const firstEnv = await startEnv({ stores, store, clock })
    await createCluster(firstEnv, { replicas: 3 })
    await firstEnv.advance(seconds(10))
    await firstEnv.client.patch(LocalControlPlane, key('demo'), { type: 'merge', body: { spec: { version: 'v1.36.0' } } })
    await end(openEnvs.pop()!)

    const stopped = await startEnv({ isInstalled: true, stores, store, clock, between: cutOffAfter(writes) })
    await stopped.advance(seconds(20))
    await end(openEnvs.pop()!)

    const restarted = await startEnv({ isInstalled: true, stores, store, clock, seed: 2 })
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
  const env = await startEnv({ clock })
  const listener = await listen({ port: 0, endpointFor: (name) => env.workloads.endpointFor(name ?? ''), clock })
  try {
    await createCluster(env, { port: listener.port })
    await env.advance(seconds(5))
    const secret = await env.client.get(Secret, key('demo-kubeconfig'))
    const access = await resolveKubeconfig(parseKubeconfig(Buffer.from(secret.data!.value!, 'base64').toString('utf8')))
    expect(access).toMatchObject({ server: listener.url, servername: 'demo.default.clusters.capstan.dev' })
    const transport = httpsTransport(access, { clock, random: seededRandom(1) })
    const { items } = await createClient(transport).list(Node)
    expect(items.map(({ metadata }) => metadata.name)).toEqual((await machines(env)).map(({ metadata }) => metadata.name))
    transport.close()
  } finally {
    await listener.close(0)
  }
})

test('when a user replaces the certificate authority, the kubeconfig and the workload API server use the new authority', async () => {
  const clock = new VirtualClock(Date.now())
  const env = await startEnv({ clock })
  const listener = await listen({ port: 0, endpointFor: (name) => env.workloads.endpointFor(name ?? ''), clock })
  const access = async () => {
    const secret = await env.client.get(Secret, key('demo-kubeconfig'))
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
    await createCluster(env, { port: listener.port })
    await env.advance(seconds(5))
    const oldAccess = await access()
    expect(await nodesWith(oldAccess)).toBe(1)

    const newAuthority = await makeAuthority(clock, { commonName: 'next' })
    const data = { 'tls.crt': btoa(newAuthority.certificate), 'tls.key': btoa(newAuthority.key) }
    await env.client.patch(Secret, key('demo-ca'), { type: 'merge', body: { data } })
    await env.settle()
    expect(await nodesWith(await access())).toBe(1)
    await expect(nodesWith(oldAccess)).rejects.toThrow(/certificate/)
  } finally {
    await listener.close(0)
  }
})
