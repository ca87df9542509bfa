import { ConditionOrder, MachineDeployment, MachineDeploymentFinalizer, pausedCondition } from '@capstan/api'
import { type Outcome, reconcileObject } from '@capstan/controller'
import { isDeleting, type ObjectKey } from '@capstan/kube'
import { clusterOf } from '../cluster-of.ts'
import { unread } from '../external/observed.ts'
import { remove } from './delete.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { labelMachineSets, machines, machineSets } from './machine-sets.ts'
import { owner } from './owner.ts'
import { reconcileRollout } from './reconcile-rollout.ts'
import type { MachineDeploymentIO, MachineDeploymentPhase, MachineDeploymentScope } from './scope.ts'
import { OwnedConditions, reportOnlyPaused, reportStatus, significantFields } from './status.ts'
import { templates } from './templates.ts'

const unlessDeleting: MachineDeploymentPhase[] = [machines, owner, templates, machineSets, labelMachineSets, reconcileRollout]
const whenDeleting: MachineDeploymentPhase[] = [machines, machineSets, remove]

/** Reconciles one MachineDeployment. Safe to call at any time, any number of times. */
export const reconcileMachineDeployment = (key: ObjectKey, io: MachineDeploymentIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: MachineDeployment,
    forget: () => io.inPlace?.forget(key),
    related: clusterOf,
    finalizer: MachineDeploymentFinalizer,
    paused: (machineDeployment, cluster) => pausedCondition(cluster, machineDeployment),
    scope: (machineDeployment, cluster): MachineDeploymentScope => ({
      machineDeployment,
      cluster,
      bootstrapTemplate: unread,
      infrastructureTemplate: unread,
      machineSets: undefined,
      machines: undefined,
      rolloutIncomplete: true,
    }),
    phases: (machineDeployment) => (isDeleting(machineDeployment) ? whenDeleting : unlessDeleting),
    endsAtFailure: true,
    // As upstream, reports only Paused when the Machines could not be listed.
    status: (scope, { clock }) => (scope.machines ? reportStatus : reportOnlyPaused)(scope, clock.now()),
    significantFields,
    observesGeneration: ({ machineDeployment, rolloutIncomplete }) => isDeleting(machineDeployment) || !rolloutIncomplete,
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })
