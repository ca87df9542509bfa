import { compareWithBuild, isKubernetesVersion, type ReplicasOfVersion } from '@capstan/api'
import { compareText } from '@capstan/kube'

/**
 * Merges versions with their replicas for status: each version once, in ascending order, invalid versions last. `undefined` when there are
 * none. Upstream: internal/util/version, v1.14.
 */
export function mergeVersions(entries: readonly ReplicasOfVersion[]): ReplicasOfVersion[] | undefined {
  const replicas = new Map<string, number>()
  for (const entry of entries) replicas.set(entry.version, (replicas.get(entry.version) ?? 0) + (entry.replicas ?? 0))
  if (replicas.size === 0) return undefined
  return [...replicas]
    .map(([version, count]) => ({ version, ...(count > 0 ? { replicas: count } : {}) }))
    .sort((a, b) => compare(a.version, b.version))
}

function compare(a: string, b: string): number {
  const [isA, isB] = [isKubernetesVersion(a), isKubernetesVersion(b)]
  if (!isA || !isB) return isA ? -1 : isB ? 1 : compareText(a, b)
  const order = compareWithBuild(a, b)
  return order === 'differ' || order === 0 ? compareText(a, b) : order
}
