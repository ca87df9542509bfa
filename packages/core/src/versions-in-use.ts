import { compareWithBuild, type Machine, type ReplicasOfVersion, tryParseVersion } from '@capstan/api'
import { compareText } from '@capstan/kube'

/**
 * Returns the versions of Machines, and how many Machines have each version. The version of a Machine is the kubelet version of its Node
 * or, while that is unknown, the version in its spec. Builds of a version that cannot be ordered are sorted by the creation of their oldest
 * Machine. Returns `undefined` when there are no versions. Upstream: internal/util/version, v1.14.
 */
export const versionsOfMachines = (machines: readonly Machine[]): ReplicasOfVersion[] | undefined =>
  mergeVersions(
    machines.toSorted(byAge).flatMap(({ spec, status }) => {
      const version = status?.nodeInfo?.kubeletVersion || spec.version
      return version ? [{ version, replicas: 1 }] : []
    }),
  )

const byAge = ({ metadata: a }: Machine, { metadata: b }: Machine): number =>
  Date.parse(a.creationTimestamp) - Date.parse(b.creationTimestamp) || compareText(a.name, b.name)

/**
 * Merges versions with their replicas for status: each version once, in ascending order, invalid versions last. Builds that cannot be
 * ordered stay in the order of `entries`. Returns `undefined` when there are no versions.
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
  const [isValidA, isValidB] = [a, b].map((text) => tryParseVersion(text) !== undefined)
  if (isValidA !== isValidB) return isValidA ? -1 : 1
  if (!isValidA) return compareText(a, b)
  const order = compareWithBuild(a, b)
  return order === 'differ' ? 0 : order || compareText(a, b)
}
