/**
 * Tests of the rules about permissions, the flags --namespace and --watch-filter, pausing, conditions of contract v1beta1, Nodes and
 * in-place updates, each in every contract version of its rule.
 */
import { Cluster, Machine, MachinePool } from '@capstan/api'
import {
  ClusterRole,
  ClusterRoleBinding,
  createClient,
  type DeclaredKind,
  getCondition,
  type KubeObject,
  legacyConditionsOf,
  Namespace,
  Node,
  orAbsent,
  seconds,
  seededRandom,
  SubjectAccessReview,
  VirtualClock,
} from '@capstan/kube'
import { createApiServer } from '@capstan/kubernetes-kinds'
import {
  aCluster,
  aMachine,
  aMachinePool,
  type CoreEnv,
  conditionText,
  coreEnv,
  DevCluster,
  DevConfig,
  DevControlPlane,
  DevMachine,
  DevMachinePool,
  scriptedRuntime,
} from '@capstan/testing'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'vitest'
import { watchLimits } from '../../../cli/src/manager/flags.ts'
import { components } from '../../../cli/src/manifests/components.ts'
import { testRule } from './rule-test.suite.ts'

const provisioned = { initialization: { provisioned: true } }
const initialized = { initialization: { controlPlaneInitialized: true } }
const created = { initialization: { dataSecretCreated: true }, dataSecretName: 'data' }
const key = (name: string) => ({ name, namespace: 'default' })

testRule('core.rbac-aggregation', async () => {
  const server = createApiServer({ clock: new VirtualClock(), random: seededRandom(1), authorization: ['RBAC'] })
  try {
    await server.ready
    const admin = createClient(server.transport({ name: 'admin', groups: ['system:masters'], agent: 'test' }))
    const options = { provider: 'core', image: 'capstan', version: 'v1.0.0', certificates: 'self-managed', replicas: 1 } as const
    for (const manifest of components(options)) {
      const kind = [Namespace, ClusterRole, ClusterRoleBinding].find((candidate) => candidate.kind === manifest.kind)
      if (kind) await admin.create(kind as DeclaredKind, manifest as unknown as KubeObject)
    }
    const mayPatch = async () => {
      const { status } = await admin.create(SubjectAccessReview, {
        metadata: { name: '' },
        spec: {
          user: 'system:serviceaccount:capi-system:capi-manager',
          resourceAttributes: { group: 'infra.example.com', resource: 'devclusters', verb: 'patch', namespace: 'default' },
        },
      })
      return status?.allowed
    }
    expect(await mayPatch()).toBe(false)
    await admin.create(ClusterRole, {
      metadata: { name: 'provider', labels: { 'cluster.x-k8s.io/aggregate-to-manager': 'true' } },
      rules: [{ apiGroups: ['infra.example.com'], resources: ['*'], verbs: ['get', 'list', 'watch', 'patch'] }],
    })
    for (let iteration = 0; iteration < 5; iteration++) await setImmediate()
    expect(await mayPatch()).toBe(true)
  } finally {
    await server.close()
  }
})

testRule(
  'core.watch-filter',
  async (env) => {
    await env.client.create(Namespace, { metadata: { name: 'elsewhere' } })
    const clusters = [
      { name: 'demo', namespace: 'default', labels: { 'cluster.x-k8s.io/watch-filter': 'mine' } },
      { name: 'theirs', namespace: 'default', labels: { 'cluster.x-k8s.io/watch-filter': 'theirs' } },
      { name: 'demo', namespace: 'elsewhere', labels: { 'cluster.x-k8s.io/watch-filter': 'mine' } },
    ]
    for (const { labels, ...metadata } of clusters) {
      const ref = { apiGroup: 'infra.example.com', kind: 'DevCluster', name: metadata.name }
      await env.client.create(DevCluster, { metadata } as never)
      await env.client.create(Cluster, {
        metadata: { ...metadata, labels },
        spec: { ...aCluster().spec, infrastructureRef: ref },
      })
    }
    await env.settle()
    const ownerCounts = await Promise.all(
      clusters.map(async (at) => ((await env.client.get(DevCluster, at)).metadata.ownerReferences ?? []).length),
    )
    expect(ownerCounts).toEqual([1, 0, 0])
  },
  (contract) => coreEnv({ contract, limits: watchLimits({ namespace: 'default', watchFilter: 'mine' }) }),
)

/** Returns the metadata that core has written to the provider's object. */
const writtenMetadata = async (env: CoreEnv, kind: DeclaredKind, name: string) => {
  const { labels, ownerReferences, finalizers } = (await env.get(kind, name)).metadata
  return { labels, ownerReferences, finalizers }
}
const untouched = { labels: undefined, ownerReferences: undefined, finalizers: undefined }

const pausesOfCluster = [
  ['core.infra-cluster.pausing', DevCluster, provisioned, 'infrastructureProvisioned'],
  ['core.control-plane.pausing', DevControlPlane, initialized, 'controlPlaneInitialized'],
] as const
for (const [rule, kind, status, milestone] of pausesOfCluster) {
  testRule(rule, async (env) => {
    const cluster = () => env.get(Cluster, 'demo')
    await env.create(Cluster, 'demo', { spec: { ...aCluster().spec, paused: true } })
    await env.create(kind, 'demo')
    await env.patch(kind, 'demo', { status })
    await env.advance(seconds(60))
    expect(await writtenMetadata(env, kind, 'demo')).toEqual(untouched)
    expect(await cluster()).not.toHaveProperty('status.initialization')
    expect(getCondition(await cluster(), 'Paused')).toMatchObject({ status: 'True' })
    await env.patch(Cluster, 'demo', { spec: { paused: false } })
    expect(await writtenMetadata(env, kind, 'demo')).toMatchObject({ ownerReferences: [{ kind: 'Cluster' }] })
    expect((await cluster()).status?.initialization).toMatchObject({ [milestone]: true })
    expect(getCondition(await cluster(), 'Paused')).toMatchObject({ status: 'False' })
  })
}

const pausesOfMachines = [
  ['core.infra-machine.pausing', Machine, aMachine().spec, DevMachine, 'infrastructureProvisioned'],
  ['core.infra-machine-pool.pausing', MachinePool, aMachinePool().spec, DevMachinePool, 'infrastructureProvisioned'],
  ['core.bootstrap-config.pausing', Machine, aMachine().spec, DevConfig, 'bootstrapDataSecretCreated'],
] as const
for (const [rule, kind, spec, providerKind, milestone] of pausesOfMachines) {
  testRule(rule, async (env) => {
    const name = kind === Machine ? 'm1' : 'mp'
    const owner = (): Promise<KubeObject> => env.get(kind as DeclaredKind, name)
    const status = providerKind === DevConfig ? created : { ...provisioned, replicas: 0 }
    const expectUntouched = async () => {
      await env.advance(seconds(60))
      expect(await writtenMetadata(env, providerKind, name)).toEqual(untouched)
      expect(await owner()).not.toHaveProperty(`status.initialization.${milestone}`, true)
      expect(getCondition((await owner()) as Machine, 'Paused')).toMatchObject({ status: 'True' })
    }
    await env.provisionCluster()
    await env.patch(Cluster, 'demo', { spec: { paused: true } })
    for (const createdKind of [DevConfig, DevMachine, DevMachinePool])
      await env.create(createdKind, name, { spec: { providerID: `dev:///${name}` } })
    await env.create(kind as DeclaredKind, name, { spec })
    await env.patch(providerKind, name, { status })
    await expectUntouched()
    await env.patch(kind as DeclaredKind, name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
    await env.patch(Cluster, 'demo', { spec: { paused: false } })
    await expectUntouched()
    await env.patch(kind as DeclaredKind, name, { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
    await env.advance(seconds(60))
    expect(await writtenMetadata(env, providerKind, name)).toMatchObject({ ownerReferences: [{ kind: kind.kind }] })
    expect(await owner()).toHaveProperty(`status.initialization.${milestone}`, true)
    expect(getCondition((await owner()) as Machine, 'Paused')).toMatchObject({ status: 'False' })
  })
}

const legacyRules = [
  ['core.infra-cluster.legacy-conditions', DevCluster, Cluster, 'demo', 'InfrastructureReady'],
  ['core.control-plane.legacy-conditions', DevControlPlane, Cluster, 'demo', 'ControlPlaneReady'],
  ['core.infra-machine.legacy-conditions', DevMachine, Machine, 'm1', 'InfrastructureReady'],
  ['core.bootstrap-config.legacy-conditions', DevConfig, Machine, 'm1', 'BootstrapReady'],
  ['core.infra-machine-pool.conditions', DevMachinePool, MachinePool, 'mp', 'InfrastructureReady'],
] as const
for (const [rule, kind, owner, name, type] of legacyRules) {
  testRule(rule, async (env) => {
    await env.provisionCluster()
    if (owner === Machine) await env.create(Machine, name, { spec: aMachine().spec })
    if (owner === MachinePool) await env.create(MachinePool, name, { spec: aMachinePool().spec })
    if (owner !== Cluster) for (const createdKind of [DevConfig, DevMachine, DevMachinePool]) await env.create(createdKind, name)
    await env.settle()
    const reported = { status: 'False', severity: 'Warning', reason: 'Quota', message: 'none left' }
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    await env.patch(kind, name, { status: { conditions: [{ type: 'Ready', lastTransitionTime, ...reported }] } })
    const object = await env.get(owner as DeclaredKind, name)
    expect(legacyConditionsOf(object as Machine).find((condition) => condition.type === type)).toMatchObject(reported)
    if (owner === MachinePool) expect(getCondition(object as Machine, type)).toBeUndefined()
  })
}

testRule('core.control-plane.node-taints', async (env) => {
  const [ownTaint, otherTaint] = ['mine', 'theirs'].map((taint) => ({
    key: `example.com/${taint}`,
    effect: 'NoSchedule' as const,
  }))
  await env.provisionCluster()
  await env.provisionMachine('m1', { labels: { 'cluster.x-k8s.io/control-plane': '' } })
  const node = { name: 'node-m1' }
  await env.workload.patch(Node, node, { type: 'merge', body: { spec: { taints: [otherTaint] } } })
  const taints = async () => (await env.workload.get(Node, node)).spec?.taints
  await env.patch(Machine, 'm1', { spec: { taints: [{ ...ownTaint, propagation: 'Always' }] } })
  await env.advance(seconds(30))
  expect(await taints()).toEqual([otherTaint, ownTaint])
  await env.patch(Machine, 'm1', { spec: { taints: null } })
  await env.advance(seconds(30))
  expect(await taints()).toEqual([otherTaint])
})

testRule('core.control-plane.external-managed', async (env) => {
  await env.provisionCluster()
  for (const name of ['m1', 'm2']) await env.provisionMachine(name)
  const deleteMachine = async (name: string) => {
    await env.client.delete(Machine, key(name))
    await env.advance(seconds(60))
    expect(await orAbsent(env.get(Machine, name))).toBeUndefined()
  }
  const nodes = async () => (await env.workload.list(Node)).items.map(({ metadata }) => metadata.name)
  await deleteMachine('m1')
  expect(await nodes()).toEqual(['node-m1', 'node-m2'])
  await env.patch(DevControlPlane, 'demo', { status: { externalManagedControlPlane: true } })
  await deleteMachine('m2')
  expect(await nodes()).toEqual(['node-m1'])
})

/** Requests that core sent to the hook UpdateMachine in the test of `core.in-place-update`. */
let updates: unknown[] = []
testRule(
  'core.in-place-update',
  async (env) => {
    const inProgress = { 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress': '' }
    const pending = { 'runtime.cluster.x-k8s.io/pending-hooks': 'UpdateMachine' }
    await env.provisionCluster()
    await env.provisionMachine('m1')
    // A control plane provider sends these writes in this order.
    await env.patch(Machine, 'm1', { metadata: { annotations: inProgress } })
    await env.patch(DevMachine, 'm1', { metadata: { annotations: inProgress }, spec: { size: 'large' } })
    await env.patch(DevConfig, 'm1', { metadata: { annotations: inProgress } })
    expect(updates).toEqual([])
    await env.patch(Machine, 'm1', { metadata: { annotations: pending }, spec: { version: 'v1.35.0' } })
    expect(updates).toMatchObject([
      {
        desired: {
          machine: { metadata: { name: 'm1' }, spec: { version: 'v1.35.0' } },
          infrastructureMachine: { kind: 'DevMachine', spec: { size: 'large' } },
          bootstrapConfig: { kind: 'DevConfig', metadata: { name: 'm1' } },
        },
      },
    ])
    expect(conditionText(await env.get(Machine, 'm1'), 'Updating')).toMatch(/^True InPlaceUpdating/)
    await env.advance(seconds(60))
    expect(updates).toHaveLength(2)
    expect(conditionText(await env.get(Machine, 'm1'), 'Updating')).toBe('False NotUpdating')
    for (const kind of [Machine, DevMachine, DevConfig] as DeclaredKind[]) {
      const { annotations = {} } = (await env.get(kind, 'm1')).metadata
      expect(Object.keys({ ...inProgress, ...pending }).filter((name) => name in annotations)).toEqual([])
    }
  },
  (contract) => {
    updates = []
    const runtime = scriptedRuntime({
      UpdateMachine: ({ request, nth }) => {
        updates.push(request)
        return nth < 2 ? { wait: 20 } : undefined
      },
    })
    return coreEnv({ contract, runtime })
  },
)
