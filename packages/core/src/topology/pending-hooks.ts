/**
 * Hooks that must still be called, remembered on the Cluster itself: `runtime.cluster.x-k8s.io/pending-hooks` holds their names,
 * sorted and separated by commas. Upstream: internal/hooks, v1.14.
 */
import { Cluster, PendingHooksAnnotation } from '@capstan/api'
import { type Client, isReason, keyOf, type KubeObject } from '@capstan/kube'

export const pendingHooks = ({ metadata }: KubeObject): ReadonlySet<string> =>
  new Set((metadata.annotations?.[PendingHooksAnnotation] ?? '').split(',').filter((name) => name !== ''))

export interface Marks {
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
  /** Other annotations that must appear together with the marks. */
  readonly annotations?: Readonly<Record<string, string>>
}

/** The annotations to merge into `object`: only what differs, `null` where one goes. Pure. */
export function markedAnnotations(object: KubeObject, marks: Marks): Record<string, string | null> {
  const names = new Set(pendingHooks(object))
  for (const name of marks.add ?? []) names.add(name)
  for (const name of marks.remove ?? []) names.delete(name)
  const wanted: Record<string, string | null> = {
    ...marks.annotations,
    [PendingHooksAnnotation]: names.size === 0 ? null : [...names].sort().join(','),
  }
  const now = object.metadata.annotations ?? {}
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => (now[name] ?? null) !== value))
}

/** How often a set of marks is merged anew when somebody else writes the Cluster at the same time. */
const Attempts = 5

/**
 * Changes the marks of a Cluster under its resourceVersion: several write this annotation, and a mark that comes back from a
 * stale copy would call its hook twice.
 */
export async function markHooks(client: Client, cluster: Cluster, marks: Marks, signal: AbortSignal): Promise<Cluster> {
  let latest = cluster
  for (let attempt = 1; ; attempt++) {
    const annotations = markedAnnotations(latest, marks)
    if (Object.keys(annotations).length === 0) return latest
    const { resourceVersion } = latest.metadata
    try {
      return await client.patch(
        Cluster,
        keyOf(cluster),
        { type: 'merge', body: { metadata: { resourceVersion, annotations } } },
        { signal },
      )
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempt === Attempts) throw err
      latest = await client.get(Cluster, keyOf(cluster), { signal })
      if (latest.metadata.uid !== cluster.metadata.uid) throw err
    }
  }
}
