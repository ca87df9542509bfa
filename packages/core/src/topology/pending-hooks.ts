/** Changes of a Cluster, its marks of pending hooks among them. Upstream: internal/hooks, v1.14. */
import { Cluster, PendingHooksAnnotation, pendingHooksText } from '@capstan/api'
import { type Client, equal, isReason, keyOf } from '@capstan/kube'

/** Changes of a Cluster that must become visible together. */
export interface ClusterChange {
  /** Hooks to mark pending, and those that are not pending any more. */
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
  /** `null` takes an annotation away. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly labels?: Readonly<Record<string, string>>
  readonly spec?: Partial<Cluster['spec']>
}

/** The merge patch that makes the change: only what differs, `undefined` when nothing does. Pure. */
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

/** How often a change is merged anew when somebody else writes the Cluster at the same time. */
const Attempts = 5

/**
 * Changes a Cluster under its resourceVersion: several write its marks, and one that comes back from a stale copy would call its
 * hook twice.
 */
export async function changeCluster(
  client: Client,
  cluster: Cluster,
  change: ClusterChange,
  signal: AbortSignal,
): Promise<Cluster> {
  let latest = cluster
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
