/** Tests of the rules for core's handling of InfraMachine, BootstrapConfig and InfraMachinePool objects. */
import { Machine, MachineHealthCheck, MachinePool } from '@capstan/api'
import { getCondition, Node, orAbsent, seconds } from '@capstan/kube'
import { aMachine, aMachinePool, type CoreEnv, conditionText, DevConfig, DevMachine, DevMachinePool } from '@capstan/testing'
import { expect } from 'vitest'
import { testRule } from './rule-test.suite.ts'

const provisioned = { initialization: { provisioned: true } }
const created = { initialization: { dataSecretCreated: true } }
const addresses = [{ type: 'InternalIP', address: '10.0.0.1' }]

const machine = (env: CoreEnv) => env.get(Machine, 'm1')
const pool = (env: CoreEnv) => env.get(MachinePool, 'mp')

/** Creates a Machine in a provisioned Cluster, with a bootstrap config and an infrastructure machine that have no status. */
async function createMachineWithObjects(env: CoreEnv): Promise<void> {
  await env.provisionCluster()
  await env.create(Machine, 'm1', { spec: aMachine().spec })
  await env.create(DevConfig, 'm1')
  await env.create(DevMachine, 'm1')
  await env.settle()
}

/** Creates a MachinePool in a provisioned Cluster, with bootstrap data and an infrastructure machine pool that has no status. */
async function createPoolWithObjects(env: CoreEnv, infra: object = {}): Promise<void> {
  await env.provisionCluster()
  await env.create(DevConfig, 'mp')
  await env.create(DevMachinePool, 'mp', infra)
  await env.create(MachinePool, 'mp', { spec: aMachinePool().spec })
  await env.patch(DevConfig, 'mp', { status: { ...created, dataSecretName: 'mp-data' } })
}

async function createNodeWithId(env: CoreEnv, name: string, spec: object = {}): Promise<void> {
  await env.workload.create(Node, { metadata: { name }, spec: { providerID: `dev:///${name}`, ...spec } } as never)
}

const ownedBy = (kind: string, { metadata }: { metadata: { name: string; uid: string } }) => ({
  labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
  ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind, name: metadata.name, uid: metadata.uid, controller: true }],
})

testRule('core.infra-machine.owner', async (env) => {
  await createMachineWithObjects(env)
  expect((await env.get(DevMachine, 'm1')).metadata).toMatchObject(ownedBy('Machine', await machine(env)))
})

testRule('core.bootstrap-config.owner', async (env) => {
  await createMachineWithObjects(env)
  expect((await env.get(DevConfig, 'm1')).metadata).toMatchObject(ownedBy('Machine', await machine(env)))
})

testRule('core.infra-machine-pool.owner', async (env) => {
  await createPoolWithObjects(env)
  expect((await env.get(DevMachinePool, 'mp')).metadata).toMatchObject(ownedBy('MachinePool', await pool(env)))
})

testRule('core.infra-machine.provider-id', async (env) => {
  await createMachineWithObjects(env)
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1' } })
  expect((await machine(env)).spec.providerID).toBeUndefined()
  await env.patch(DevMachine, 'm1', { status: provisioned })
  expect((await machine(env)).spec.providerID).toBe('dev:///m1')
})

testRule('core.infra-machine.failure-domain', async (env) => {
  await createMachineWithObjects(env)
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1' }, status: { failureDomain: 'b' } })
  expect((await machine(env)).status?.failureDomain).toBeUndefined()
  await env.patch(DevMachine, 'm1', { status: provisioned })
  const { spec, status } = await machine(env)
  expect([spec.failureDomain, status?.failureDomain]).toEqual([undefined, 'b'])
})

testRule('core.infra-machine.spec-failure-domain', async (env) => {
  await createMachineWithObjects(env)
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1', failureDomain: 'b' }, status: provisioned })
  expect((await machine(env)).spec.failureDomain).toBe('b')
})

testRule('core.infra-machine.addresses', async (env) => {
  await createMachineWithObjects(env)
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1' }, status: { addresses } })
  expect((await machine(env)).status?.addresses).toBeUndefined()
  await env.patch(DevMachine, 'm1', { status: provisioned })
  expect((await machine(env)).status?.addresses).toEqual(addresses)
})

testRule('core.infra-machine.initialization', async (env) => {
  await createMachineWithObjects(env)
  const state = async () => (await machine(env)).status?.initialization?.infrastructureProvisioned ?? false
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1' }, status: { initialization: { provisioned: false } } })
  expect(await state()).toBe(false)
  expect(conditionText(await machine(env), 'InfrastructureReady')).toBe(
    'False NotReady: DevMachine status.initialization.provisioned is false',
  )
  await env.patch(DevMachine, 'm1', { status: provisioned })
  expect(await state()).toBe(true)
})

testRule('core.bootstrap-config.initialization', async (env) => {
  await createMachineWithObjects(env)
  const state = async () => (await machine(env)).status?.initialization?.bootstrapDataSecretCreated ?? false
  await env.patch(DevConfig, 'm1', { status: { initialization: { dataSecretCreated: false }, dataSecretName: 'm1-data' } })
  expect(await state()).toBe(false)
  expect(conditionText(await machine(env), 'BootstrapConfigReady')).toBe(
    'False NotReady: DevConfig status.initialization.dataSecretCreated is false',
  )
  await env.patch(DevConfig, 'm1', { status: created })
  expect(await state()).toBe(true)
})

testRule('core.bootstrap-config.data-secret', async (env) => {
  await createMachineWithObjects(env)
  await env.patch(DevConfig, 'm1', { status: { dataSecretName: 'm1-data' } })
  expect((await machine(env)).spec.bootstrap.dataSecretName).toBeUndefined()
  await env.patch(DevConfig, 'm1', { status: created })
  expect((await machine(env)).spec.bootstrap.dataSecretName).toBe('m1-data')
})

const conditionRules = [
  ['core.infra-machine.conditions', DevMachine, 'InfrastructureReady'],
  ['core.bootstrap-config.conditions', DevConfig, 'BootstrapConfigReady'],
] as const
for (const [rule, kind, type] of conditionRules) {
  testRule(rule, async (env) => {
    await createMachineWithObjects(env)
    const conditionAfter = async (ready: object) => {
      await env.patch(kind, 'm1', { status: { conditions: [{ type: 'Ready', ...ready }] } })
      return getCondition(await machine(env), type)
    }
    const reported = { status: 'False', reason: 'Booting', message: 'soon' }
    expect(await conditionAfter({ ...reported, severity: 'Info' })).toMatchObject(reported)
    expect(await conditionAfter({ status: 'False', severity: 'Info' })).toMatchObject({
      status: 'False',
      reason: 'NoReasonReported',
      lastTransitionTime: expect.any(String),
      observedGeneration: (await machine(env)).metadata.generation,
    })
    // Upstream assumes that a condition that is True without a reason is a v1beta1 condition, and sets the reason `Ready`.
    expect(await conditionAfter({ status: 'True' })).toMatchObject({ status: 'True', reason: 'Ready' })
  })
}

const failureRules = [
  ['core.infra-machine.terminal-failures', DevMachine, 'infra.example.com/v1beta1, Kind=DevMachine'],
  ['core.bootstrap-config.terminal-failures', DevConfig, 'bootstrap.example.com/v1beta1, Kind=DevConfig'],
] as const
for (const [rule, kind, name] of failureRules) {
  testRule(rule, async (env) => {
    await env.provisionCluster()
    const labels = { pool: 'workers' }
    await env.provisionMachine('m1', { labels })
    const checks = { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 300 }] }
    await env.create(MachineHealthCheck, 'check', { spec: { clusterName: 'demo', selector: { matchLabels: labels }, checks } })
    await env.patch(kind, 'm1', { status: { failureReason: 'Broken', failureMessage: 'for good' } })
    await env.advance(seconds(600))
    const failed = await machine(env)
    expect(failed.status?.deprecated?.v1beta1).toMatchObject({
      failureReason: 'Broken',
      failureMessage: `Failure detected from referenced resource ${name} with name "m1": for good`,
    })
    expect(failed.status?.phase).toBe('Running')
    expect(conditionText(failed, 'Available')).toBe('True Available')
    expect(conditionText(failed, 'HealthCheckSucceeded')).toBe('True HealthCheckSucceeded')
    expect(conditionText(failed, 'OwnerRemediated')).toBeUndefined()
  })
}

testRule('core.bootstrap-config.taint', async (env) => {
  await createMachineWithObjects(env)
  await env.patch(Machine, 'm1', { metadata: { labels: { 'node-role.kubernetes.io/worker': '' } } })
  await env.patch(DevConfig, 'm1', { status: { ...created, dataSecretName: 'm1-data' } })
  const taint = (key: string) => ({ key, effect: 'NoSchedule' })
  const taints = [taint('example.com/own'), taint('node.cluster.x-k8s.io/uninitialized')]
  await createNodeWithId(env, 'm1', { taints })
  await env.patch(DevMachine, 'm1', { spec: { providerID: 'dev:///m1' }, status: provisioned })
  await env.advance(seconds(30))
  const { metadata, spec } = await env.workload.get(Node, { name: 'm1' })
  expect(metadata.labels).toMatchObject({ 'node-role.kubernetes.io/worker': '' })
  expect(spec?.taints).toEqual([taint('example.com/own')])
})

const reportPool = (env: CoreEnv, ids: readonly string[], status: object = {}) =>
  env.patch(DevMachinePool, 'mp', {
    spec: { providerIDList: ids.map((id) => `dev:///${id}`) },
    status: { ...provisioned, replicas: ids.length, ...status },
  })

testRule('core.infra-machine-pool.provider-id-list', async (env) => {
  await createPoolWithObjects(env)
  for (const name of ['a', 'b', 'other']) await createNodeWithId(env, name)
  await reportPool(env, ['a', 'b'])
  expect((await pool(env)).spec.providerIDList).toEqual(['dev:///a', 'dev:///b'])
  expect((await pool(env)).status?.nodeRefs?.map(({ name }) => name)).toEqual(['a', 'b'])
  await reportPool(env, ['b'])
  await env.advance(seconds(30))
  expect(await orAbsent(env.workload.get(Node, { name: 'a' }))).toBeUndefined()
  expect((await env.workload.list(Node)).items.map(({ metadata }) => metadata.name)).toEqual(['b', 'other'])
})

testRule('core.infra-machine-pool.replicas', async (env) => {
  await createPoolWithObjects(env)
  await reportPool(env, ['a', 'b', 'c'])
  expect((await pool(env)).status?.replicas).toBe(3)
})

testRule('core.infra-machine-pool.initialization', async (env) => {
  await createPoolWithObjects(env)
  const state = async () => {
    const { spec, status } = await pool(env)
    return [status?.initialization?.infrastructureProvisioned, spec.providerIDList, status?.replicas ?? 0]
  }
  await reportPool(env, ['a'], { initialization: { provisioned: false } })
  expect(await state()).toEqual([false, undefined, 0])
  await env.patch(DevMachinePool, 'mp', { status: provisioned })
  expect(await state()).toEqual([true, ['dev:///a'], 1])
})

testRule('core.infra-machine-pool.terminal-failures', async (env) => {
  await createPoolWithObjects(env)
  await createNodeWithId(env, 'a')
  await reportPool(env, ['a'], { failureReason: 'Quota', failureMessage: 'none left' })
  expect((await pool(env)).status).toMatchObject({
    replicas: 1,
    nodeRefs: [{ name: 'a' }],
    deprecated: {
      v1beta1: {
        failureReason: 'Quota',
        failureMessage:
          'Failure detected from referenced resource infra.example.com/v1beta1, Kind=DevMachinePool with name "mp": none left',
      },
    },
  })
})

testRule('core.infra-machine-pool.machine-kind', async (env) => {
  await createPoolWithObjects(env)
  const labels = { 'cluster.x-k8s.io/pool-name': 'mp', 'cluster.x-k8s.io/cluster-name': 'demo' }
  await reportPool(env, ['a', 'b'], { infrastructureMachineKind: 'DevMachine' })
  for (const name of ['a', 'b']) {
    await env.create(DevMachine, name, { metadata: { labels }, spec: { providerID: `dev:///${name}` } })
    await env.patch(DevMachine, name, { status: provisioned })
  }
  await env.advance(seconds(30))
  const { items } = await env.client.list(Machine, { namespace: 'default' })
  expect(items).toMatchObject(
    ['a', 'b'].map((name) => ({
      metadata: { name, ownerReferences: [{ kind: 'MachinePool', name: 'mp' }] },
      spec: { infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachine', name }, providerID: `dev:///${name}` },
    })),
  )
})

testRule('core.infra-machine-pool.informational', async (env) => {
  await createPoolWithObjects(env, { spec: { providerID: 'dev:///group' } })
  await reportPool(env, ['a'])
  const poolBefore = await pool(env)
  await env.patch(DevMachinePool, 'mp', {
    spec: { providerID: 'dev:///other' },
    status: { instances: [{ providerID: 'dev:///z', addresses: [] }, { providerID: 'dev:///y' }] },
  })
  expect(await pool(env)).toEqual(poolBefore)
})
