/** What rollout planners work on, and what they answer. Planners are pure: a whole rollout can be played without a cluster. */

/** Counts of one MachineSet. */
export interface SetCounts {
  readonly name: string
  /** `spec.replicas`: how many Machines there should be. */
  readonly desired: number
  /** `status.replicas`: how many there are, those being deleted included. */
  readonly existing: number
  /** `status.availableReplicas` */
  readonly available: number
  /** `status.upToDateReplicas` */
  readonly upToDate: number
}

/** A rollout as it stands. */
export interface Rollout {
  /** `spec.replicas` of the MachineDeployment. */
  readonly replicas: number
  readonly maxSurge: number
  readonly maxUnavailable: number
  /** The set whose template is the MachineDeployment's. */
  readonly current: SetCounts
  /** All others, the oldest first. */
  readonly old: readonly SetCounts[]
  /** What has to do with updates in place; absent when no set can be left that way. */
  readonly inPlace?: InPlaceRollout
}

/** Machines that go from old sets to the current one, in place of new ones. */
export interface InPlaceRollout {
  /** Old sets whose Machines can be updated in place: they move them instead of deleting them. */
  readonly movable: ReadonlySet<string>
  /** Machines that came to the current set and that its `spec.replicas` does not count yet. */
  readonly arrived: readonly string[]
  /** Whether any Machine of the deployment is being updated at this moment. */
  readonly isUpdating: boolean
}

/** One set to be scaled, and why. */
export interface Scale {
  readonly set: string
  readonly from: number
  readonly to: number
  readonly reasons: readonly string[]
}

/** Scalings decided so far in one plan. */
export class ScalePlan {
  readonly #scales = new Map<string, Scale>()

  /** Where the set goes: what was decided, or what it has. */
  target({ name, desired }: SetCounts): number {
    return this.#scales.get(name)?.to ?? desired
  }

  /** Scaling a set to what it has takes back what was decided before. Its reasons stay. */
  scale(set: SetCounts, to: number, reason: string): void {
    const reasons = [...this.reasons(set), reason]
    this.#scales.set(set.name, { set: set.name, from: set.desired, to, reasons })
  }

  reasons({ name }: SetCounts): readonly string[] {
    return this.#scales.get(name)?.reasons ?? []
  }

  get isEmpty(): boolean {
    return this.scales.length === 0
  }

  get scales(): readonly Scale[] {
    return [...this.#scales.values()].filter(({ from, to }) => from !== to)
  }
}

/** A plan in lines that a person reads: `ms1 3 -> 2: 4 available replicas > 3 minimum available replicas`. */
export const planText = (scales: readonly Scale[]): string[] =>
  scales.map(({ set, from, to, reasons }) => `${set} ${from} -> ${to}: ${reasons.join('; ')}`)

export const sum = (sets: readonly SetCounts[], count: (set: SetCounts) => number): number =>
  sets.reduce((total, set) => total + count(set), 0)

/** Machines that a set has or will have: those being deleted still count, those not yet made already do. */
export const machinesOf = ({ desired, existing }: SetCounts): number => Math.max(desired, existing)
