import {
  ClusterTopologyUpgradeStepAnnotation,
  DeleteMachineAnnotation,
  isUpdateInProgress,
  isUpdatePending,
  Machine,
  RemediateMachineAnnotation,
} from '@capstan/api'
import { mergeOutcomes, type Outcome, proceed, type ReconcileContext, requeue } from '@capstan/controller'
import { isDeleting, isFalse, keyOf, type KubeObject, messageOf, seconds } from '@capstan/kube'
import { decideInPlaceUpdate, type InPlaceUpdates, triggerInPlaceUpdate } from './in-place.ts'
import { createMachine } from './machines.ts'
import { planStep, type Step } from './plan.ts'
import { remediate } from './remediate.ts'
import {
  type ObservedMachine,
  parseRecord,
  RemediationForAnnotation,
  RemediationInProgressAnnotation,
  type RemediationRecord,
} from './remediation.ts'
import type { ControlPlaneScope } from './scope.ts'
import { isHealthy, isToBeRemediated } from './status.ts'
import { isRolloutDue } from './up-to-date.ts'

/**
 * If the start of an in-place update was interrupted, completes it. Otherwise deletes a Machine to remediate or, if none can be deleted
 * now, performs the next planned step. Returns a requeue when no watch event will trigger the next reconcile.
 */
export async function takeStep(
  scope: ControlPlaneScope,
  io: ReconcileContext,
  updates: InPlaceUpdates | undefined,
): Promise<Outcome> {
  const { controlPlane, cluster, machines } = scope
  const { spec } = controlPlane
  const domains = cluster.status?.failureDomains ?? []
  const planned = machines.map((entry) => plannedMachine(entry, isRolloutDue(controlPlane, entry.machine, io.clock.now())))
  const state = {
    replicas: spec.replicas ?? 1,
    maxSurge: spec.rollout?.strategy?.rollingUpdate?.maxSurge === 0 ? 0 : 1,
    machines: planned,
    failureDomains: domains.filter((domain) => domain.controlPlane).map((domain) => domain.name),
    certificatesAvailable: scope.certificates.state === 'available',
    isRemediating: hasAnnotation(controlPlane, RemediationInProgressAnnotation),
    pendingVersion: pendingVersion(scope),
  }
  const step = planStep(state)
  scope.step = step
  if (step.kind === 'resume') {
    await updateInPlace(scope, machineNamed(scope, step.machine), io)
    return proceed()
  }
  const remediation = await remediate(scope, { machines: planned, pendingVersion: state.pendingVersion }, io)
  return remediation === 'deleted' ? proceed() : mergeOutcomes([remediation, await performStep(scope, step, io, updates)])
}

async function performStep(
  scope: ControlPlaneScope,
  step: Exclude<Step, { kind: 'resume' }>,
  io: ReconcileContext,
  updates: InPlaceUpdates | undefined,
): Promise<Outcome> {
  const { controlPlane, cluster, machines, template } = scope
  switch (step.kind) {
    case 'none':
      return proceed()
    case 'wait':
      io.log.debug('Waiting before the next step', { reasons: step.messages })
      return proceed()
    case 'create': {
      // A Machine cannot boot without certificates. Conditions report missing certificates and a missing template.
      if (scope.certificates.state !== 'available' || template.state !== 'found') return proceed()
      io.log.info('Creating control plane Machine', { reason: step.reason, failureDomain: step.failureDomain })
      try {
        const machine = await createMachine(scope, template.object, step.failureDomain, io)
        scope.machines = [...machines, { machine, outdated: [] }]
        delete controlPlane.metadata.annotations?.[RemediationInProgressAnnotation]
      } catch (err) {
        const reason = machines.length === 0 ? 'FailedInitialization' : 'FailedScaleUp'
        io.events.event(
          controlPlane,
          'Warning',
          reason,
          `Failed to create control plane Machine for cluster ${cluster.metadata.namespace}/${cluster.metadata.name} control plane: ${(err as Error).message}`,
        )
        throw err
      }
      return proceed()
    }
    case 'delete':
      await deleteMachine(machineNamed(scope, step.machine), step.reason, io)
      return proceed()
    case 'update': {
      const machine = machineNamed(scope, step.machine)
      // Without the template no replacement could be created for a deleted Machine.
      if (template.state !== 'found') return proceed()
      if (updates && !updates.ready) {
        scope.step = { kind: 'wait', messages: ['* waiting for Runtime Extensions to be discovered'] }
        return requeue(seconds(1), 'Runtime Extensions are still being discovered')
      }
      if (updates && (await checkUpdatable(scope, machine, io, updates))) await updateInPlace(scope, machine, io)
      else await deleteMachine(machine, step.reason, io)
      return proceed()
    }
  }
}

/**
 * Returns whether an extension can update the Machine in place. Records an Event when the check fails, and when a handler selects the
 * Machine but it cannot be updated in place. @throws Error when the check fails, for example because the extension fails
 */
async function checkUpdatable(
  scope: ControlPlaneScope,
  machine: Machine,
  io: ReconcileContext,
  updates: InPlaceUpdates,
): Promise<boolean> {
  const { name } = machine.metadata
  try {
    const decision = await decideInPlaceUpdate(scope, machine, io, updates)
    if (decision.kind === 'can') return true
    if (decision.reasons.length > 0) {
      const message = `Machine ${name} is replaced: ${decision.reasons.join('; ')}`
      io.log.info('Machine cannot be updated in-place by extensions', { Machine: name, reason: decision.reasons.join(',') })
      io.events.event(scope.controlPlane, 'Normal', 'InPlaceUpdateNotPossible', message)
    }
    return false
  } catch (err) {
    const message = `failed to determine if Machine ${name} can be updated in-place: ${messageOf(err)}`
    io.events.event(scope.controlPlane, 'Warning', 'FailedCanUpdateMachine', message)
    throw new Error(`failed to update control plane: ${message}`, { cause: err })
  }
}

async function updateInPlace(scope: ControlPlaneScope, machine: Machine, io: ReconcileContext): Promise<void> {
  const updated = await triggerInPlaceUpdate(scope, machine, io)
  scope.machines = scope.machines.map((entry) => (entry.machine === machine ? { machine: updated, outdated: [] } : entry))
}

async function deleteMachine(machine: Machine, reason: string, io: ReconcileContext): Promise<void> {
  io.log.info('Deleting control plane Machine', { Machine: machine.metadata.name, reason })
  await io.client.delete(Machine, keyOf(machine), { preconditions: { uid: machine.metadata.uid } })
}

const machineNamed = ({ machines }: ControlPlaneScope, name: string): Machine =>
  machines.find(({ machine }) => machine.metadata.name === name)!.machine

const plannedMachine = (
  { machine, outdated }: ControlPlaneScope['machines'][number],
  isRolloutDue: boolean,
): ObservedMachine => ({
  name: machine.metadata.name,
  created: machine.metadata.creationTimestamp,
  failureDomain: machine.status?.failureDomain ?? machine.spec.failureDomain,
  deleting: isDeleting(machine),
  hasNode: machine.status?.nodeRef !== undefined,
  healthy: isHealthy(machine),
  failsHealthCheck: isFalse(machine, 'HealthCheckSucceeded'),
  remediationRequested: isToBeRemediated(machine),
  marked: hasAnnotation(machine, RemediateMachineAnnotation),
  replaces: remediationRecordOf(machine),
  outdated,
  deleteFirst: hasAnnotation(machine, DeleteMachineAnnotation),
  updatable:
    outdated.length > 0 &&
    !isRolloutDue &&
    !hasAnnotation(machine, DeleteMachineAnnotation) &&
    !hasAnnotation(machine, RemediateMachineAnnotation),
  update: updateState(machine),
})

function updateState(machine: Machine): ObservedMachine['update'] {
  if (!isUpdateInProgress(machine)) return 'none'
  return isUpdatePending(machine) ? 'running' : 'interrupted'
}

function remediationRecordOf({ metadata }: Machine): RemediationRecord | undefined {
  const value = metadata.annotations?.[RemediationForAnnotation]
  return value === undefined ? undefined : parseRecord(value)
}

const hasAnnotation = ({ metadata }: KubeObject, name: string): boolean => metadata.annotations?.[name] !== undefined

/**
 * Returns the version to which the topology upgrades the control plane next: the version of the current upgrade step or, without such a
 * step, of the topology. Returns `undefined` without a topology, and when the control plane has one of these two versions. While a version
 * is pending, a control plane with Machines that is not being deleted creates, deletes and remediates no Machine, and starts no in-place
 * update.
 */
function pendingVersion({ controlPlane, cluster }: ControlPlaneScope): string | undefined {
  const topologyVersion = cluster.spec.topology?.version
  const { version } = controlPlane.spec
  if (topologyVersion === undefined || topologyVersion === version) return undefined
  const upgradeStep = cluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation]
  return upgradeStep === version ? undefined : upgradeStep || topologyVersion
}
