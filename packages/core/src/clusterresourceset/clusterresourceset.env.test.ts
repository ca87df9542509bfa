import { Cluster, ClusterResourceSet, ClusterResourceSetBinding } from '@capstan/api'
import {
  ConfigMap,
  conflict,
  CustomResourceDefinition,
  Namespace,
  orAbsent,
  seconds,
  Secret,
  StatusError,
  type Transport,
  unknownKind,
  withSend,
} from '@capstan/kube'
import { aCluster, conditionText, coreEnv, type CoreEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

const labels = { cni: 'x' }
const inDefault = (name: string) => ({ namespace: 'default', name })

/** Creates a connected Cluster `demo` with the label that ClusterResourceSets select. */
async function createConnectedCluster(options?: Parameters<typeof coreEnv>[0]): Promise<void> {
  env = await coreEnv(options)
  await env.provisionCluster()
  await env.patch(Cluster, 'demo', { metadata: { labels } })
}

const manifest = (name: string, value: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: default\ndata:\n  value: "${value}"\n`
const aConfigMap = (name: string, value: string) =>
  env.create(ConfigMap, name, { data: { 'manifest.yaml': manifest(name, value) } })
const changeConfigMap = (name: string, value: string) =>
  env.patch(ConfigMap, name, { data: { 'manifest.yaml': manifest(name, value) } })

async function aResourceSet(name: string, resources: object[], overrides: object = {}): Promise<void> {
  await env.create(ClusterResourceSet, name, { spec: { clusterSelector: { matchLabels: labels }, resources, ...overrides } })
  await env.settle()
}
const configMapRef = (name: string) => ({ kind: 'ConfigMap', name })
const secretRef = (name: string) => ({ kind: 'Secret', name })

const appliedValue = async (name: string) => (await orAbsent(env.workload.get(ConfigMap, inDefault(name))))?.data?.['value']
const condition = async (name: string) => conditionText(await env.get(ClusterResourceSet, name), 'ResourcesApplied')
const legacyConditions = async (name: string) =>
  (await env.get(ClusterResourceSet, name)).status?.deprecated?.v1beta1?.conditions?.map(
    ({ lastTransitionTime: _time, ...condition }) => condition,
  )
const binding = () => orAbsent(env.get(ClusterResourceSetBinding, 'demo'))

/** Creates a cluster-scoped kind of group example.com without status subresource in the workload cluster. */
async function createWorkloadKind(kind: string, plural: string): Promise<void> {
  const names = { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` }
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const versions = [{ name: 'v1', served: true, storage: true, schema }]
  await env.workload.create(CustomResourceDefinition, {
    metadata: { name: `${plural}.example.com` },
    spec: { group: 'example.com', names, scope: 'Cluster', versions },
  } as never)
  await env.settle()
}

test('resources are applied to the Clusters that the selector matches, once', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await env.create(Secret, 'two', {
    type: 'addons.cluster.x-k8s.io/resource-set',
    stringData: { a: `${manifest('two', '2')}---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: made-first\n` },
  })
  await aResourceSet('crs', [configMapRef('one'), secretRef('two')])
  expect(await appliedValue('one')).toBe('1')
  expect(await appliedValue('two')).toBe('2')
  expect(await env.workload.get(Namespace, { name: 'made-first' })).toBeDefined()
  expect(await condition('crs')).toBe('True Applied')
  expect(await legacyConditions('crs')).toEqual([{ type: 'ResourcesApplied', status: 'True' }])

  const resourceSet = await env.get(ClusterResourceSet, 'crs')
  expect(resourceSet.metadata.finalizers).toEqual(['addons.cluster.x-k8s.io'])
  expect([resourceSet.spec.strategy, resourceSet.status?.observedGeneration]).toEqual(['ApplyOnce', 1])
  const owner = {
    apiVersion: 'addons.cluster.x-k8s.io/v1beta2',
    kind: 'ClusterResourceSet',
    name: 'crs',
    uid: resourceSet.metadata.uid,
  }
  expect((await env.get(ConfigMap, 'one')).metadata.ownerReferences).toEqual([owner])
  const { metadata, spec } = (await binding())!
  expect(metadata.ownerReferences).toEqual([owner])
  expect(spec).toMatchObject({
    clusterName: 'demo',
    bindings: [
      {
        clusterResourceSetName: 'crs',
        resources: [
          { kind: 'ConfigMap', name: 'one', applied: true, hash: expect.stringMatching(/^sha256:/) },
          { kind: 'Secret', name: 'two', applied: true },
        ],
      },
    ],
  })

  await changeConfigMap('one', 'changed')
  expect(await appliedValue('one')).toBe('1')
  await env.workload.delete(ConfigMap, inDefault('one'))
  await env.advance(seconds(60))
  expect(await appliedValue('one')).toBeUndefined()
})

test('the strategy Reconcile applies a resource again whenever its content changes', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await env.workload.create(ConfigMap, { metadata: { ...inDefault('one'), labels: { before: 'x' } }, data: { other: 'x' } })
  await aResourceSet('crs', [configMapRef('one')], { strategy: 'Reconcile' })
  // The field `data.other` of the existing object, which is not in the manifest, was removed.
  expect((await env.workload.get(ConfigMap, inDefault('one'))).data).toEqual({ value: '1' })
  await changeConfigMap('one', '2')
  expect(await appliedValue('one')).toBe('2')
  const { revision } = env.store
  await env.advance(seconds(600))
  expect(env.store.revision).toBe(revision)
})

test('the strategy Reconcile updates an object although its manifest contains a resourceVersion', async () => {
  await createConnectedCluster()
  const withVersion = (value: string) => ({
    data: { 'manifest.yaml': manifest('one', value).replace('metadata:\n', 'metadata:\n  resourceVersion: "1"\n') },
  })
  await env.create(ConfigMap, 'one', withVersion('1'))
  await env.workload.create(ConfigMap, { metadata: inDefault('one'), data: { value: '0' } })
  await aResourceSet('crs', [configMapRef('one')], { strategy: 'Reconcile' })
  expect([await appliedValue('one'), await condition('crs')]).toEqual(['1', 'True Applied'])
  await env.patch(ConfigMap, 'one', withVersion('2'))
  expect([await appliedValue('one'), await condition('crs')]).toEqual(['2', 'True Applied'])
})

test('the strategy Reconcile applies a change of the status alone to a kind without status subresource', async () => {
  await createConnectedCluster()
  await createWorkloadKind('Foo', 'foos')
  const foo = (phase: string) => ({
    data: { a: `apiVersion: example.com/v1\nkind: Foo\nmetadata:\n  name: x\nstatus:\n  phase: ${phase}\n` },
  })
  await env.create(ConfigMap, 'foo', foo('Old'))
  await aResourceSet('crs', [configMapRef('foo')], { strategy: 'Reconcile' })
  await env.patch(ConfigMap, 'foo', foo('New'))
  const Foo = unknownKind({ apiVersion: 'example.com/v1', kind: 'Foo', plural: 'foos' })
  expect((await env.workload.get(Foo, { name: 'x' })).status).toEqual({ phase: 'New' })
})

// Upstream: ensureResourceOwnerRef, which calls util.HasExactOwnerRef.
test('blockOwnerDeletion in the owner reference of a resource is kept', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  const owners = async () => (await env.get(ConfigMap, 'one')).metadata.ownerReferences
  const ownerReferences = (await owners())!.map((owner) => ({ ...owner, blockOwnerDeletion: true }))
  await env.patch(ConfigMap, 'one', { metadata: { ownerReferences } })
  await env.settle()
  expect(await owners()).toEqual(ownerReferences)
})

test('a resource that is created later is applied after its creation', async () => {
  await createConnectedCluster()
  await aResourceSet('crs', [configMapRef('late')])
  expect(await appliedValue('late')).toBeUndefined()
  await aConfigMap('late', '1')
  await env.settle()
  expect(await appliedValue('late')).toBe('1')
})

test('a missing resource is reported while another resource cannot be parsed, and is not reported once all existing resources are applied', async () => {
  await createConnectedCluster()
  await env.create(ConfigMap, 'broken', { data: { a: 'short' } })
  await aResourceSet('crs', [configMapRef('missing'), configMapRef('broken')])
  expect(await condition('crs')).toBe('False InternalError: Please check controller logs for errors')
  expect(await legacyConditions('crs')).toMatchObject([
    { reason: 'RetrievingResourceFailed', severity: 'Warning', message: 'configmaps "missing" not found' },
  ])
  await env.patch(ConfigMap, 'broken', { data: { a: manifest('broken', '1') } })
  await env.advance(seconds(60))
  expect(await condition('crs')).toBe('True Applied')
})

test('a Cluster gets the resources when its labels match later, and none before', async () => {
  await createConnectedCluster()
  await env.patch(Cluster, 'demo', { metadata: { labels: { cni: null } } })
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  expect([await condition('crs'), await binding()]).toEqual([undefined, undefined])
  await env.patch(Cluster, 'demo', { metadata: { labels } })
  expect(await appliedValue('one')).toBe('1')
})

test('a Secret that is not of the type for ClusterResourceSets is not applied', async () => {
  await createConnectedCluster()
  await env.create(Secret, 'opaque', { stringData: { a: manifest('opaque', '1') } })
  await aResourceSet('crs', [secretRef('opaque')])
  expect(await condition('crs')).toBe('False WrongSecretType: Secret type of resource opaque is not supported')
  expect(await legacyConditions('crs')).toEqual([
    {
      type: 'ResourcesApplied',
      status: 'False',
      severity: 'Warning',
      reason: 'WrongSecretType',
      message: 'unsupported secret type',
    },
  ])
  expect(await appliedValue('opaque')).toBeUndefined()
})

test('a Cluster that was unreachable gets the resources when it is reachable', async () => {
  env = await coreEnv()
  env.reachable = false
  await env.provisionCluster()
  await env.patch(Cluster, 'demo', { metadata: { labels } })
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  expect(await condition('crs')).toBe('False InternalError: Please check controller logs for errors')
  expect(await legacyConditions('crs')).toMatchObject([
    {
      reason: 'RemoteClusterClientFailed',
      severity: 'Error',
      message: 'error getting client: connection to the workload cluster is down',
    },
  ])
  // Upstream: only a successful reconcile sets observedGeneration.
  expect((await env.get(ClusterResourceSet, 'crs')).status?.observedGeneration).toBeUndefined()
  // The binding exists already, without resources.
  expect((await binding())?.spec.bindings).toEqual([{ clusterResourceSetName: 'crs' }])
  env.reachable = true
  await env.advance(seconds(30))
  expect(await condition('crs')).toBe('True Applied')
  expect(await appliedValue('one')).toBe('1')
  expect((await env.get(ClusterResourceSet, 'crs')).status?.observedGeneration).toBe(1)
})

test('a manifest of kind List is reported with the message of upstream', async () => {
  await createConnectedCluster()
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [] })
  await env.create(ConfigMap, 'list', { data: { a: list } })
  await aResourceSet('crs', [configMapRef('list')])
  expect(await legacyConditions('crs')).toMatchObject([
    { message: 'creating object /v1, Kind=List : no matches for kind "" in version "v1"' },
  ])
})

test('an object whose kind ends in List is applied if it has no list of items', async () => {
  await createConnectedCluster()
  await createWorkloadKind('AccessList', 'accesslists')
  await env.create(ConfigMap, 'list', { data: { a: 'apiVersion: example.com/v1\nkind: AccessList\nmetadata:\n  name: x\n' } })
  await aResourceSet('crs', [configMapRef('list')])
  expect([await condition('crs'), await legacyConditions('crs')]).toEqual([
    'True Applied',
    [{ type: 'ResourcesApplied', status: 'True' }],
  ])
})

test('objects that cannot be applied are reported, the other objects are applied, and retries write nothing', async () => {
  await createConnectedCluster()
  const unknown = 'apiVersion: example.com/v1\nkind: Foo\nmetadata:\n  name: x\n'
  await env.create(ConfigMap, 'mixed', { data: { a: `${unknown}---\n${manifest('mixed', '1')}` } })
  await env.create(ConfigMap, 'broken', { data: { a: 'short' } })
  await aResourceSet('crs', [configMapRef('mixed'), configMapRef('broken')])
  expect(await appliedValue('mixed')).toBe('1')
  expect(await condition('crs')).toBe('False NotApplied: Failed to apply ClusterResourceSet resources to Cluster')
  expect(await legacyConditions('crs')).toMatchObject([
    {
      reason: 'ApplyFailed',
      severity: 'Warning',
      message: 'creating object example.com/v1, Kind=Foo x: no matches for kind "Foo" in version "example.com/v1"',
    },
  ])
  expect((await binding())?.spec.bindings?.[0]?.resources).toMatchObject([
    { name: 'mixed', applied: false, hash: expect.any(String) },
    { name: 'broken', applied: false },
  ])
  expect((await env.get(ClusterResourceSet, 'crs')).status?.observedGeneration).toBeUndefined()
  const { revision } = env.store
  await env.advance(seconds(600))
  expect(env.store.revision).toBe(revision)
})

test('of several resources that cannot be applied, the last one is reported', async () => {
  await createConnectedCluster()
  const ofKind = (kind: string) => `apiVersion: example.com/v1\nkind: ${kind}\nmetadata:\n  name: x\n`
  for (const [name, kind] of [
    ['a', 'First'],
    ['b', 'Last'],
  ] as const)
    await env.create(ConfigMap, name, { data: { a: ofKind(kind) } })
  await aResourceSet('crs', [configMapRef('a'), configMapRef('b')])
  expect(await legacyConditions('crs')).toMatchObject([{ message: expect.stringContaining('Kind=Last x') }])
})

/**
 * Creates a Cluster and a ClusterResourceSet, and rejects requests with this verb for ClusterResourceSetBindings. Returns a function that
 * ends the rejection.
 */
async function aDeniedResourceSet(verb: 'create' | 'patch'): Promise<() => Promise<void>> {
  let rejects = true
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      if (rejects && request.verb === verb && request.plural === ClusterResourceSetBinding.plural) {
        throw new StatusError('Forbidden', 'quota')
      }
      return transport.send(request, signal)
    })
  await createConnectedCluster({ between })
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  return async () => {
    rejects = false
    await env.advance(seconds(60))
  }
}

const observedGeneration = async () => (await env.get(ClusterResourceSet, 'crs')).status?.observedGeneration

// Upstream, for this test and the next one: ApplyClusterResourceSet in clusterresourceset_controller.go.
test('no resource is applied and ResourcesApplied is not reported while the binding cannot be created', async () => {
  const endRejection = await aDeniedResourceSet('create')
  expect([await appliedValue('one'), await condition('crs'), await observedGeneration()]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  await endRejection()
  expect([await appliedValue('one'), await condition('crs'), await observedGeneration()]).toEqual(['1', 'True Applied', 1])
})

test('resources are reported as applied while the binding cannot be updated, and the update is retried', async () => {
  const endRejection = await aDeniedResourceSet('patch')
  expect([await appliedValue('one'), await condition('crs'), await observedGeneration()]).toEqual([
    '1',
    'True Applied',
    undefined,
  ])
  expect(await legacyConditions('crs')).toEqual([{ type: 'ResourcesApplied', status: 'True' }])
  expect((await binding())?.spec.bindings).toBeUndefined()
  await endRejection()
  expect((await binding())?.spec.bindings).toMatchObject([{ resources: [{ name: 'one', applied: true }] }])
  expect(await observedGeneration()).toBe(1)
})

// Upstream: Reconcile, which requeues after 100 ms without error if the only error of one Cluster is a conflict.
test('a conflict of the binding of one Cluster is retried after 100 ms, although another Cluster has an error', async () => {
  let conflicts = 3
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      if (request.plural === ClusterResourceSetBinding.plural) {
        if (request.verb === 'create' && (request.body as ClusterResourceSetBinding).metadata.name === 'other')
          throw new StatusError('Forbidden', 'quota')
        if (request.verb === 'patch' && conflicts > 0) {
          conflicts--
          throw conflict(ClusterResourceSetBinding, 'demo')
        }
      }
      return transport.send(request, signal)
    })
  await createConnectedCluster({ between })
  const { infrastructureRef } = aCluster().spec
  await env.create(Cluster, 'other', {
    metadata: { labels },
    spec: { infrastructureRef: { ...infrastructureRef!, name: 'other' } },
  })
  await env.settle()
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  expect(await observedGeneration()).toBe(1)
  await env.advance(500)
  expect((await binding())?.spec.bindings).toMatchObject([{ resources: [{ name: 'one', applied: true }] }])
})

test('a deleted ClusterResourceSet is removed from the binding, and the applied objects stay', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await aResourceSet('a', [configMapRef('one')])
  await aResourceSet('b', [configMapRef('one')])
  const entries = async () => (await binding())?.spec.bindings?.map((entry) => entry.clusterResourceSetName)
  expect(await entries()).toEqual(['a', 'b'])
  await env.client.delete(ClusterResourceSet, inDefault('a'))
  await env.settle()
  expect(await orAbsent(env.get(ClusterResourceSet, 'a'))).toBeUndefined()
  expect(await entries()).toEqual(['b'])
  expect((await binding())?.metadata.ownerReferences?.map(({ name }) => name)).toEqual(['b'])
  await env.client.delete(ClusterResourceSet, inDefault('b'))
  await env.settle()
  expect(await binding()).toBeUndefined()
  expect(await appliedValue('one')).toBe('1')
})

test('a binding is deleted once its Cluster is being deleted', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  expect(await binding()).toBeDefined()
  await env.patch(Cluster, 'demo', { metadata: { finalizers: ['example.com/stay'] } })
  await env.client.delete(Cluster, inDefault('demo'))
  await env.settle()
  expect(await binding()).toBeUndefined()
})

test('resources are applied again after their binding was deleted', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  await env.workload.delete(ConfigMap, inDefault('one'))
  await env.client.delete(ClusterResourceSetBinding, inDefault('demo'))
  await env.settle()
  expect(await appliedValue('one')).toBe('1')
  expect((await binding())?.spec.bindings).toMatchObject([{ resources: [{ name: 'one', applied: true }] }])
})

test('a paused ClusterResourceSet applies nothing', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await env.create(ClusterResourceSet, 'crs', {
    metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } },
    spec: { clusterSelector: { matchLabels: labels }, resources: [configMapRef('one')] },
  })
  await env.settle()
  expect(conditionText(await env.get(ClusterResourceSet, 'crs'), 'Paused')).toBe(
    'True Paused: ClusterResourceSet has the cluster.x-k8s.io/paused annotation',
  )
  expect(await appliedValue('one')).toBeUndefined()
  await env.patch(ClusterResourceSet, 'crs', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  expect(await appliedValue('one')).toBe('1')
})

test('the Cluster, which upstream versions before v1.4 added as an owner of its binding, is removed from the owners', async () => {
  await createConnectedCluster()
  await aConfigMap('one', '1')
  await aResourceSet('crs', [configMapRef('one')])
  const { metadata } = (await binding())!
  const { uid } = (await env.get(Cluster, 'demo')).metadata
  const cluster = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', name: 'demo', uid }
  await env.patch(ClusterResourceSetBinding, 'demo', { metadata: { ownerReferences: [...metadata.ownerReferences!, cluster] } })
  expect((await binding())?.metadata.ownerReferences).toEqual(metadata.ownerReferences)
})
