/** Counts the Nodes of a MachinePool. Pure. Upstream: machinepool_controller_noderef.go, v1.14. */
import type { NodeReference } from '@capstan/api'
import { type Node, seconds, timeLeft } from '@capstan/kube'

export interface NodeReport {
  /** Nodes that have one of the given provider IDs, each once, in the order of the IDs. */
  readonly nodes: readonly Node[]
  readonly ready: number
  readonly available: number
  /** IDs that were given more than once. */
  readonly repeated: readonly string[]
  /**
   * Time, in milliseconds since the epoch, when the next ready Node will have been ready for `minReadySeconds`; `undefined` when there is
   * no such Node.
   */
  readonly nextAvailable: number | undefined
}

/** Finds the Nodes of the provider IDs, and counts those that are ready, and those that have been ready for `minReadySeconds`. */
export function nodeReport(
  providerIDs: readonly string[],
  nodeOf: (providerID: string) => Node | undefined,
  { now, minReadySeconds = 0 }: { readonly now: number; readonly minReadySeconds?: number | undefined },
): NodeReport {
  const ids = new Set(providerIDs)
  const repeated = ids.size === providerIDs.length ? [] : repeatedOf(providerIDs)
  const nodes = [...ids].flatMap((id) => nodeOf(id) ?? [])
  const times = nodes.map((node) => availableAt(node, minReadySeconds, now))
  const futureTimes = times.filter((at) => at > now && at < Infinity)
  return {
    nodes,
    ready: nodes.filter((node) => readyCondition(node)?.status === 'True').length,
    available: times.filter((at) => at <= now).length,
    repeated,
    nextAvailable: futureTimes.length === 0 ? undefined : futureTimes.reduce((a, b) => Math.min(a, b)),
  }
}

export const nodeReferences = ({ nodes }: NodeReport): NodeReference[] =>
  nodes.map(({ metadata }) => ({ apiVersion: 'v1', kind: 'Node', name: metadata.name, uid: metadata.uid }))

function repeatedOf(ids: readonly string[]): string[] {
  const earlierIDs = new Set<string>()
  const repeated = new Set<string>()
  for (const id of ids) {
    if (earlierIDs.has(id)) repeated.add(id)
    earlierIDs.add(id)
  }
  return [...repeated]
}

const readyCondition = (node: Node) => node.status?.conditions?.find(({ type }) => type === 'Ready')

function availableAt(node: Node, minReadySeconds: number, now: number): number {
  const ready = readyCondition(node)
  if (ready?.status !== 'True') return Infinity
  if (minReadySeconds === 0) return 0
  const since = Date.parse(ready.lastTransitionTime ?? '')
  return Number.isNaN(since) ? Infinity : now + timeLeft({ since, length: seconds(minReadySeconds), now })
}
