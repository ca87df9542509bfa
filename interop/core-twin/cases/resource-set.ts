/**
 * Cases of ClusterResourceSets.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, ClusterResourceSet, ClusterResourceSetBinding } from '@capstan/api'
import { ConfigMap, isTrue, type Kind, type KubeObject, Namespace, Secret } from '@capstan/kube'
import { cluster, clusterName, named } from '../objects.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { connected } from './machine.ts'

/** Returns the manifest of a ConfigMap in the namespace `default`. */
export const manifest = (name: string, value = 'x'): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: default\ndata:\n  value: ${value}\n`

const labels = { addons: 'yes' }

/** Creates a Cluster that the ClusterResourceSets of `resourceSet` select by default, and its workload API server. */
export async function createLabelledCluster(twin: Twin): Promise<void> {
  await twin.startWorkload(clusterName)
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  const { metadata, ...rest } = cluster()
  await twin.create(Cluster, { ...rest, metadata: { ...metadata, labels } })
  await twin.settle('both cores are connected to the workload cluster', connected)
}

export const resourceSet = (name: string, resources: readonly object[], spec: object = {}) =>
  ({ metadata: { name }, spec: { clusterSelector: { matchLabels: labels }, resources, ...spec } }) as never
const configMap = (name: string) => ({ kind: 'ConfigMap', name })
const secret = (name: string) => ({ kind: 'Secret', name })

/** Creates a ConfigMap with manifests, which a ClusterResourceSet can list in `spec.resources`. */
export const createSource = (twin: Twin, name: string, data: { [key: string]: string }) =>
  twin.create(ConfigMap, { metadata: { name }, data })

/** Adds the ConfigMaps `names` of the workload cluster, which the ClusterResourceSet applies, to the comparison. */
export const compareApplied = (twin: Twin, ...names: readonly string[]) =>
  twin.inWorkload(clusterName, async (client, side) => {
    for (const name of names) {
      const appliedObject = await client.get(ConfigMap, { namespace: 'default', name }).catch(() => undefined)
      side.setObject(twin.namespace, `workload ${name}`, appliedObject)
    }
  })

const appliesOnce: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('the ConfigMap is applied')
  await compareApplied(twin, 'one')
  await twin.patch(ConfigMap, 'a', { data: { 'a.yaml': manifest('one', 'changed') } })
  await twin.settle('the source changes')
  await compareApplied(twin, 'one')
  await twin.settle('the applied objects are compared')
  await twin.delete(ClusterResourceSet, 'crs')
  await twin.settle('the ClusterResourceSet is deleted')
}

const reconciles: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')], { strategy: 'Reconcile' }))
  await twin.settle('the ConfigMap is applied')
  await twin.patch(ConfigMap, 'a', { data: { 'a.yaml': manifest('one', 'changed') } })
  await twin.settle('the source changes')
  await compareApplied(twin, 'one')
  await twin.settle('the applied objects are compared')
}

const ofSecret =
  (type: string): Case =>
  async (twin) => {
    await createLabelledCluster(twin)
    const data = { 'a.yaml': Buffer.from(manifest('one')).toString('base64') }
    await twin.create(Secret, { metadata: { name: 's' }, type, data })
    await twin.create(ClusterResourceSet, resourceSet('crs', [secret('s')]))
    await twin.settle('the ClusterResourceSet is created')
    await compareApplied(twin, 'one')
    await twin.settle('the applied objects are compared')
  }

const missingSources: Case = async (twin) => {
  await createLabelledCluster(twin)
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a'), secret('s')]))
  await twin.settle('neither source exists')
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.settle('one source exists')
}

/** Lets a ClusterResourceSet apply the manifests in `data`, and compares the ConfigMaps `names` of the workload cluster. */
const contents =
  (data: { [key: string]: string }, ...names: readonly string[]): Case =>
  async (twin) => {
    await createLabelledCluster(twin)
    await createSource(twin, 'a', data)
    await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
    await twin.settle('the ClusterResourceSet is created')
    await compareApplied(twin, ...names)
    await twin.settle('the applied objects are compared')
  }

const twoSets: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await createSource(twin, 'b', { 'b.yaml': manifest('two') })
  await twin.create(ClusterResourceSet, resourceSet('first', [configMap('a')]))
  await twin.settle('one ClusterResourceSet exists')
  await twin.create(ClusterResourceSet, resourceSet('second', [configMap('b'), configMap('a')]))
  await twin.settle('two ClusterResourceSets exist')
  await twin.delete(ClusterResourceSet, 'first')
  await twin.settle('the first ClusterResourceSet is deleted')
  await twin.delete(Cluster, clusterName)
  await twin.settle('the Cluster is deleted')
}

const selectionChanges: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(
    ClusterResourceSet,
    resourceSet('crs', [configMap('a')], { clusterSelector: { matchLabels: { addons: 'no' } } }),
  )
  await twin.settle('the Cluster is not selected')
  await twin.patch(Cluster, clusterName, { metadata: { labels: { addons: 'no' } } })
  await twin.settle('the Cluster is selected')
  await twin.patch(Cluster, clusterName, { metadata: { labels: { addons: null } } })
  await twin.settle('the Cluster is no longer selected')
}

const paused: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  const { metadata, ...rest } = resourceSet('crs', [configMap('a')]) as { metadata: object }
  await twin.create(ClusterResourceSet, {
    ...rest,
    metadata: { ...metadata, annotations: { 'cluster.x-k8s.io/paused': '' } },
  } as never)
  await twin.settle('the ClusterResourceSet is paused')
  await twin.patch(ClusterResourceSet, 'crs', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the ClusterResourceSet is resumed')
}

const existingObject: Case = async (twin) => {
  await createLabelledCluster(twin)
  await twin.inWorkload(clusterName, (client) =>
    client.create(ConfigMap, { metadata: { name: 'one', namespace: 'default' }, data: { mine: 'stays' } }),
  )
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')], { strategy: 'Reconcile' }))
  await twin.settle('the object exists already')
  await compareApplied(twin, 'one')
  await twin.settle('the applied objects are compared')
}

/** The manifest contains a resourceVersion that the existing object does not have. */
const withResourceVersion: Case = async (twin) => {
  await createLabelledCluster(twin)
  await twin.inWorkload(clusterName, (client) =>
    client.create(ConfigMap, { metadata: { name: 'one', namespace: 'default' }, data: { value: 'old' } }),
  )
  const withVersion = (value: string) => ({
    'a.yaml': manifest('one', value).replace('metadata:\n', 'metadata:\n  resourceVersion: "1"\n'),
  })
  await createSource(twin, 'a', withVersion('x'))
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')], { strategy: 'Reconcile' }))
  await twin.settle('the object is updated', isApplied)
  await compareApplied(twin, 'one')
  await twin.settle('the applied objects are compared')
}

/** No source can be applied completely. A source whose text is `undefined` does not exist. */
const problems =
  (sources: { [name: string]: string | undefined }): Case =>
  async (twin) => {
    await createLabelledCluster(twin)
    for (const [name, text] of Object.entries(sources)) if (text !== undefined) await createSource(twin, name, { a: text })
    await twin.create(ClusterResourceSet, resourceSet('crs', Object.keys(sources).map(configMap)))
    await twin.settle('the ClusterResourceSet is created')
  }

const noWorkload: Case = async (twin) => {
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  const { metadata, ...rest } = cluster()
  await twin.create(Cluster, { ...rest, metadata: { ...metadata, labels } })
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('there is no workload cluster')
}

/** The list of resources changes, and a source is deleted. */
const resourcesChange: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await createSource(twin, 'b', { 'b.yaml': manifest('two') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('one resource is listed')
  await twin.patch(ClusterResourceSet, 'crs', { spec: { resources: [configMap('b'), configMap('a')] } })
  await twin.settle('two resources are listed')
  await compareApplied(twin, 'one', 'two')
  await twin.patch(ClusterResourceSet, 'crs', { spec: { resources: [configMap('b')] } })
  await twin.settle('one resource is removed')
  await twin.delete(ConfigMap, 'b')
  await twin.settle('the source is deleted')
  await compareApplied(twin, 'one', 'two')
  await twin.settle('the applied objects are compared')
}

/** Applying fails until the source is changed. */
const repaired: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': `${manifest('one')}---\n${manifest('Not-Valid')}` })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('one object is rejected')
  await twin.patch(ConfigMap, 'a', { data: { 'a.yaml': `${manifest('one', 'changed')}---\n${manifest('two')}` } })
  await twin.settle('the source is repaired')
  await compareApplied(twin, 'one', 'two')
  await twin.settle('the applied objects are compared')
}

const isApplied = (objects: readonly KubeObject[]) =>
  objects.some((object) => object.kind === 'ClusterResourceSet' && isTrue(object as ClusterResourceSet, 'ResourcesApplied'))

/** Users change and delete applied objects. */
const drift: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': `${manifest('one')}---\n${manifest('two')}` })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')], { strategy: 'Reconcile' }))
  await twin.settle('the objects are applied', isApplied)
  await twin.inWorkload(clusterName, async (client) => {
    const body = { data: { value: 'mine', more: 'x' } }
    await client.patch(ConfigMap, { namespace: 'default', name: 'one' }, { type: 'merge', body })
    await client.delete(ConfigMap, { namespace: 'default', name: 'two' })
  })
  await twin.touch(ClusterResourceSet, 'crs')
  await twin.settle('a user has changed one object and deleted the other')
  await twin.patch(ConfigMap, 'a', { data: { 'a.yaml': `${manifest('one', 'y')}---\n${manifest('two', 'y')}` } })
  await twin.settle('the source changes')
  await compareApplied(twin, 'one', 'two')
  await twin.settle('the applied objects are compared')
}

/** A ClusterResourceSet is deleted while the workload cluster is unreachable. */
const deletedUnreachable: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('the ConfigMap is applied')
  await twin.stopWorkload(clusterName)
  await twin.delete(ClusterResourceSet, 'crs')
  await twin.settle('the ClusterResourceSet is deleted')
}

/** Resources are also applied to a paused Cluster. */
const pausedCluster: Case = async (twin) => {
  await createLabelledCluster(twin)
  await twin.patch(Cluster, clusterName, { spec: { paused: true } })
  await twin.settle('the Cluster is paused')
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('the ConfigMap is applied to the paused Cluster')
}

/** A user deletes the ClusterResourceSetBinding. */
const bindingDeleted: Case = async (twin) => {
  await createLabelledCluster(twin)
  await createSource(twin, 'a', { 'a.yaml': manifest('one') })
  await twin.create(ClusterResourceSet, resourceSet('crs', [configMap('a')]))
  await twin.settle('the ConfigMap is applied')
  await twin.delete(ClusterResourceSetBinding, clusterName)
  await twin.touch(ClusterResourceSet, 'crs')
  await twin.settle('the binding is deleted')
}

const ofKind = (apiVersion: string, kind: string, name: string, fields = ''): string =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n${fields}`
const inAddons = '  namespace: addons\n'

/** Manifests in the reverse of the order in which core applies their kinds. Core has no order for Services and ClusterRoles, and applies them last. */
const reversedKinds = [
  ofKind('v1', 'Service', 'service', `${inAddons}spec:\n  ports:\n  - port: 80\n`),
  ofKind('rbac.authorization.k8s.io/v1', 'ClusterRole', 'addons-role', 'rules: []\n'),
  ofKind('v1', 'LimitRange', 'range', `${inAddons}spec:\n  limits: []\n`),
  ofKind('v1', 'ServiceAccount', 'account', inAddons),
  ofKind('v1', 'ConfigMap', 'map', inAddons),
  ofKind('v1', 'Secret', 'secret', inAddons),
  ofKind('storage.k8s.io/v1', 'StorageClass', 'fast', 'provisioner: twin.capstan.dev\n'),
  ofKind('v1', 'Namespace', 'addons'),
]

const appliedKinds: readonly Kind[] = [
  Namespace,
  Secret,
  ConfigMap,
  { group: 'storage.k8s.io', version: 'v1', kind: 'StorageClass', plural: 'storageclasses', scope: 'Cluster' },
  { group: '', version: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', scope: 'Namespaced' },
  { group: '', version: 'v1', kind: 'LimitRange', plural: 'limitranges', scope: 'Namespaced' },
  { group: '', version: 'v1', kind: 'Service', plural: 'services', scope: 'Namespaced' },
  { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
]
const appliedNames = new Set(['addons', 'secret', 'map', 'fast', 'account', 'range', 'service', 'addons-role'])

/** Compares the order in which the objects of `reversedKinds` were created. */
const compareOrder = (twin: Twin) =>
  twin.runOnBoth('list the applied objects in the order of their creation', async (_, side) => {
    const client = side.workload({ namespace: twin.namespace, name: clusterName })
    const objects: KubeObject[] = []
    for (const kind of appliedKinds) {
      const { items } = await client.list(kind).catch(() => ({ items: [] as readonly KubeObject[] }))
      objects.push(...items.filter(({ metadata }) => appliedNames.has(metadata.name)))
    }
    const versionOf = ({ metadata }: KubeObject) => Number(metadata.resourceVersion)
    return { names: objects.sort((a, b) => versionOf(a) - versionOf(b)).map(({ metadata }) => metadata.name) }
  })

/** A Secret lists objects before the objects that they require. */
const kinds =
  (data: { [key: string]: string }): Case =>
  async (twin) => {
    await createLabelledCluster(twin)
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')] as const)
    await twin.create(Secret, {
      metadata: { name: 's' },
      type: 'addons.cluster.x-k8s.io/resource-set',
      data: Object.fromEntries(encoded),
    })
    await twin.create(ClusterResourceSet, resourceSet('crs', [secret('s')]))
    await twin.settle('all objects are applied', isApplied)
    await compareOrder(twin)
    await twin.settle('the order of the objects is compared')
  }

export const resourceSetCases: Cases = {
  'resourceset-apply-once': appliesOnce,
  'resourceset-reconcile': reconciles,
  'resourceset-secret': ofSecret('addons.cluster.x-k8s.io/resource-set'),
  'resourceset-secret-of-another-type': ofSecret('Opaque'),
  'resourceset-missing-sources': missingSources,
  'resourceset-two-documents': contents({ 'a.yaml': `${manifest('one')}---\n${manifest('two')}` }, 'one', 'two'),
  'resourceset-two-keys': contents({ b: manifest('two'), a: manifest('one') }, 'one', 'two'),
  'resourceset-json': contents(
    { a: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'default' } }) },
    'one',
  ),
  'resourceset-list': contents(
    {
      a: JSON.stringify({
        apiVersion: 'v1',
        kind: 'List',
        items: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'default' } }],
      }),
    },
    'one',
  ),
  'resourceset-nonsense': contents({ a: 'this is not a manifest' }),
  'resourceset-unknown-kind': contents(
    { a: `${manifest('one')}---\napiVersion: v9\nkind: Nothing\nmetadata:\n  name: x\n` },
    'one',
  ),
  'resourceset-object-rejected': contents({ a: `${manifest('Not-Valid')}---\n${manifest('two')}` }, 'two'),
  'resourceset-text-after-separator': contents({ a: `${manifest('one')}--- x\n${manifest('two')}` }, 'one', 'two'),
  'resourceset-comment-after-separator': contents({ a: `${manifest('one')}--- # x\n${manifest('two')}` }, 'one', 'two'),
  'resourceset-list-without-items': contents(
    { a: `${manifest('one')}---\n${manifest('two').replace('kind: ConfigMap', 'kind: NothingList')}` },
    'one',
    'two',
  ),
  'resourceset-broken-list': contents({ a: `[${JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap' })}` }),
  'resourceset-resource-version': withResourceVersion,
  'resourceset-missing-and-broken': problems({ missing: undefined, broken: 'this is not a manifest' }),
  'resourceset-missing-and-denied': problems({ missing: undefined, denied: manifest('Not-Valid') }),
  'resourceset-broken-and-missing': problems({ broken: 'this is not a manifest', missing: undefined }),
  'resourceset-two-denied': problems({ a: manifest('Not-Valid'), b: manifest('Nor-This') }),
  'resourceset-other-namespace': contents({ a: manifest('one').replace('namespace: default', 'namespace: nowhere') }),
  'resourceset-empty': contents({}),
  'resourceset-kinds': kinds({ a: reversedKinds.join('---\n') }),
  'resourceset-kinds-of-two-keys': kinds({
    a: manifest('one').replace('default', 'addons'),
    b: ofKind('v1', 'Namespace', 'addons'),
  }),
  'resourceset-two-sets': twoSets,
  'resourceset-selection': selectionChanges,
  'resourceset-paused': paused,
  'resourceset-existing-object': existingObject,
  'resourceset-no-workload': noWorkload,
  'resourceset-resources-change': resourcesChange,
  'resourceset-repaired': repaired,
  'resourceset-drift': drift,
  'resourceset-deleted-unreachable': deletedUnreachable,
  'resourceset-paused-cluster': pausedCluster,
  'resourceset-binding-deleted': bindingDeleted,
}
