import { Cluster, ClusterResourceSet, ClusterResourceSetBinding } from '@capstan/api'
import { ConfigMap } from '@capstan/kube'
import { compareApplied, createLabelledCluster, createSource, manifest, resourceSet } from '../cases/resource-set.ts'
import { clusterName } from '../objects.ts'
import type { Case, Twin } from '../twin.ts'
import { type Choose, perform, type RandomChange, text } from './story.ts'

const sources = ['a', 'b', 'c'] as const

const randomData = (choose: Choose) => ({
  'one.yaml': choose(manifest('one'), manifest('one', 'changed'), 'not: [a manifest', ''),
  'two.yaml': choose(manifest('two'), manifest('two', 'changed'), `${manifest('two')}---\n${manifest('three')}`, null),
})

const randomResources = (choose: Choose) =>
  choose<readonly string[]>(['a'], ['a', 'b'], ['b', 'a'], ['c'], ['a', 'missing']).map((name) => ({ kind: 'ConfigMap', name }))

/** Returns a function that performs a change, waits until both cores are idle, and then adds the applied ConfigMaps to the next comparison. */
const andCompare = (change: (twin: Twin) => Promise<void>) => async (twin: Twin) => {
  await change(twin)
  await twin.settle('the change is handled')
  await compareApplied(twin, 'one', 'two', 'three')
}

const resourceSetChanges: readonly RandomChange[] = [
  (choose) => {
    const source = choose(...sources)
    const data = randomData(choose)
    return [`data of the source ${source} ${text(data)}`, andCompare((twin) => twin.patch(ConfigMap, source, { data }))]
  },
  (choose) => {
    const source = choose(...sources)
    const isCreated = choose(true, false)
    return [
      `the source ${source} is ${isCreated ? 'created' : 'deleted'}`,
      andCompare((twin) =>
        isCreated ? createSource(twin, source, { 'one.yaml': manifest('one', 'created') }) : twin.delete(ConfigMap, source),
      ),
    ]
  },
  (choose) => {
    const resources = randomResources(choose)
    return [`resources ${text(resources)}`, andCompare((twin) => twin.patch(ClusterResourceSet, 'crs', { spec: { resources } }))]
  },
  (choose) => {
    const addons = choose('yes', 'no', null)
    return [
      `the label addons of the Cluster is ${addons}`,
      andCompare((twin) => twin.patch(Cluster, clusterName, { metadata: { labels: { addons } } })),
    ]
  },
  (choose) => {
    const paused = choose(true, null)
    return [
      `spec.paused of the Cluster is ${paused}`,
      andCompare((twin) => twin.patch(Cluster, clusterName, { spec: { paused } })),
    ]
  },
  () => ['the binding is deleted', andCompare((twin) => twin.delete(ClusterResourceSetBinding, clusterName))],
  (choose) => {
    const name = choose('one', 'two')
    return [
      `a user changes the ConfigMap ${name} in the workload cluster`,
      andCompare((twin) =>
        twin.inWorkload(clusterName, async (client) => {
          const body = { data: { value: 'of the user' } }
          await client.patch(ConfigMap, { namespace: 'default', name }, { type: 'merge', body }).catch(() => undefined)
        }),
      ),
    ]
  },
  () => ['the ClusterResourceSet is deleted', andCompare((twin) => twin.delete(ClusterResourceSet, 'crs'))],
  (choose) => {
    const strategy = choose('ApplyOnce', 'Reconcile')
    const resources = randomResources(choose)
    return [
      `a ClusterResourceSet is created with ${strategy} and ${text(resources)}`,
      andCompare((twin) => twin.create(ClusterResourceSet, resourceSet('crs', resources, { strategy }))),
    ]
  },
]

/** Changes a ClusterResourceSet, its sources, its binding, the Cluster that it selects, and the applied objects, at random. */
export const randomResourceSet =
  (choose: Choose): Case =>
  async (twin) => {
    await createLabelledCluster(twin)
    for (const source of sources) {
      const { 'one.yaml': one, 'two.yaml': two } = randomData(choose)
      await createSource(twin, source, { 'one.yaml': one, ...(two === null ? {} : { 'two.yaml': two }) })
    }
    const strategy = choose('ApplyOnce', 'Reconcile')
    await twin.create(ClusterResourceSet, resourceSet('crs', randomResources(choose), { strategy }))
    await twin.settle('the ClusterResourceSet is created')
    await perform(twin, choose, resourceSetChanges)
  }
