import { Cluster, ClusterResourceSetBinding, MachinePool } from '@capstan/api'
import { type ApiRequest, minutes, orAbsent, Secret, seconds } from '@capstan/kube'
import { parseKubeconfig, makeAuthority } from '@capstan/kube/node'
import {
  aCluster,
  aMachine,
  type CoreEnv,
  collectWrites,
  conditionText,
  coreEnv,
  DevCluster,
  DevControlPlane,
  DevMachine,
} from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

const demo = { namespace: 'default', name: 'demo' }

test('a Cluster reports the state of its infrastructure, its control plane and the connection to its workload cluster', async () => {
  env = await coreEnv()
  await env.create(Cluster, 'demo', { spec: aCluster().spec })
  await env.settle()
  let cluster = await env.get(Cluster, 'demo')
  expect(cluster.metadata.finalizers).toEqual(['cluster.cluster.x-k8s.io'])
  expect(cluster.status?.phase).toBe('Provisioning')
  expect(conditionText(cluster, 'InfrastructureReady')).toBe('False ObjectDoesNotExist: DevCluster does not exist')
  expect(conditionText(cluster, 'ControlPlaneAvailable')).toBe('False ObjectDoesNotExist: DevControlPlane does not exist')

  await env.create(DevCluster, 'demo', { spec: { controlPlaneEndpoint: { host: '127.0.0.1', port: 6443 } } })
  await env.create(DevControlPlane, 'demo')
  await env.settle()
  const { metadata } = await env.get(DevCluster, 'demo')
  expect(metadata.labels).toEqual({ 'cluster.x-k8s.io/cluster-name': 'demo' })
  expect(metadata.ownerReferences).toEqual([
    { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo', uid: cluster.metadata.uid },
  ])

  await env.patch(DevCluster, 'demo', {
    status: { initialization: { provisioned: true }, failureDomains: [{ name: 'b' }, { name: 'a', controlPlane: true }] },
  })
  cluster = await env.get(Cluster, 'demo')
  expect(cluster.spec.controlPlaneEndpoint).toEqual({ host: '127.0.0.1', port: 6443 })
  expect(cluster.status).toMatchObject({
    phase: 'Provisioned',
    initialization: { infrastructureProvisioned: true },
    failureDomains: [
      { name: 'a', controlPlane: true },
      { name: 'b', controlPlane: false },
    ],
  })
  expect(conditionText(cluster, 'RemoteConnectionProbe')).toBe('False ProbeFailed: Remote connection not established yet')

  await env.create(Secret, 'demo-kubeconfig', { stringData: { value: 'how to reach it' } })
  await env.patch(DevControlPlane, 'demo', {
    spec: { replicas: 3 },
    status: {
      initialization: { controlPlaneInitialized: true },
      replicas: 3,
      readyReplicas: 2,
      versions: [{ version: 'v1.34.0', replicas: 3 }],
    },
  })
  cluster = await env.get(Cluster, 'demo')
  expect(cluster.status?.controlPlane).toEqual({
    desiredReplicas: 3,
    replicas: 3,
    readyReplicas: 2,
    versions: [{ version: 'v1.34.0', replicas: 3 }],
  })
  expect(cluster.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
    'Available True Available',
    'RemoteConnectionProbe True ProbeSucceeded',
    'InfrastructureReady True Ready',
    'ControlPlaneInitialized True Initialized',
    'ControlPlaneAvailable True Available',
    'WorkersAvailable True NoWorkers',
    'RollingOut False NotRollingOut',
    'Remediating False NotRemediating',
    'ScalingDown False NotScalingDown',
    'ScalingUp False NotScalingUp',
    'ControlPlaneMachinesReady True NoReplicas',
    'WorkerMachinesReady True NoReplicas',
    'ControlPlaneMachinesUpToDate True NoReplicas',
    'WorkerMachinesUpToDate True NoReplicas',
    'Paused False NotPaused',
    'Deleting False NotDeleting',
  ])
})

// As upstream, each Cluster sets the label cluster-name of the object to its own name, so the two Clusters overwrite each other's label
// without end. After the first 400, the work queue allows four such reconciles of each Cluster a second. Upstream reconciles each Cluster at most once a second.
test('two Clusters that refer to one infrastructure object write it at most eight times a second', async () => {
  const writes: ApiRequest[] = []
  env = await coreEnv({ between: collectWrites(writes) })
  await env.create(DevCluster, 'demo')
  for (const name of ['first', 'second']) await env.create(Cluster, name, { spec: aCluster().spec })
  await env.advance(minutes(5))
  writes.length = 0
  await env.advance(minutes(1))
  const labelled = writes.filter(({ plural }) => plural === DevCluster.plural)
  expect(labelled.length).toBeGreaterThan(60)
  expect(labelled.length).toBeLessThanOrEqual(8 * 60)
})

test('status.controlPlane.versions is removed when the control plane removes its versions, and kept while it reports invalid versions', async () => {
  env = await coreEnv()
  await env.create(Cluster, 'demo', { spec: aCluster().spec })
  await env.create(DevControlPlane, 'demo')
  await env.settle()
  const versionsAfter = async (versions: object[] | null) => {
    await env.patch(DevControlPlane, 'demo', { status: { versions } } as never)
    return (await env.get(Cluster, 'demo')).status?.controlPlane?.versions
  }
  const valid = { version: 'v1.34.0', replicas: 3 }
  expect(await versionsAfter([valid])).toEqual([valid])
  // Invalid, because the versions are not in ascending order.
  expect(await versionsAfter([{ version: 'v1.35.0', replicas: 1 }, valid])).toEqual([valid])
  expect(await versionsAfter(null)).toBeUndefined()
  expect(await versionsAfter([valid])).toEqual([valid])
  expect(await versionsAfter([])).toBeUndefined()
})

// Upstream: reconcileInfrastructure and reconcileControlPlane, for a controlPlaneEndpoint that is not valid.
test.each([
  [
    'is copied from the infrastructure, until the control plane is initialized without an endpoint',
    undefined,
    { host: 'lb' },
    undefined,
    undefined,
  ],
  ['is copied from the control plane', undefined, undefined, { port: 6443 }, { port: 6443 }],
  ['of the user is removed when no provider reports one', { host: 'mine' }, undefined, undefined, undefined],
  ['of the user is replaced by that of the control plane', { host: 'mine' }, undefined, { host: 'lb' }, { host: 'lb' }],
])('an incomplete endpoint %s', async (_, ofUser, ofInfrastructure, ofControlPlane, expected) => {
  env = await coreEnv()
  const spec = aCluster().spec
  await env.create(Cluster, 'demo', { spec: { ...spec, ...(ofUser ? { controlPlaneEndpoint: ofUser } : {}) } })
  await env.create(DevCluster, 'demo', { spec: ofInfrastructure ? { controlPlaneEndpoint: ofInfrastructure } : {} })
  await env.create(DevControlPlane, 'demo', { spec: ofControlPlane ? { controlPlaneEndpoint: ofControlPlane } : {} })
  await env.patch(DevCluster, 'demo', { status: { initialization: { provisioned: true } } })
  await env.settle()
  const endpoint = async () => (await env.get(Cluster, 'demo')).spec.controlPlaneEndpoint
  expect(await endpoint()).toEqual(ofInfrastructure)
  await env.patch(DevControlPlane, 'demo', { status: { initialization: { controlPlaneInitialized: true } } })
  await env.settle()
  expect(await endpoint()).toEqual(expected)
})

test('a Cluster reports an unresponsive workload cluster after the grace period, and its recovery', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  env.reachable = false
  await env.advance(seconds(45))
  expect(conditionText(await env.get(Cluster, 'demo'), 'RemoteConnectionProbe')).toBe('True ProbeSucceeded')
  await env.advance(seconds(30))
  expect(conditionText(await env.get(Cluster, 'demo'), 'RemoteConnectionProbe')).toMatch(
    /^False ProbeFailed: Remote connection probe failed, probe last succeeded at 2026-01-01T00:00:\d\dZ$/,
  )
  const { revision } = env.store
  await env.advance(minutes(30))
  expect(env.store.revision).toBe(revision)

  env.reachable = true
  await env.advance(seconds(15))
  expect(conditionText(await env.get(Cluster, 'demo'), 'RemoteConnectionProbe')).toBe('True ProbeSucceeded')
})

test('a Cluster deletes its workers, its control plane and its infrastructure in this order', async () => {
  env = await coreEnv()
  await env.provisionCluster()
  await env.provisionMachine('m1')
  await env.patch(DevMachine, 'm1', { metadata: { finalizers: ['example.com/host'] } })
  await env.patch(DevControlPlane, 'demo', { metadata: { finalizers: ['example.com/control-plane'] } })
  await env.patch(DevCluster, 'demo', { metadata: { finalizers: ['example.com/network'] } })
  const deleting = async () => conditionText(await env.get(Cluster, 'demo'), 'Deleting')

  await env.client.delete(Cluster, demo)
  await env.settle()
  expect(await deleting()).toBe('True WaitingForWorkersDeletion: * Worker Machines: m1')
  expect((await env.get(Cluster, 'demo')).status?.phase).toBe('Deleting')

  await env.patch(DevMachine, 'm1', { metadata: { finalizers: null } })
  expect(await deleting()).toBe('True WaitingForControlPlaneDeletion: Waiting for DevControlPlane to be deleted')
  expect((await env.get(DevCluster, 'demo')).metadata.deletionTimestamp).toBeUndefined()

  await env.patch(DevControlPlane, 'demo', { metadata: { finalizers: null } })
  expect(await deleting()).toBe('True WaitingForInfrastructureDeletion: Waiting for DevCluster to be deleted')
  await env.patch(DevCluster, 'demo', { metadata: { finalizers: null } })
  expect(await orAbsent(env.get(Cluster, 'demo'))).toBeUndefined()
  expect(env.clusters.connection(demo)).toBeUndefined()
})

test('the objects of a Cluster with a topology are deleted only after the annotation ok-to-delete is set', async () => {
  env = await coreEnv()
  const topology = { classRef: { name: 'class' }, version: 'v1.34.0' }
  await env.provisionCluster({ topology })
  expect((await env.get(DevCluster, 'demo')).metadata.ownerReferences?.[0]).toMatchObject({
    kind: 'Cluster',
    controller: true,
    blockOwnerDeletion: true,
  })
  await env.client.delete(Cluster, demo)
  await env.settle()
  expect(conditionText(await env.get(Cluster, 'demo'), 'Deleting')).toBe(
    'True WaitingForBeforeDeleteHook: Waiting for BeforeClusterDelete hook',
  )
  expect((await env.get(DevControlPlane, 'demo')).metadata.deletionTimestamp).toBeUndefined()
  await env.patch(Cluster, 'demo', { metadata: { annotations: { 'runtime.cluster.x-k8s.io/ok-to-delete': '' } } })
  expect(await orAbsent(env.get(Cluster, 'demo'))).toBeUndefined()
})

test.each([{ RuntimeSDK: false }, { ClusterTopology: false }])(
  'with the gates %j, the deletion of a Cluster with a topology, and of its ClusterResourceSetBinding, does not wait for a hook',
  async (gates) => {
    env = await coreEnv({ gates })
    await env.provisionCluster({ topology: { classRef: { name: 'class' }, version: 'v1.34.0' } })
    await env.create(ClusterResourceSetBinding, 'demo', { spec: { clusterName: 'demo' } })
    await env.patch(DevCluster, 'demo', { metadata: { finalizers: ['example.com/network'] } })
    await env.client.delete(Cluster, demo)
    await env.settle()
    expect(conditionText(await env.get(Cluster, 'demo'), 'Deleting')).toBe(
      'True WaitingForInfrastructureDeletion: Waiting for DevCluster to be deleted',
    )
    expect(await orAbsent(env.get(ClusterResourceSetBinding, 'demo'))).toBeUndefined()
  },
)

test('the deletion of a Cluster does not delete MachinePools, nor wait for them, when their gate is disabled', async () => {
  env = await coreEnv({ gates: { MachinePool: false } })
  await env.provisionCluster()
  await env.create(MachinePool, 'pool', {
    metadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' }, finalizers: ['machinepool.cluster.x-k8s.io'] },
    spec: { clusterName: 'demo', template: { spec: aMachine().spec } },
  })
  await env.patch(DevCluster, 'demo', { metadata: { finalizers: ['example.com/network'] } })
  await env.client.delete(Cluster, demo)
  await env.settle()
  expect(conditionText(await env.get(Cluster, 'demo'), 'Deleting')).toBe(
    'True WaitingForInfrastructureDeletion: Waiting for DevCluster to be deleted',
  )
  expect((await env.get(MachinePool, 'pool')).metadata.deletionTimestamp).toBeUndefined()
})

test('with a watch filter, a Cluster with the label is connected although its kubeconfig Secret lacks the label', async () => {
  env = await coreEnv({ limits: { eventFilter: ({ metadata }) => metadata.labels?.['mine'] === 'yes' } })
  for (const [name, labels] of [
    ['demo', { mine: 'yes' }],
    ['other', {}],
  ] as const) {
    await env.create(Cluster, name, { metadata: { labels }, spec: aCluster().spec })
    await env.patch(Cluster, name, { status: { initialization: { infrastructureProvisioned: true } } })
    await env.create(Secret, `${name}-kubeconfig`, { stringData: { value: 'how to reach it' } })
    await env.settle()
  }
  expect(env.clusters.connection(demo)).toBeDefined()
  expect(env.clusters.connection({ ...demo, name: 'other' })).toBeUndefined()
})

test('a Cluster waits for the objects of its topology', async () => {
  env = await coreEnv()
  await env.create(Cluster, 'demo', { spec: { topology: { classRef: { name: 'class' }, version: 'v1.34.0' } } })
  await env.settle()
  const cluster = await env.get(Cluster, 'demo')
  expect(cluster.status?.phase).toBe('Pending')
  for (const type of ['InfrastructureReady', 'ControlPlaneAvailable']) {
    expect(conditionText(cluster, type)).toBe('False ObjectDoesNotExist: Waiting for cluster topology to be reconciled')
  }
})

test("a Cluster without a control plane provider gets a kubeconfig once the Secret of the user's certificate authority exists", async () => {
  env = await coreEnv({ limits: { eventFilter: ({ metadata }) => metadata.labels?.['mine'] === 'yes' } })
  const spec = { infrastructureRef: aCluster().spec.infrastructureRef, controlPlaneEndpoint: { host: 'fd00::1', port: 6443 } }
  await env.create(Cluster, 'demo', { metadata: { labels: { mine: 'yes' } }, spec })
  await env.create(DevCluster, 'demo')
  await env.settle()
  expect(await orAbsent(env.get(Secret, 'demo-kubeconfig'))).toBeUndefined()

  const authority = await makeAuthority(env.clock, { commonName: 'kubernetes' })
  await env.create(Secret, 'demo-ca', { stringData: { 'tls.crt': authority.certificate, 'tls.key': authority.key } })
  await env.settle()
  const secret = await env.get(Secret, 'demo-kubeconfig')
  expect(secret).toMatchObject({
    type: 'cluster.x-k8s.io/secret',
    metadata: { labels: { 'cluster.x-k8s.io/cluster-name': 'demo' }, ownerReferences: [{ kind: 'Cluster', name: 'demo' }] },
  })
  const kubeconfig = parseKubeconfig(Buffer.from(secret.data!['value']!, 'base64').toString())
  expect(kubeconfig.clusters[0]?.cluster.server).toBe('https://[fd00::1]:6443')
  expect(kubeconfig['current-context']).toBe('demo-admin@demo')
})
