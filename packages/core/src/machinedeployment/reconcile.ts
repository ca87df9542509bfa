import {
  type Cluster,
  ConditionOrder,
  isPaused,
  MachineDeployment,
  MachineDeploymentFinalizer,
  pausedCondition,
} from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, type ReconcileContext, runPhases, wait } from '@capstan/controller'
import { draft, isDeleting, keyText, messageOf, type ObjectKey, setConditions } from '@capstan/kube'
import { unread } from '../external/observed.ts'
import { ensureFinalizer } from '../finalizer.ts'
import { clusterOf } from '../machineset/reconcile.ts'
import { remove } from './delete.ts'
import { machineSets } from './machine-sets.ts'
import { owner } from './owner.ts'
import { rollOut } from './roll-out.ts'
import type { MachineDeploymentPhase, MachineDeploymentScope } from './scope.ts'
import { OwnedConditions, reportStatus } from './status.ts'
import { templates } from './templates.ts'

const whenLiving: MachineDeploymentPhase[] = [owner, templates, machineSets, rollOut]
const whenDeleting: MachineDeploymentPhase[] = [machineSets, remove]

/** Takes one MachineDeployment a step further. Safe to run at any moment, any number of times. */
export async function reconcileMachineDeployment(key: ObjectKey, io: ReconcileContext): Promise<Outcome> {
  const cached = io.cache.peek(MachineDeployment, key)
  if (!cached) return proceed()
  const cluster = await clusterOf(cached, io)
  if (isPaused(cluster, cached)) return reportPaused(cached, cluster, io)
  const before = await ensureFinalizer(io.client, MachineDeployment, cached, MachineDeploymentFinalizer)

  const machineDeployment = draft(before)
  const scope: MachineDeploymentScope = {
    machineDeployment,
    cluster,
    bootstrapTemplate: unread,
    infrastructureTemplate: unread,
    machineSets: undefined,
    machines: undefined,
  }
  const phases = isDeleting(machineDeployment) ? whenDeleting : whenLiving
  const { outcome, errors } = await runPhases(phases, scope, io)

  // Status is written even when a phase failed: it is how a user learns that one did.
  const later = reportStatus(scope, io.clock.now())
  const { generation } = machineDeployment.metadata
  if (errors.length === 0 && generation) machineDeployment.status!.observedGeneration = generation
  const options = { conditions: OwnedConditions, signal: io.signal }
  await commitChanges(io.client, MachineDeployment, before, machineDeployment, options)
  if (errors.length > 0) {
    throw new AggregateError(errors, `Cannot reconcile MachineDeployment ${keyText(key)}: ${errors.map(messageOf).join('; ')}`)
  }
  return mergeOutcomes([outcome, later])
}

/** While paused, only the condition that says so is written. */
async function reportPaused(before: MachineDeployment, cluster: Cluster, io: ReconcileContext): Promise<Outcome> {
  const machineDeployment = draft(before)
  const { generation } = before.metadata
  const paused = [pausedCondition(cluster, before)]
  const conditions = setConditions(before.status?.conditions, paused, { now: io.clock.now(), generation, order: ConditionOrder })
  machineDeployment.status = { ...machineDeployment.status, conditions }
  await commitChanges(io.client, MachineDeployment, before, machineDeployment, { conditions: ['Paused'], signal: io.signal })
  return wait('paused')
}
