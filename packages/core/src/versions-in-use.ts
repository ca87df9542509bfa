import { compareWithBuild, type Machine, type ReplicasOfVersion, tryParseVersion } from '@capstan/api'
import { compareText } from '@capstan/kube'

/**
 * Returns the versions that the Nodes of Machines report, before there is a Node that of the spec. Builds without an order have the order
 * of the oldest Machines. `undefined` when there are none. Upstream: internal/util/version, v1.14.
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
 * Merges versions with their replicas for status: each version once, in ascending order, invalid versions last. Builds without an order
 * keep theirs. `undefined` when there are none.
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
  const [isA, isB] = [a, b].map((text) => tryParseVersion(text) !== undefined)
  if (!isA || !isB) return isA ? -1 : isB ? 1 : compareText(a, b)
  const order = compareWithBuild(a, b)
  return order === 'differ' ? 0 : order || compareText(a, b)
}
