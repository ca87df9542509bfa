/** Plans the next step of a pool towards the wanted number of machines with the current template and version. Pure. */

/** A LocalMachine of the pool. */
export interface PoolMachine {
  readonly name: string
  /** Whether the machine was created from another template or version than the current one. */
  readonly isOutdated: boolean
  readonly isReady: boolean
  readonly isDeleting: boolean
  /** Whether core's Machine for this machine has the annotation `cluster.x-k8s.io/delete-machine`. */
  readonly isMarked: boolean
  /** Creation time, in milliseconds since the Unix epoch. */
  readonly created: number
}

export interface PoolStep {
  /** Number of machines to create. */
  readonly create: number
  /** Names of the machines to remove. */
  readonly remove: readonly string[]
}

/**
 * Returns the next step. Machines that are being deleted do not count. All missing machines are created in one step. Without outdated
 * machines, or with zero replicas, all excess machines are removed in one step. Otherwise machines are replaced: if at most `replicas`
 * exist, machines are created until `replicas` + 1 exist; if more exist, outdated machines are removed in the order of `byPriority`, until
 * `replicas` machines or no outdated machines remain. In a replacement, a ready machine is kept if fewer than `replicas` ready machines would
 * remain without it.
 */
export function planPool(machines: readonly PoolMachine[], replicas: number): PoolStep {
  const remaining = machines.filter(({ isDeleting }) => !isDeleting)
  const outdated = remaining.filter(({ isOutdated }) => isOutdated)
  const isReplacing = outdated.length > 0 && replicas > 0
  const create = Math.max(0, replicas + (isReplacing ? 1 : 0) - remaining.length)
  const excess = remaining.length - replicas
  if (excess <= 0) return { create, remove: [] }

  const candidates = [...remaining].sort(byPriority)
  if (!isReplacing) return { create, remove: candidates.slice(0, excess).map(({ name }) => name) }
  let spare = remaining.filter(({ isReady }) => isReady).length - replicas
  const remove: string[] = []
  for (const { name, isOutdated, isReady } of candidates) {
    if (remove.length === excess || !isOutdated) break
    if (isReady && spare <= 0) continue
    if (isReady) spare--
    remove.push(name)
  }
  return { create, remove }
}

/** Order of deletion: outdated machines first, then marked machines, machines that are not ready, and the oldest. */
const byPriority = (a: PoolMachine, b: PoolMachine): number =>
  trueFirst(a.isOutdated, b.isOutdated) ||
  trueFirst(a.isMarked, b.isMarked) ||
  trueFirst(!a.isReady, !b.isReady) ||
  a.created - b.created ||
  (a.name < b.name ? -1 : 1)

const trueFirst = (a: boolean, b: boolean): number => Number(b) - Number(a)

/**
 * Returns the failure domain with the fewest machines, the first of several such domains; `undefined` without domains. `used` contains the
 * domain of each machine.
 */
export function leastUsedDomain(domains: readonly string[], used: readonly (string | undefined)[]): string | undefined {
  const count = (domain: string) => used.filter((usedDomain) => usedDomain === domain).length
  return domains.reduce<string | undefined>(
    (best, domain) => (best === undefined || count(domain) < count(best) ? domain : best),
    undefined,
  )
}
