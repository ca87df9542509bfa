/**
 * Hooks that must still be called, remembered on the Cluster itself: `runtime.cluster.x-k8s.io/pending-hooks` holds their names,
 * sorted and separated by commas. Upstream: internal/hooks, v1.14.
 */
import { Cluster, PendingHooksAnnotation } from '@capstan/api'
import { type Client, equal, isReason, keyOf, type KubeObject } from '@capstan/kube'

export const pendingHooks = ({ metadata }: KubeObject): ReadonlySet<string> =>
  new Set((metadata.annotations?.[PendingHooksAnnotation] ?? '').split(',').filter((name) => name !== ''))

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
  const names = new Set(pendingHooks(cluster))
  for (const name of change.add ?? []) names.add(name)
  for (const name of change.remove ?? []) names.delete(name)
  const pending = names.size === 0 ? null : [...names].sort().join(',')
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
