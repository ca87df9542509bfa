/**
 * Decides the next step of a rollout by the planner of the strategy. With RollingUpdate, first determines by the hook CanUpdateMachineSet which
 * old sets move Machines to the current one.
 */
import { isUpdateInProgress, type MachineSet } from '@capstan/api'
import { findMovableSets } from './can-update-machine-set.ts'
import type { SetsByRole } from './current-set.ts'
import { desiredMachineSet, type Revision, revisionOf, type SetRole } from './desired-machine-set.ts'
import { fenceposts } from './fenceposts.ts'
import { type Arrivals, arrivals, moveCandidates } from './in-place-moves.ts'
import { planOnDelete } from './on-delete.ts'
import { planRollingUpdate } from './plan-rolling-update.ts'
import type { Rollout, Scale, SetCounts } from './rollout-plan.ts'
import type { MachineDeploymentIO, MachineDeploymentScope } from './scope.ts'

/** One step of a rollout. */
export interface Step {
  readonly plan: readonly Scale[]
  /** Names of old sets that move Machines to the current one. */
  readonly movable: ReadonlySet<string>
  /** Machines that have moved to the current set. */
  readonly arrived: Arrivals
}

/**
 * Returns the next step. `name` is the name of the current set, which may not exist yet.
 * @throws Error when the deployment has no strategy, when maxSurge or maxUnavailable is invalid, or when `findMovableSets` fails: without its
 *   result, no step is decided
 */
export async function nextStep(
  name: string,
  revision: Revision,
  { current, old, eligible }: SetsByRole,
  scope: MachineDeploymentScope,
  io: MachineDeploymentIO,
): Promise<Step> {
  const { machineDeployment, machines = [] } = scope
  const rollout: Rollout = {
    replicas: machineDeployment.spec.replicas!,
    ...fenceposts(machineDeployment),
    current: current ? countsOf(current) : { name, desired: 0, existing: 0, available: 0, upToDate: 0 },
    old: old.map(countsOf),
  }
  const type = machineDeployment.spec.rollout?.strategy?.type
  switch (type) {
    case 'OnDelete':
      return { plan: planOnDelete(rollout), movable: new Set(), arrived: arrivals(undefined, []) }
    case 'RollingUpdate': {
      const arrived = arrivals(current, machines)
      const inPlace = { movable: new Set<string>(), arrived: arrived.uncounted, isUpdating: machines.some(isUpdateInProgress) }
      const candidates = new Set(moveCandidates({ ...rollout, inPlace }).map((set) => set.name))
      // The request contains old sets with the new values of all fields that propagate in place, so that the target does not differ in these fields.
      const candidateSets = eligible
        .filter(({ metadata }) => candidates.has(metadata.name))
        .map((set) => desiredMachineSet(machineDeployment, set, set.metadata.name, oldRole(set)))
      const role: SetRole = { isCurrent: true, revision, replicas: current?.spec.replicas ?? 0 }
      const target = desiredMachineSet(machineDeployment, current, name, role)
      const movable = await findMovableSets(candidateSets, target, scope, io)
      return { plan: planRollingUpdate({ ...rollout, inPlace: { ...inPlace, movable } }), movable, arrived }
    }
    case undefined:
      throw new Error('unexpected deployment strategy type: ')
  }
}

const oldRole = (set: MachineSet): SetRole => ({
  isCurrent: false,
  revision: revisionOf(set),
  replicas: set.spec.replicas ?? 0,
})

export const countsOf = ({ metadata, spec, status }: MachineSet): SetCounts => ({
  name: metadata.name,
  desired: spec.replicas ?? 0,
  existing: status?.replicas ?? 0,
  available: status?.availableReplicas ?? 0,
  upToDate: status?.upToDateReplicas ?? 0,
})
