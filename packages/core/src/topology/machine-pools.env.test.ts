/** MachinePools of a managed topology, with the local provider, on the virtual clock. */
import { Cluster, ClusterClass, MachinePool } from '@capstan/api'
import { getCondition, isReason, minutes, Node, seconds, StatusError, withSend } from '@capstan/kube'
import {
  LocalBootstrapConfig,
  LocalBootstrapConfigTemplate,
  LocalClusterTemplate,
  LocalControlPlaneTemplate,
  LocalMachinePool,
  LocalMachinePoolTemplate,
  LocalMachineTemplate,
} from '@capstan/local'
import { type ManagementEnv, managementEnv, scriptedRuntime } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'

let env: ManagementEnv
afterEach(() => env.close())

const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const key = (name: string) => ({ name, namespace: 'default' })
const templateRef = (group: string, kind: string) => ({
  templateRef: { apiVersion: `${group}.capstan.dev/v1alpha1`, kind, name: 'pools' },
})
const noHooks = () => scriptedRuntime({})

async function createClass(): Promise<void> {
  const { client } = env
  const spec = { template: { spec: {} } }
  for (const kind of [LocalClusterTemplate, LocalControlPlaneTemplate, LocalMachineTemplate, LocalBootstrapConfigTemplate]) {
    await client.create(kind as typeof LocalClusterTemplate, { ...named('pools'), spec })
  }
  await client.create(LocalMachinePoolTemplate, {
    ...named('pools'),
    spec: { template: { metadata: { labels: { shelf: '1' } }, spec: { template: { simulated: { nodeDelay: '1s' } } } } },
  })
  await client.create(ClusterClass, {
    ...named('pools'),
    spec: {
      infrastructure: templateRef('infrastructure', 'LocalClusterTemplate'),
      controlPlane: {
        ...templateRef('controlplane', 'LocalControlPlaneTemplate'),
        machineInfrastructure: templateRef('infrastructure', 'LocalMachineTemplate'),
      },
      workers: {
        machinePools: [
          {
            class: 'worker',
            metadata: { labels: { from: 'class', tier: 'blue' }, annotations: { note: 'class' } },
            bootstrap: templateRef('bootstrap', 'LocalBootstrapConfigTemplate'),
            infrastructure: templateRef('infrastructure', 'LocalMachinePoolTemplate'),
            failureDomains: ['a'],
            minReadySeconds: 1,
            deletion: { nodeDrainTimeoutSeconds: 30 },
          },
        ],
      },
      variables: [{ name: 'nodeDelay', required: false, schema: { openAPIV3Schema: { type: 'string', default: '2s' } } }],
      patches: [
        {
          name: 'nodeDelay',
          definitions: [
            {
              selector: {
                apiVersion: 'infrastructure.capstan.dev/v1alpha1',
                kind: 'LocalMachinePoolTemplate',
                matchResources: { machinePoolClass: { names: ['work*'] } },
              },
              jsonPatches: [
                {
                  op: 'replace',
                  path: '/spec/template/spec/template/simulated/nodeDelay',
                  valueFrom: { variable: 'nodeDelay' },
                },
                {
                  op: 'add',
                  path: '/spec/template/metadata/annotations',
                  valueFrom: { template: 'pool: {{ .builtin.machinePool.topologyName }}/{{ .builtin.machinePool.version }}' },
                },
              ],
            },
          ],
        },
      ],
    },
  })
  await env.settle()
}

type Pools = NonNullable<NonNullable<NonNullable<Cluster['spec']['topology']>['workers']>['machinePools']>

async function createCluster(machinePools: Pools): Promise<void> {
  await env.client.create(Cluster, {
    ...named('demo'),
    spec: {
      topology: { classRef: { name: 'pools' }, version: 'v1.35.0', controlPlane: { replicas: 1 }, workers: { machinePools } },
    },
  })
  await env.advance(minutes(1))
}

const upgrade = (version: string) =>
  env.client.patch(Cluster, key('demo'), { type: 'merge', body: { spec: { topology: { version } } } })
const setPools = (machinePools: Pools) =>
  env.client.patch(Cluster, key('demo'), { type: 'merge', body: { spec: { topology: { workers: { machinePools } } } } })
const pools = async () => (await env.client.list(MachinePool, { namespace: 'default' })).items
const poolOf = async (topologyName: string) =>
  (await pools()).find(({ metadata }) => metadata.labels?.['topology.cluster.x-k8s.io/pool-name'] === topologyName)!
const topologyReconciled = async () => {
  const { status, reason, message } = getCondition(await env.client.get(Cluster, key('demo')), 'TopologyReconciled')!
  return `${status} ${reason}${message ? `: ${message.replaceAll(/demo-(\w+)-[a-z0-9]{5}/g, 'demo-$1')}` : ''}`
}
const nodeVersions = async () =>
  (await env.management.workloads.clientFor(key('demo'))!.list(Node)).items.map(({ status }) => status?.nodeInfo?.kubeletVersion)

test('a topology creates MachinePools from their class, with metadata, variables and patches', async () => {
  env = await managementEnv({ runtime: noHooks(), shows: () => false })
  await createClass()
  const overrides = [{ name: 'nodeDelay', value: '3s' }]
  await createCluster([
    {
      class: 'worker',
      name: 'mp0',
      replicas: 2,
      metadata: { labels: { from: 'topology' } },
      deletion: { nodeDeletionTimeoutSeconds: 20 },
      variables: { overrides },
    },
  ])
  expect(await topologyReconciled()).toBe('True ReconcileSucceeded')
  const pool = await poolOf('mp0')
  const { template } = pool.spec
  expect(pool).toMatchObject({
    metadata: {
      labels: {
        from: 'topology',
        tier: 'blue',
        'cluster.x-k8s.io/cluster-name': 'demo',
        'topology.cluster.x-k8s.io/owned': '',
        'topology.cluster.x-k8s.io/pool-name': 'mp0',
      },
      annotations: { note: 'class' },
      ownerReferences: [{ kind: 'Cluster', name: 'demo' }],
    },
    spec: {
      replicas: 2,
      failureDomains: ['a'],
      template: {
        metadata: { labels: { from: 'topology', tier: 'blue' }, annotations: { note: 'class' } },
        spec: {
          version: 'v1.35.0',
          minReadySeconds: 1,
          deletion: { nodeDrainTimeoutSeconds: 30, nodeDeletionTimeoutSeconds: 20 },
        },
      },
    },
    status: { phase: 'Running', replicas: 2 },
  })
  expect(pool.metadata.name).toMatch(/^demo-mp0-[a-z0-9]{5}$/)
  const infrastructure = await env.client.get(LocalMachinePool, key(template.spec.infrastructureRef.name))
  expect(infrastructure).toMatchObject({
    metadata: {
      labels: { shelf: '1', 'topology.cluster.x-k8s.io/pool-name': 'mp0' },
      annotations: {
        pool: 'mp0/v1.35.0',
        'cluster.x-k8s.io/cloned-from-name': 'pools',
        'cluster.x-k8s.io/cloned-from-groupkind': 'LocalMachinePoolTemplate.infrastructure.capstan.dev',
      },
    },
    spec: { template: { simulated: { nodeDelay: '3s' } } },
  })
  expect(infrastructure.metadata.ownerReferences?.map(({ kind, controller }) => [kind, controller])).toEqual([
    ['Cluster', undefined],
    ['MachinePool', true],
  ])
  expect((await env.client.get(Cluster, key('demo'))).status?.workers).toMatchObject({ desiredReplicas: 2, replicas: 2 })
})

test('the infrastructure of a pool is changed in place; a pool that is removed from the topology is deleted with its objects', async () => {
  env = await managementEnv({ runtime: noHooks(), shows: () => false })
  await createClass()
  await createCluster([{ class: 'worker', name: 'mp0', replicas: 1 }])
  const { infrastructureRef } = (await poolOf('mp0')).spec.template.spec
  await setPools([{ class: 'worker', name: 'mp0', replicas: 2, variables: { overrides: [{ name: 'nodeDelay', value: '5s' }] } }])
  await env.advance(minutes(1))
  const updatedPool = await poolOf('mp0')
  expect(updatedPool.spec.template.spec.infrastructureRef).toEqual(infrastructureRef)
  expect(updatedPool.status).toMatchObject({ phase: 'Running', replicas: 2 })
  const infrastructure = await env.client.get(LocalMachinePool, key(infrastructureRef.name))
  expect(infrastructure.spec?.template?.simulated?.nodeDelay).toBe('5s')

  await setPools([{ class: 'worker', name: 'mp1', replicas: 1 }])
  await env.advance(minutes(1))
  expect((await pools()).map(({ metadata }) => metadata.labels?.['topology.cluster.x-k8s.io/pool-name'])).toEqual(['mp1'])
  expect((await env.client.list(LocalMachinePool, { namespace: 'default' })).items).toHaveLength(1)
  expect((await env.client.list(LocalBootstrapConfig, { namespace: 'default' })).items).toHaveLength(2)
})

test('a pool whose deletion is rejected is reported, and its deletion is retried', async () => {
  let isRejected = true
  env = await managementEnv({
    runtime: noHooks(),
    shows: () => false,
    between: (transport) =>
      withSend(transport, async (request, signal) => {
        const isDeletion = request.verb === 'delete' && request.plural === MachinePool.plural
        if (isDeletion && isRejected) throw new StatusError('Forbidden', 'the pool is in use')
        return transport.send(request, signal)
      }),
  })
  await createClass()
  await createCluster([{ class: 'worker', name: 'mp0', replicas: 1 }])
  await setPools([{ class: 'worker', name: 'mp1', replicas: 1 }])
  await env.advance(minutes(1))
  // Upstream: deleteMachinePool in reconcile_state.go
  expect(await topologyReconciled()).toBe(
    'False ReconcileFailed: error reconciling the Cluster topology: failed to delete MachinePool default/demo-mp0: the pool is in use',
  )
  isRejected = false
  await env.advance(minutes(20))
  expect(await poolOf('mp0')).toBeUndefined()
  expect(await topologyReconciled()).toBe('True ReconcileSucceeded')
})

test('new pools are created although the update of an existing pool fails', async () => {
  env = await managementEnv({ runtime: noHooks(), shows: () => false })
  await createClass()
  await createCluster([{ class: 'worker', name: 'mp0', replicas: 1 }])
  const [worker] = (await env.client.get(ClusterClass, key('pools'))).spec.workers!.machinePools!
  // Bootstrap objects of existing pools cannot change to another kind.
  const changed = { ...worker, bootstrap: templateRef('controlplane', 'LocalControlPlaneTemplate') }
  const machinePools = [changed, { ...worker, class: 'other' }]
  await env.client.patch(ClusterClass, key('pools'), { type: 'merge', body: { spec: { workers: { machinePools } } } })
  await setPools([
    { class: 'worker', name: 'mp0', replicas: 1 },
    { class: 'other', name: 'mp1', replicas: 1 },
  ])
  await env.advance(minutes(1))
  // Upstream: reconcileMachinePools in reconcile_state.go
  expect(await topologyReconciled()).toContain(
    'False ReconcileFailed: error reconciling the Cluster topology: failed to reconcile MachinePool default/demo-mp0: ',
  )
  expect(await poolOf('mp1')).toMatchObject({ status: { phase: 'Running', replicas: 1 } })
})

test('pools upgrade after the control plane, one after the other, between BeforeWorkersUpgrade and AfterWorkersUpgrade', async () => {
  const calls: string[] = []
  const recordCall = (name: string) => () => void calls.push(name)
  env = await managementEnv({
    shows: () => false,
    runtime: scriptedRuntime({
      AfterControlPlaneUpgrade: recordCall('AfterControlPlaneUpgrade'),
      BeforeWorkersUpgrade: ({ nth }) => {
        calls.push('BeforeWorkersUpgrade')
        return nth === 1 ? { wait: 20, message: 'not yet' } : undefined
      },
      AfterWorkersUpgrade: recordCall('AfterWorkersUpgrade'),
      AfterClusterUpgrade: recordCall('AfterClusterUpgrade'),
    }),
  })
  await createClass()
  await createCluster([
    { class: 'worker', name: 'mp0', replicas: 1 },
    { class: 'worker', name: 'mp1', replicas: 1 },
  ])
  await upgrade('v1.36.0')
  const versionsSeen = new Set<string>()
  const texts = new Set<string>()
  for (let second = 0; second < 120; second++) {
    await env.advance(seconds(1))
    const [firstPool, secondPool] = [await poolOf('mp0'), await poolOf('mp1')]
    versionsSeen.add(`${firstPool.spec.template.spec.version} ${secondPool.spec.template.spec.version} ${calls.at(-1)}`)
    texts.add(await topologyReconciled())
  }
  expect([...versionsSeen]).toEqual([
    'v1.35.0 v1.35.0 BeforeWorkersUpgrade',
    'v1.36.0 v1.35.0 BeforeWorkersUpgrade',
    'v1.36.0 v1.36.0 BeforeWorkersUpgrade',
    'v1.36.0 v1.36.0 AfterClusterUpgrade',
  ])
  expect(calls).toEqual([
    'AfterControlPlaneUpgrade',
    'BeforeWorkersUpgrade',
    'BeforeWorkersUpgrade',
    'AfterWorkersUpgrade',
    'AfterClusterUpgrade',
  ])
  expect([...texts]).toContain(
    'False ClusterUpgrading: Cluster is upgrading to v1.36.0\n  * MachinePool demo-mp0 upgrading to version v1.36.0\n  * MachinePool demo-mp1 pending upgrade to version v1.36.0',
  )
  expect(await topologyReconciled()).toBe('True ReconcileSucceeded')
  expect(await nodeVersions()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})

test('a pool with defer-upgrade is upgraded after the annotation is removed; until then another upgrade is rejected', async () => {
  env = await managementEnv({ runtime: noHooks(), shows: () => false })
  await createClass()
  const deferred = { annotations: { 'topology.cluster.x-k8s.io/defer-upgrade': '' } }
  await createCluster([
    { class: 'worker', name: 'mp0', replicas: 1, metadata: deferred },
    { class: 'worker', name: 'mp1', replicas: 1 },
  ])
  await upgrade('v1.36.0')
  await env.advance(minutes(2))
  expect(await topologyReconciled()).toBe(
    'False MachinePoolsUpgradeDeferred: Cluster is upgrading to v1.36.0\n  * MachinePool demo-mp0 upgrade to version v1.36.0 deferred using topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence annotations',
  )
  expect((await poolOf('mp1')).spec.template.spec.version).toBe('v1.36.0')
  const { name } = (await poolOf('mp0')).metadata
  // Without this patch, admission would reject the upgrade because of the pending AfterClusterUpgrade hook.
  const annotations = { 'runtime.cluster.x-k8s.io/pending-hooks': null }
  await env.client.patch(Cluster, key('demo'), { type: 'merge', body: { metadata: { annotations } } })
  await expect(upgrade('v1.36.1')).rejects.toSatisfy(
    (err: Error) =>
      isReason(err, 'Invalid') && err.message.includes(`there are still MachinePools completing a previous upgrade: [${name}]`),
  )
  await setPools([
    { class: 'worker', name: 'mp0', replicas: 1 },
    { class: 'worker', name: 'mp1', replicas: 1 },
  ])
  await env.advance(minutes(2))
  expect(await topologyReconciled()).toBe('True ReconcileSucceeded')
  expect(await nodeVersions()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})
