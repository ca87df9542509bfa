/**
 * Reports a Machine's conditions in the v1beta1 form, under `status.deprecated.v1beta1`. Pure, except for the draft that it changes.
 * Upstream: machine_controller_phases.go, machine_controller_noderef.go and reconcileDelete, v1.14.
 */
import { BootstrapConfigContract, InfraMachineContract } from '@capstan/api'
import {
  isDeleting,
  legacyConditionsOf,
  legacyFalse,
  legacyTrue,
  legacyUnknown,
  mirrorProviderReady,
  type NewLegacyCondition,
  type Node,
} from '@capstan/kube'
import { externalOf, isReached } from '../external/observed.ts'
import { reportLegacyConditions } from '../legacy-status.ts'
import type { MachineScope } from './scope.ts'

/** Legacy conditions that this controller owns. */
export const OwnedLegacyConditions = [
  'Ready',
  'BootstrapReady',
  'InfrastructureReady',
  'NodeHealthy',
  'PreDrainDeleteHookSucceeded',
  'DrainingSucceeded',
  'VolumeDetachSucceeded',
  'PreTerminateDeleteHookSucceeded',
]

/** Writes the v1beta1 conditions on the draft of the Machine. */
export function reportLegacyStatus(scope: MachineScope, now: number): void {
  const { machine } = scope
  const computed = [...bootstrapReady(scope), ...infrastructureReady(scope), ...nodeHealthy(scope), ...deletion(scope)]
  const isProvisioning = !isDeleting(machine) && !machine.spec.providerID
  reportLegacyConditions(machine, computed, {
    now,
    ready: {
      // In the order of priority: among the problems of the worst severity, the first gives the reason of Ready.
      of: ['InfrastructureReady', 'BootstrapReady', 'HealthCheckSucceeded', 'OwnerRemediated', 'DrainingSucceeded'],
      ...(isProvisioning ? { steps: ['BootstrapReady', 'InfrastructureReady'] } : {}),
    },
  })
}

function bootstrapReady({ machine, bootstrap }: MachineScope): NewLegacyCondition[] {
  const type = 'BootstrapReady'
  const external = externalOf(bootstrap)
  if (!external) return []
  if (machine.spec.bootstrap.dataSecretName) return [legacyTrue(type)]
  const isCreated = isReached(external, BootstrapConfigContract.dataSecretCreated)
  if (isCreated === undefined) return []
  const fallback = isCreated
    ? legacyTrue(type)
    : legacyFalse(type, isDeleting(machine) ? 'Deleting' : 'WaitingForDataSecret', 'Info')
  return [mirrorProviderReady(external.object, type, fallback)]
}

function infrastructureReady({ machine, infrastructure }: MachineScope): NewLegacyCondition[] {
  const type = 'InfrastructureReady'
  const external = externalOf(infrastructure)
  if (!external) return []
  const isProvisioned = isReached(external, InfraMachineContract.provisioned)
  if (isProvisioned === undefined) return []
  const fallback = isProvisioned
    ? legacyTrue(type)
    : legacyFalse(type, isDeleting(machine) ? 'Deleting' : 'WaitingForInfrastructure', 'Info')
  return [mirrorProviderReady(external.object, type, fallback)]
}

function nodeHealthy({ machine, node, infrastructure, steps }: MachineScope): NewLegacyCondition[] {
  const type = 'NodeHealthy'
  if (steps.node?.state === 'failed') return [legacyFalse(type, 'DeletionFailed', 'Warning')]
  switch (node.state) {
    case 'noProviderID':
      return [legacyFalse(type, 'WaitingForNodeRef', 'Info')]
    case 'disconnected':
      return []
    case 'unread':
      return [legacyUnknown(type, 'NodeInspectionFailed', 'Failed to get the Node for this Machine by ProviderID')]
    case 'missing':
      if (isDeleting(machine)) return []
      return machine.status?.nodeRef
        ? [legacyFalse(type, 'NodeNotFound', 'Error')]
        : [legacyFalse(type, 'NodeProvisioning', 'Warning', 'Waiting for a node with matching ProviderID to exist')]
    case 'found': {
      const infra = externalOf(infrastructure)
      if (!infra || isDeleting(infra.object)) return [legacyFalse(type, 'Deleting', 'Info')]
      return [healthOfNode(type, node.node)]
    }
  }
}

/** Node conditions with their healthy status. */
const Healthy: { readonly [type: string]: string } = {
  Ready: 'True',
  MemoryPressure: 'False',
  DiskPressure: 'False',
  PIDPressure: 'False',
}

/**
 * Returns the condition. As upstream, it is False if the Node reports at least one of the four conditions as neither healthy nor Unknown, it is
 * Unknown if the Node reports all four as Unknown, and otherwise it is True, also for a Node without conditions.
 */
function healthOfNode(type: string, { status }: Node): NewLegacyCondition {
  const reported = status?.conditions ?? []
  const unhealthy = reported.filter(
    (condition) => Object.hasOwn(Healthy, condition.type) && condition.status !== Healthy[condition.type],
  )
  const message = unhealthy.map((condition) => `Node condition ${condition.type} is ${condition.status}`).join('. ')
  const unknown = unhealthy.filter((condition) => condition.status === 'Unknown')
  if (unhealthy.length > unknown.length) return legacyFalse(type, 'NodeConditionsFailed', 'Warning', message)
  if (unknown.length < Object.keys(Healthy).length) return legacyTrue(type)
  return legacyUnknown(type, 'NodeConditionsFailed', message)
}

/** Returns the conditions of the deletion steps that this reconcile reached, except the deletion of the Node, which NodeHealthy reports. */
function deletion({ machine, steps, deletion: stage }: MachineScope): NewLegacyCondition[] {
  const computed: NewLegacyCondition[] = []
  const addHookCondition = (type: string, state: string | undefined) => {
    if (state === 'done') computed.push(legacyTrue(type))
    if (state === 'waiting') computed.push(legacyFalse(type, 'WaitingExternalHook', 'Info'))
  }
  addHookCondition('PreDrainDeleteHookSucceeded', steps.preDrainHooks?.state)
  const { drain, volumes } = steps
  if (drain?.state === 'done') computed.push(legacyTrue('DrainingSucceeded'))
  if (drain?.state === 'waiting') computed.push(legacyFalse('DrainingSucceeded', 'Draining', 'Info', stage.message))
  if (drain?.state === 'failed') computed.push(legacyFalse('DrainingSucceeded', 'DrainingFailed', 'Warning', drain.message))
  if (volumes?.state === 'done') computed.push(legacyTrue('VolumeDetachSucceeded'))
  // As upstream, a step that waits or fails sets the condition only if it is absent.
  const isReported = legacyConditionsOf(machine).some(({ type }) => type === 'VolumeDetachSucceeded')
  if ((volumes?.state === 'waiting' || volumes?.state === 'failed') && !isReported) {
    const message = 'Waiting for node volumes to be detached'
    computed.push(legacyFalse('VolumeDetachSucceeded', 'WaitingForVolumeDetach', 'Info', message))
  }
  addHookCondition('PreTerminateDeleteHookSucceeded', steps.preTerminateHooks?.state)
  if (steps.infrastructure?.state === 'done') computed.push(legacyFalse('InfrastructureReady', 'Deleted', 'Info'))
  if (steps.bootstrap?.state === 'done') computed.push(legacyFalse('BootstrapReady', 'Deleted', 'Info'))
  return computed
}
