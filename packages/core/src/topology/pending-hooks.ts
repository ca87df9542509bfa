/** Changes a Cluster together with its pending-hooks annotation. Upstream: internal/hooks, v1.14. */
import { Cluster, PendingHooksAnnotation, pendingHooksText } from '@capstan/api'
import { newestOf, type ReconcileContext } from '@capstan/controller'
import { equal, isReason, keyOf } from '@capstan/kube'

/** Changes of a Cluster to write in one patch. */
export interface ClusterChange {
  /** Hooks to mark as pending, and hooks whose mark to remove. */
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
  /** `null` removes an annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly labels?: Readonly<Record<string, string>>
  readonly spec?: Partial<Cluster['spec']>
}

/** Returns the merge patch with the differences; `undefined` when there are none. Pure. */
export function clusterPatch(cluster: Cluster, change: ClusterChange): { metadata?: object; spec?: object } | undefined {
  const pending = pendingHooksText(cluster, change)
  const { annotations: nowAnnotations, labels: nowLabels } = cluster.metadata
  const annotations = differing(nowAnnotations, { ...change.annotations, [PendingHooksAnnotation]: pending })
  const labels = differing(nowLabels, change.labels)
  const spec = differing(cluster.spec, change.spec)
  const metadata = { ...(annotations && { annotations }), ...(labels && { labels }) }
  if (Object.keys(metadata).length === 0 && !spec) return undefined
  return { metadata, ...(spec && { spec }) }
}

function differing(now: object = {}, wanted: object = {}): object | undefined {
  const different = Object.entries(wanted).filter(
    ([name, value]) => !equal((now as Record<string, unknown>)[name] ?? null, value),
  )
  return different.length === 0 ? undefined : Object.fromEntries(different)
}

/** Attempts to merge a change again after a conflict. */
const Attempts = 5

/** Changes a Cluster under its resourceVersion: a mark restored from a stale copy would lead to a second call of its hook. */
export async function changeCluster(
  { client, cache, signal }: Pick<ReconcileContext, 'client' | 'cache' | 'signal'>,
  cluster: Cluster,
  change: ClusterChange,
): Promise<Cluster> {
  if (!clusterPatch(cluster, change)) return cluster
  let latest = newestOf(Cluster, cluster, cache)
  for (let attempt = 1; ; attempt++) {
    const patch = clusterPatch(latest, change)
    if (!patch) return latest
    const body = { ...patch, metadata: { ...patch.metadata, resourceVersion: latest.metadata.resourceVersion } }
    try {
      return await client.patch(Cluster, keyOf(cluster), { type: 'merge', body }, { signal })
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempt === Attempts) throw err
      latest = await client.get(Cluster, keyOf(cluster), { signal })
      if (latest.metadata.uid !== cluster.metadata.uid) throw err
    }
  }
}
