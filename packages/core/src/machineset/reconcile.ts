import { Cluster, isPaused, MachineDeployment, MachineSet, MachineSetFinalizer } from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, type ReconcileContext, runPhases } from '@capstan/controller'
import { controllerOf, draft, isDeleting, keyText, type ObjectKey, orAbsent } from '@capstan/kube'
import { unread } from '../external/observed.ts'
import { ensureFinalizer } from '../finalizer.ts'
import { anticipateGeneration } from '../generation.ts'
import { phaseErrors } from '../phase-errors.ts'
import { reportPaused } from '../report-paused.ts'
import { remove } from './delete.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { machines } from './machines.ts'
import { owner } from './owner.ts'
import { syncReplicas } from './replicas.ts'
import type { MachineSetIO, MachineSetPhase, MachineSetScope } from './scope.ts'
import { OwnedConditions, reportStatus } from './status.ts'
import { startUpdates } from './start-updates.ts'
import { syncMachines } from './sync-machines.ts'
import { bootstrapTemplate, infrastructureTemplate } from './templates.ts'

const always: MachineSetPhase[] = [owner, infrastructureTemplate, bootstrapTemplate, machines]
const whenLiving: MachineSetPhase[] = [syncMachines, startUpdates, syncReplicas]
const whenDeleting: MachineSetPhase[] = [remove]

/** Brings one MachineSet to as many Machines as it should have. Safe to run at any moment, any number of times. */
export async function reconcileMachineSet(key: ObjectKey, io: MachineSetIO): Promise<Outcome> {
  const cached = io.cache.peek(MachineSet, key)
  if (!cached) return proceed()
  const cluster = await clusterOf(cached, io)
  if (isPaused(cluster, cached)) return reportPaused(io, MachineSet, cached, cluster)
  const before = await ensureFinalizer(io.client, MachineSet, cached, MachineSetFinalizer)

  const machineSet = draft(before)
  const scope: MachineSetScope = {
    machineSet,
    cluster,
    machineDeployment: machineDeploymentOf(machineSet, io),
    bootstrapTemplate: unread,
    infrastructureTemplate: unread,
    machines: undefined,
    preflightProblems: [],
  }
  const phases = isDeleting(machineSet) ? [...always, ...whenDeleting] : [...always, ...whenLiving]
  const { outcome, errors } = await runPhases(phases, scope, io)

  anticipateGeneration(before, machineSet)
  // Status is written even when a phase failed: it is how a user learns that one did.
  const later = reportStatus(scope, io.clock.now())
  if (errors.length === 0 && machineSet.metadata.generation)
    machineSet.status!.observedGeneration = machineSet.metadata.generation
  await commitChanges(io.client, MachineSet, before, machineSet, {
    conditions: OwnedConditions,
    legacyConditions: OwnedLegacyConditions,
    signal: io.signal,
  })
  if (errors.length > 0) {
    throw phaseErrors(MachineSet, key, errors)
  }
  return mergeOutcomes([outcome, later])
}

/** @throws Error when the Cluster does not exist: nothing can be decided without it */
export async function clusterOf(
  { kind, metadata, spec }: MachineSet | MachineDeployment,
  { cache, client, signal }: ReconcileContext,
): Promise<Cluster> {
  const key = { namespace: metadata.namespace!, name: spec.clusterName }
  const cluster = cache.peek(Cluster, key) ?? (await orAbsent(client.get(Cluster, key, { signal })))
  if (cluster) return cluster
  throw new Error(`failed to get Cluster ${keyText(key)} of ${kind} ${metadata.name}: it does not exist`)
}

function machineDeploymentOf(machineSet: MachineSet, { cache }: MachineSetIO): MachineDeployment | undefined {
  const owner = controllerOf(machineSet)
  if (owner?.kind !== MachineDeployment.kind) return undefined
  return cache.peek(MachineDeployment, { namespace: machineSet.metadata.namespace!, name: owner.name })
}
