/** Changes a Cluster together with its pending-hooks annotation. Upstream: internal/hooks, v1.14. */
import { Cluster, PendingHooksAnnotation, pendingHooksText } from '@capstan/api'
import { inTurn, newestOf, type ReconcileContext } from '@capstan/controller'
import { equal, isReason, type JsonPatchOperation, keyOf, type Patch } from '@capstan/kube'
import { annotationPath } from '../../annotation-path.ts'

/** Changes of a Cluster to write in one patch. */
export interface ClusterChange {
  /** Hooks to add to the pending hooks. */
  readonly add?: readonly string[]
  /** Hooks to remove from the pending hooks. */
  readonly remove?: readonly string[]
  /** `null` removes an annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly labels?: Readonly<Record<string, string>>
  readonly spec?: Partial<Cluster['spec']>
}

interface ClusterPatch {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string | null>>; readonly labels?: object }
  readonly spec?: object
}

/** Returns the merge patch for a change, without entries that the Cluster already has; `undefined` when nothing differs. Pure. */
export function clusterPatch(cluster: Cluster, change: ClusterChange): ClusterPatch | undefined {
  const pending = pendingHooksText(cluster, change)
  const { annotations: currentAnnotations, labels: currentLabels } = cluster.metadata
  const annotations = changedEntries(currentAnnotations, { ...change.annotations, [PendingHooksAnnotation]: pending })
  const labels = changedEntries(currentLabels, change.labels)
  const spec = changedEntries(cluster.spec, change.spec)
  const metadata = { ...(annotations && { annotations }), ...(labels && { labels }) }
  if (Object.keys(metadata).length === 0 && !spec) return undefined
  return { metadata, ...(spec && { spec }) }
}

function changedEntries<V>(current: object = {}, desired: Readonly<Record<string, V>> = {}): Record<string, V> | undefined {
  const different = Object.entries(desired).filter(
    ([name, value]) => !equal((current as Record<string, unknown>)[name] ?? null, value),
  )
  return different.length === 0 ? undefined : Object.fromEntries(different)
}

/** Maximum number of attempts to write a change when there are conflicts. */
const Attempts = 5

/**
 * Writes a change of a Cluster, and returns the Cluster. The patch fails if the pending hooks have changed since the Cluster was read:
 * otherwise a stale copy could restore a pending hook, and the hook would be called a second time. After such a failure, the patch is
 * computed again. If the Cluster has pending hooks and only annotations change, the patch tests the pending hooks and not the
 * resourceVersion, so that it does not fail after a concurrent write of the status.
 */
export async function changeCluster(io: ChangeIO, cluster: Cluster, change: ClusterChange): Promise<Cluster> {
  if (!clusterPatch(cluster, change)) return cluster
  return inTurn(io.cache, Cluster, keyOf(cluster), () => changeInTurn(io, cluster, change))
}

type ChangeIO = Pick<ReconcileContext, 'client' | 'cache' | 'signal'>

async function changeInTurn({ client, cache, signal }: ChangeIO, cluster: Cluster, change: ClusterChange): Promise<Cluster> {
  let latest = newestOf(Cluster, cluster, cache)
  for (let attempt = 1; ; attempt++) {
    const patch = clusterPatch(latest, change)
    if (!patch) return latest
    try {
      return await client.patch(Cluster, keyOf(cluster), guardedPatch(latest, patch), { signal })
    } catch (err) {
      if (!isReason(err, 'Conflict', 'Invalid') || attempt === Attempts) throw err
      const current = await client.get(Cluster, keyOf(cluster), { signal })
      if (current.metadata.uid !== cluster.metadata.uid) throw err
      if (isReason(err, 'Invalid') && pendingHooksOf(current) === pendingHooksOf(latest)) throw err
      latest = current
    }
  }
}

const pendingHooksOf = ({ metadata }: Cluster): string | undefined => metadata.annotations?.[PendingHooksAnnotation]

function guardedPatch({ metadata }: Cluster, patch: ClusterPatch): Patch {
  const pendingHooks = metadata.annotations?.[PendingHooksAnnotation]
  const { annotations, labels } = patch.metadata
  // JSON patches cannot test that an annotation does not exist.
  if (pendingHooks === undefined || labels || patch.spec) {
    return { type: 'merge', body: { ...patch, metadata: { ...patch.metadata, resourceVersion: metadata.resourceVersion } } }
  }
  const changes = Object.entries(annotations ?? {}).map(([name, value]): JsonPatchOperation => {
    const path = annotationPath(name)
    return value === null ? { op: 'remove', path } : { op: 'add', path, value }
  })
  const uid: JsonPatchOperation = { op: 'test', path: '/metadata/uid', value: metadata.uid }
  return {
    type: 'json',
    operations: [uid, { op: 'test', path: annotationPath(PendingHooksAnnotation), value: pendingHooks }, ...changes],
  }
}
