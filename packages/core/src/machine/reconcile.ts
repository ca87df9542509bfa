import { Cluster, Machine, MachineDeployment, MachineFinalizer, MachineSet, isPaused } from '@capstan/api'
import { commitChanges, mergeOutcomes, type Outcome, proceed, runPhases } from '@capstan/controller'
import { controllerOf, draft, isDeleting, keyOf, type ObjectKey, orAbsent } from '@capstan/kube'
import { unread } from '../external/observed.ts'
import { ensureFinalizer } from '../finalizer.ts'
import { anticipateGeneration } from '../generation.ts'
import { phaseErrors } from '../phase-errors.ts'
import { reportPaused } from '../report-paused.ts'
import { bootstrap } from './bootstrap.ts'
import { certificateExpiry } from './certificate-expiry.ts'
import { remove } from './delete.ts'
import { inPlaceUpdate } from './in-place-update.ts'
import { infrastructure } from './infrastructure.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { node } from './node.ts'
import { owner } from './owner.ts'
import type { MachineIO, MachinePhase, MachineScope } from './scope.ts'
import { ownedConditions, reportStatus } from './status.ts'

const always: MachinePhase[] = [owner, bootstrap, infrastructure, node, certificateExpiry]
const whenDeleting: MachinePhase[] = [remove]
const whileLiving: MachinePhase[] = [inPlaceUpdate]

/** Brings one Machine, and what it owns, towards its spec. Safe to run at any moment, any number of times. */
export async function reconcileMachine(key: ObjectKey, io: MachineIO): Promise<Outcome> {
  const cached = io.cache.peek(Machine, key)
  if (!cached) return proceed()
  const cluster = await clusterOf(cached, io)
  if (isPaused(cluster, cached)) return reportPaused(io, Machine, cached, cluster)
  const before = await ensureFinalizer(io.client, Machine, cached, MachineFinalizer)

  const machine = draft(before)
  const scope: MachineScope = {
    machine,
    cluster,
    ...ownersOf(machine, io),
    bootstrap: unread,
    infrastructure: unread,
    node: { state: 'unread' },
    deletion: { reason: 'Deleting', message: 'Deletion started' },
    steps: {},
  }
  const phases = [...always, ...(isDeleting(machine) ? whenDeleting : whileLiving)]
  const { outcome, errors } = await runPhases(phases, scope, io)

  anticipateGeneration(before, machine)
  // Status is written even when a phase failed: it is how a user learns that one did.
  const health = io.clusters.health(keyOf(cluster))
  const later = reportStatus(scope, { now: io.clock.now(), health, gracePeriod: io.settings.remoteConditionsGracePeriod })
  if (errors.length === 0 && machine.metadata.generation) machine.status!.observedGeneration = machine.metadata.generation
  await commitChanges(io.client, Machine, before, machine, {
    conditions: ownedConditions(scope),
    legacyConditions: OwnedLegacyConditions,
    signal: io.signal,
  })
  if (errors.length > 0) throw phaseErrors(Machine, key, errors)
  return mergeOutcomes([outcome, later])
}

async function clusterOf({ metadata, spec }: Machine, io: MachineIO): Promise<Cluster> {
  const key = { namespace: metadata.namespace!, name: spec.clusterName }
  const cluster = io.cache.peek(Cluster, key) ?? (await orAbsent(io.client.get(Cluster, key, { signal: io.signal })))
  if (cluster) return cluster
  throw new Error(
    `failed to get cluster "${spec.clusterName}" for machine "${metadata.name}" in namespace "${metadata.namespace}"`,
  )
}

function ownersOf(machine: Machine, io: MachineIO): Pick<MachineScope, 'machineSet' | 'machineDeployment'> {
  const { namespace } = machine.metadata
  const set = controllerOf(machine)
  const machineSet =
    set?.kind === MachineSet.kind ? io.cache.peek(MachineSet, { namespace: namespace!, name: set.name }) : undefined
  const deployment = machineSet && controllerOf(machineSet)
  const machineDeployment =
    deployment?.kind === MachineDeployment.kind
      ? io.cache.peek(MachineDeployment, { namespace: namespace!, name: deployment.name })
      : undefined
  return { machineSet, machineDeployment }
}
