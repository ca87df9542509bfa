import { ConditionOrder, MachineDeployment, MachineSet, MachineSetFinalizer, pausedCondition } from '@capstan/api'
import { type Outcome, reconcileObject } from '@capstan/controller'
import { controllerOf, isDeleting, type ObjectKey } from '@capstan/kube'
import { clusterOf } from '../cluster-of.ts'
import { unread } from '../external/observed.ts'
import { remove } from './delete.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { machines } from './machines.ts'
import { owner } from './owner.ts'
import { remediate } from './remediate.ts'
import { syncReplicas } from './replicas.ts'
import type { MachineSetIO, MachineSetPhase, MachineSetScope } from './scope.ts'
import { OwnedConditions, reportStatus, significantFields } from './status.ts'
import { startUpdates } from './start-updates.ts'
import { syncMachines } from './sync-machines.ts'
import { bootstrapTemplate, infrastructureTemplate } from './templates.ts'

const always: MachineSetPhase[] = [owner, infrastructureTemplate, bootstrapTemplate, machines]
const unlessDeleting: MachineSetPhase[] = [remediate, syncMachines, startUpdates, syncReplicas]
const whenDeleting: MachineSetPhase[] = [remove]

/** Reconciles one MachineSet. Safe to call at any time, any number of times. */
export const reconcileMachineSet = (key: ObjectKey, io: MachineSetIO): Promise<Outcome> =>
  reconcileObject(key, io, {
    kind: MachineSet,
    related: clusterOf,
    finalizer: MachineSetFinalizer,
    paused: (machineSet, cluster) => pausedCondition(cluster, machineSet),
    scope: (machineSet, cluster): MachineSetScope => ({
      machineSet,
      cluster,
      machineDeployment: machineDeploymentOf(machineSet, io),
      bootstrapTemplate: unread,
      infrastructureTemplate: unread,
      machines: undefined,
      preflightProblems: [],
    }),
    phases: (machineSet) => [...always, ...(isDeleting(machineSet) ? whenDeleting : unlessDeleting)],
    status: (scope, { clock }) => reportStatus(scope, clock.now()),
    significantFields,
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    order: ConditionOrder,
  })

function machineDeploymentOf(machineSet: MachineSet, { cache }: MachineSetIO): MachineDeployment | undefined {
  const owner = controllerOf(machineSet)
  if (owner?.kind !== MachineDeployment.kind) return undefined
  return cache.peek(MachineDeployment, { namespace: machineSet.metadata.namespace!, name: owner.name })
}
