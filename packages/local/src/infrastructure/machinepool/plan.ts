/** How a pool comes to as many machines as wanted, all of the present template. Pure. */

export interface PoolMachine {
  readonly name: string
  /** Made from an earlier template or version. */
  readonly isOutdated: boolean
  readonly isReady: boolean
  readonly isDeleting: boolean
  /** Its Machine has the annotation delete-machine. */
  readonly isMarked: boolean
  /** Milliseconds since the Unix epoch. */
  readonly created: number
}

export interface PoolStep {
  readonly create: number
  /** Names. */
  readonly remove: readonly string[]
}

/**
 * Scales up and down at once; outdated machines are replaced one by one: a new one is made, and an outdated one goes once that leaves as
 * many ready machines as wanted.
 */
export function planPool(machines: readonly PoolMachine[], replicas: number): PoolStep {
  const living = machines.filter(({ isDeleting }) => !isDeleting)
  const outdated = living.filter(({ isOutdated }) => isOutdated)
  const isReplacing = outdated.length > 0 && replicas > 0
  const create = Math.max(0, replicas + (isReplacing ? 1 : 0) - living.length)
  const excess = living.length - replicas
  if (excess <= 0) return { create, remove: [] }

  const candidates = [...living].sort(byPriority)
  if (!isReplacing) return { create, remove: candidates.slice(0, excess).map(({ name }) => name) }
  let spare = living.filter(({ isReady }) => isReady).length - replicas
  const remove: string[] = []
  for (const { name, isOutdated, isReady } of candidates) {
    if (remove.length === excess || !isOutdated) break
    if (isReady && spare-- <= 0) break
    remove.push(name)
  }
  return { create, remove }
}

/** Outdated machines go first, then marked ones, those that are not ready, and the oldest. */
const byPriority = (a: PoolMachine, b: PoolMachine): number =>
  first(a.isOutdated, b.isOutdated) ||
  first(a.isMarked, b.isMarked) ||
  first(!a.isReady, !b.isReady) ||
  a.created - b.created ||
  (a.name < b.name ? -1 : 1)

const first = (a: boolean, b: boolean): number => Number(b) - Number(a)

/** The failure domain with the fewest machines; the first of those when several have as few. */
export function leastUsed(domains: readonly string[], used: readonly (string | undefined)[]): string | undefined {
  const count = (domain: string) => used.filter((one) => one === domain).length
  return domains.reduce<string | undefined>(
    (best, domain) => (best === undefined || count(domain) < count(best) ? domain : best),
    undefined,
  )
}
