/**
 * Tests LocalMachinePools with core's controllers, on the virtual clock. `npm run interop -- old-contract` runs this file with contract
 * v1beta1.
 */
import { Cluster, Machine, MachinePool, ReplicasManagedByAnnotation } from '@capstan/api'
import { draft, isTrue, legacyConditionsOf, minutes, Node, orAbsent, Secret, seconds } from '@capstan/kube'
import { localProvider, type ProviderEnv, providerEnv, testContract } from '@capstan/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LocalBootstrapConfig } from '../../kinds/local-bootstrap-config.ts'
import { LocalCluster } from '../../kinds/local-cluster.ts'
import { LocalControlPlane } from '../../kinds/local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from '../../kinds/local-machine.ts'
import { LocalMachinePool } from '../../kinds/local-machine-pool.ts'

let env: ProviderEnv
beforeEach(async () => {
  env = await providerEnv({ ...localProvider(), contract: testContract() })
})
afterEach(() => env.close())

const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const key = (name: string) => ({ name, namespace: 'default' })
const ref = (group: string, kind: string, name: string) => ({ apiGroup: `${group}.capstan.dev`, kind, name })

async function createCluster(): Promise<void> {
  const { v1beta2Client: client } = env
  await client.create(LocalMachineTemplate, { ...named('control-plane'), spec: { template: { spec: {} } } })
  await client.create(LocalCluster, { ...named('demo'), spec: {} })
  await client.create(LocalControlPlane, {
    ...named('demo'),
    spec: {
      replicas: 1,
      version: 'v1.35.0',
      machineTemplate: { spec: { infrastructureRef: ref('infrastructure', 'LocalMachineTemplate', 'control-plane') } },
    },
  })
  await client.create(Cluster, {
    ...named('demo'),
    spec: {
      infrastructureRef: ref('infrastructure', 'LocalCluster', 'demo'),
      controlPlaneRef: ref('controlplane', 'LocalControlPlane', 'demo'),
    },
  })
}

type PoolSpec = NonNullable<LocalMachinePool['spec']>

async function createPool(
  infrastructure: PoolSpec = {},
  spec: Partial<MachinePool['spec']> = {},
  annotations: { [key: string]: string } = {},
): Promise<void> {
  await createCluster()
  const { v1beta2Client: client } = env
  await client.create(LocalMachinePool, { ...named('pool'), spec: infrastructure })
  await client.create(LocalBootstrapConfig, { ...named('pool'), spec: { nodeLabels: { tier: 'blue' }, ttlSeconds: 0 } })
  await client.create(MachinePool, {
    metadata: { ...named('pool').metadata, annotations },
    spec: {
      clusterName: 'demo',
      replicas: 2,
      template: {
        spec: {
          clusterName: 'demo',
          version: 'v1.35.0',
          bootstrap: { configRef: ref('bootstrap', 'LocalBootstrapConfig', 'pool') },
          infrastructureRef: ref('infrastructure', 'LocalMachinePool', 'pool'),
        },
      },
      ...spec,
    },
  })
  await env.advance(seconds(20))
}

const pool = () => env.v1beta2Client.get(MachinePool, key('pool'))
const localPool = () => env.v1beta2Client.get(LocalMachinePool, key('pool'))
const patchPool = (spec: object) => env.v1beta2Client.patch(MachinePool, key('pool'), { type: 'merge', body: { spec } })
const patchLocalPool = (spec: object) => env.v1beta2Client.patch(LocalMachinePool, key('pool'), { type: 'merge', body: { spec } })
const workload = async () => env.connect(atob((await env.client.get(Secret, key('demo-kubeconfig'))).data!['value']!))
const nodes = async () => (await (await workload()).list(Node)).items.filter(({ metadata }) => metadata.name.startsWith('pool-'))
const versions = async () => (await nodes()).map(({ status }) => status?.nodeInfo?.kubeletVersion)
const machines = async () =>
  (await env.v1beta2Client.list(Machine, { namespace: 'default' })).items.filter(({ metadata }) =>
    metadata.name.startsWith('pool-'),
  )
const instances = async () => (await localPool()).status?.instances ?? []

describe.each([
  ['without MachinePool Machines', false],
  ['with MachinePool Machines', true],
])('a LocalMachinePool %s', (_, withMachines) => {
  const spec = { machines: withMachines }

  test('creates its LocalMachines, and its MachinePool is Running', async () => {
    await createPool(spec)
    expect((await pool()).status).toMatchObject({
      phase: 'Running',
      replicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      upToDateReplicas: 2,
      versions: [{ version: 'v1.35.0', replicas: 2 }],
    })
    const { providerIDList, template } = (await pool()).spec
    expect((await nodes()).map(({ spec }) => spec?.providerID)).toEqual(providerIDList)
    expect(template.spec.bootstrap.dataSecretName).toBe('pool')
    const [node] = await nodes()
    expect(node?.metadata.labels?.['tier']).toBe('blue')
    expect(node?.spec?.taints ?? []).toEqual([])
    expect((await machines()).map(({ status }) => status?.phase)).toEqual(withMachines ? ['Running', 'Running'] : [])
    // In contract v1beta1 `ready` and `initialization.provisioned` are the same field.
    const ready = testContract() === 'v1beta2' ? { ready: true } : {}
    expect((await localPool()).status).toMatchObject({ ...ready, initialization: { provisioned: true }, replicas: 2 })
    expect(isTrue(await localPool(), 'Ready')).toBe(true)
  })

  test('scales up and down', async () => {
    await createPool(spec)
    await patchPool({ replicas: 4 })
    await env.advance(seconds(30))
    expect(await nodes()).toHaveLength(4)
    await patchPool({ replicas: 1 })
    await env.advance(seconds(60))
    expect((await pool()).status).toMatchObject({ phase: 'Running', replicas: 1, readyReplicas: 1 })
    expect(await nodes()).toHaveLength(1)
    expect(await machines()).toHaveLength(withMachines ? 1 : 0)
    await patchPool({ replicas: 0 })
    await env.advance(seconds(60))
    expect((await pool()).status).toMatchObject({ phase: 'Running', replicas: 0 })
    expect(await nodes()).toEqual([])
  })

  test('replaces its two LocalMachines one by one for a new version, with two or three ready Nodes at any time', async () => {
    await createPool({ ...spec, template: { simulated: { provisioningDelay: '2s', nodeDelay: '1s', deletionDelay: '3s' } } })
    const readyCounts: number[] = []
    await patchPool({ template: { spec: { version: 'v1.36.0' } } })
    for (let second = 0; second < 60; second++) {
      await env.advance(seconds(1))
      readyCounts.push(
        (await nodes()).filter((node) =>
          node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
        ).length,
      )
    }
    expect(Math.min(...readyCounts)).toBe(2)
    expect(Math.max(...readyCounts)).toBe(3)
    expect(await versions()).toEqual(['v1.36.0', 'v1.36.0'])
    expect((await pool()).status).toMatchObject({ phase: 'Running', versions: [{ version: 'v1.36.0', replicas: 2 }] })
  })

  test('replaces its LocalMachines when its own template changes', async () => {
    await createPool(spec)
    const namesBefore = (await instances()).map(({ instanceName }) => instanceName)
    await patchLocalPool({ template: { simulated: { nodeDelay: '1s' } } })
    await env.advance(seconds(60))
    const namesAfter = (await instances()).map(({ instanceName }) => instanceName)
    expect(namesAfter).toHaveLength(2)
    expect(namesAfter.filter((name) => namesBefore.includes(name))).toEqual([])
  })

  test('replaces lost LocalMachines', async () => {
    await createPool(spec)
    const [lostInstance] = await instances()
    await patchLocalPool({ simulated: { lost: [lostInstance!.instanceName] } })
    await env.advance(seconds(60))
    const names = (await instances()).map(({ instanceName }) => instanceName)
    expect(names).toHaveLength(2)
    expect(names).not.toContain(lostInstance!.instanceName)
    expect((await nodes()).map(({ metadata }) => metadata.name)).toEqual(names)
    expect(await machines()).toHaveLength(withMachines ? 2 : 0)
    expect((await pool()).status?.phase).toBe('Running')
  })

  test('is deleted with its LocalMachines, its MachinePool and all Machines when its Cluster is deleted', async () => {
    await createPool(spec)
    await env.v1beta2Client.delete(Cluster, key('demo'))
    await env.advance(minutes(2))
    expect(await orAbsent(env.v1beta2Client.get(Cluster, key('demo')))).toBeUndefined()
    for (const kind of [LocalMachine, LocalMachinePool, MachinePool, Machine]) {
      expect((await env.v1beta2Client.list(kind as typeof Machine, { namespace: 'default' })).items).toEqual([])
    }
  })

  test('writes nothing when idle', async () => {
    await createPool(spec)
    await env.advance(minutes(1))
    const revisions = async () =>
      Promise.all([env.client, await workload()].map(async (client) => (await client.list(Secret)).metadata?.resourceVersion))
    const revisionsBefore = await revisions()
    await env.advance(minutes(10))
    expect(await revisions()).toEqual(revisionsBefore)
  })
})

describe('a LocalMachinePool', () => {
  test('is deleted, and its Nodes are deleted, when its MachinePool is deleted', async () => {
    await createPool()
    await env.v1beta2Client.delete(MachinePool, key('pool'))
    await env.advance(seconds(30))
    expect(await orAbsent(pool())).toBeUndefined()
    expect(await orAbsent(localPool())).toBeUndefined()
    expect(await nodes()).toEqual([])
  })

  test('spreads its LocalMachines over the failure domains of its MachinePool', async () => {
    await createPool({}, { replicas: 4, failureDomains: ['a', 'b'] })
    const inDomain = async (domain: string) => (await instances()).filter(({ failureDomain }) => failureDomain === domain)
    expect(await inDomain('a')).toHaveLength(2)
    expect(await inDomain('b')).toHaveLength(2)
  })

  test('lists `ghosts` at once and the provider IDs of its LocalMachines after `listDelay`; its MachinePool has no nodeRefs for `ghosts`', async () => {
    await createPool({ simulated: { listDelay: '60s', ghosts: ['local:////ghost'] } })
    expect((await localPool()).spec?.providerIDList).toEqual(['local:////ghost'])
    await env.advance(seconds(60))
    expect((await localPool()).spec?.providerIDList).toHaveLength(3)
    expect((await pool()).status).toMatchObject({ phase: 'Running', replicas: 2 })
    expect((await pool()).status?.nodeRefs).toHaveLength(2)
  })

  test('is provisioned after failures, which a condition of its MachinePool reports', async () => {
    await createPool({ simulated: { provisioningDelay: '2s', failure: { at: 'provisioning', message: 'no quota', times: 5 } } })
    expect(legacyConditionsOf(await pool()).find(({ type }) => type === 'InfrastructureReady')).toMatchObject({
      status: 'False',
      message: '* Provisioned: no quota',
    })
    await env.advance(minutes(1))
    expect((await pool()).status?.phase).toBe('Running')
  })

  test('writes the replicas of its simulated autoscaler to its MachinePool', async () => {
    await createPool({ simulated: { replicas: 3 } }, {}, { [ReplicasManagedByAnnotation]: 'local-autoscaler' })
    expect(await pool()).toMatchObject({ spec: { replicas: 3 }, status: { phase: 'Running', replicas: 3 } })
    await patchLocalPool({ simulated: { replicas: 1 } })
    await env.advance(seconds(30))
    expect(await pool()).toMatchObject({ spec: { replicas: 1 }, status: { phase: 'Running', replicas: 1 } })
  })

  test('replaces a Machine that a user deletes, and its Node', async () => {
    await createPool({ machines: true })
    const [machine] = await machines()
    await env.v1beta2Client.delete(Machine, key(machine!.metadata.name))
    await env.advance(seconds(60))
    const names = (await machines()).map(({ metadata }) => metadata.name)
    expect(names).toHaveLength(2)
    expect(names).not.toContain(machine!.metadata.name)
    expect((await nodes()).map(({ metadata }) => metadata.name)).toEqual(names)
  })

  test('removes Machines with the annotation delete-machine first', async () => {
    await createPool({ machines: true }, { replicas: 3 })
    const marked = draft((await machines())[1]!)
    const annotations = { 'cluster.x-k8s.io/delete-machine': '' }
    await env.v1beta2Client.patch(Machine, key(marked.metadata.name), { type: 'merge', body: { metadata: { annotations } } })
    await patchPool({ replicas: 2 })
    await env.advance(seconds(60))
    const names = (await machines()).map(({ metadata }) => metadata.name)
    expect(names).toHaveLength(2)
    expect(names).not.toContain(marked.metadata.name)
  })
})
