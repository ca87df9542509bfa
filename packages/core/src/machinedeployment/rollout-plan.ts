/** Inputs and results of rollout planners. Planners are pure, so that a whole rollout can be simulated without a cluster. */

/** Counts of one MachineSet. */
export interface SetCounts {
  readonly name: string
  /** `spec.replicas`: the wanted number of Machines. */
  readonly desired: number
  /** `status.replicas`: the number of existing Machines, including those being deleted. */
  readonly existing: number
  /** `status.availableReplicas` */
  readonly available: number
  /** `status.upToDateReplicas` */
  readonly upToDate: number
}

/** Inputs of a planner: limits of the rollout, and counts of all sets. */
export interface Rollout {
  /** `spec.replicas` of the MachineDeployment. */
  readonly replicas: number
  readonly maxSurge: number
  readonly maxUnavailable: number
  /** The set with the MachineDeployment's template. Before it is created, its counts are 0. */
  readonly current: SetCounts
  /** All other sets, the oldest first. */
  readonly old: readonly SetCounts[]
  /** In-place updates; absent with the strategy OnDelete, which has none. */
  readonly inPlace?: InPlaceRollout
}

/** Machines that move from old sets to the current one instead of being replaced. */
export interface InPlaceRollout {
  /** Names of old sets whose Machines can be updated in place: these sets move Machines instead of deleting them. */
  readonly movable: ReadonlySet<string>
  /** Names of Machines that moved to the current set and that its `spec.replicas` does not include yet. */
  readonly arrived: readonly string[]
  /** Whether any Machine of the deployment is being updated in place now. */
  readonly isUpdating: boolean
}

/** A set to scale, with the reasons. */
export interface Scale {
  readonly set: string
  readonly from: number
  readonly to: number
  readonly reasons: readonly string[]
}

/** The scalings decided so far. */
export class ScalePlan {
  readonly #scales = new Map<string, Scale>()

  /** Returns the planned replicas of a set; without a decision, its `spec.replicas`. */
  target({ name, desired }: SetCounts): number {
    return this.#scales.get(name)?.to ?? desired
  }

  /** Plans the replicas of a set. Scaling a set to its `spec.replicas` cancels an earlier decision, but keeps the reasons. */
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

/** Formats a plan for users: `ms1 3 -> 2: 4 available replicas > 3 minimum available replicas`. */
export const planText = (scales: readonly Scale[]): string[] =>
  scales.map(({ set, from, to, reasons }) => `${set} ${from} -> ${to}: ${reasons.join('; ')}`)

export const sum = (sets: readonly SetCounts[], count: (set: SetCounts) => number): number =>
  sets.reduce((total, set) => total + count(set), 0)

/** Returns the larger of the desired and the existing number of Machines: Machines that are not created yet or being deleted count. */
export const machinesOf = ({ desired, existing }: SetCounts): number => Math.max(desired, existing)
