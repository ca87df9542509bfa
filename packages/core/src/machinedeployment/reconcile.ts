import { isPaused, MachineDeployment, MachineDeploymentFinalizer } from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, runPhases } from '@capstan/controller'
import { draft, isDeleting, type ObjectKey } from '@capstan/kube'
import { unread } from '../external/observed.ts'
import { ensureFinalizer } from '../finalizer.ts'
import { anticipateGeneration } from '../generation.ts'
import { phaseErrors } from '../phase-errors.ts'
import { reportPaused } from '../report-paused.ts'
import { clusterOf } from '../machineset/reconcile.ts'
import { remove } from './delete.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { machineSets } from './machine-sets.ts'
import { owner } from './owner.ts'
import { rollOut } from './roll-out.ts'
import type { MachineDeploymentIO, MachineDeploymentPhase, MachineDeploymentScope } from './scope.ts'
import { OwnedConditions, reportStatus } from './status.ts'
import { templates } from './templates.ts'

const whenLiving: MachineDeploymentPhase[] = [owner, templates, machineSets, rollOut]
const whenDeleting: MachineDeploymentPhase[] = [machineSets, remove]

/** Takes one MachineDeployment a step further. Safe to run at any moment, any number of times. */
export async function reconcileMachineDeployment(key: ObjectKey, io: MachineDeploymentIO): Promise<Outcome> {
  const cached = io.cache.peek(MachineDeployment, key)
  if (!cached) {
    io.inPlace?.forget(key)
    return proceed()
  }
  const cluster = await clusterOf(cached, io)
  if (isPaused(cluster, cached)) return reportPaused(io, MachineDeployment, cached, cluster)
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

  anticipateGeneration(before, machineDeployment)
  // Status is written even when a phase failed: it is how a user learns that one did.
  const later = reportStatus(scope, io.clock.now())
  const { generation } = machineDeployment.metadata
  if (errors.length === 0 && generation) machineDeployment.status!.observedGeneration = generation
  const options = { conditions: OwnedConditions, legacyConditions: OwnedLegacyConditions, signal: io.signal }
  await commitChanges(io.client, MachineDeployment, before, machineDeployment, options)
  if (errors.length > 0) {
    throw phaseErrors(MachineDeployment, key, errors)
  }
  return mergeOutcomes([outcome, later])
}
