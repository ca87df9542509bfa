/**
 * Reports a MachineSet's status in the v1beta1 form, under `status.deprecated.v1beta1`. Pure, except for the draft that it changes.
 * Upstream: machineset_controller.go, reconcileV1Beta1Status, v1.14.
 */
import type { Machine } from '@capstan/api'
import {
  appendAll,
  getCondition,
  isDeleting,
  isTrue,
  labelSelector,
  legacyAggregate,
  legacyFalse,
  legacyTrue,
  type NewLegacyCondition,
  seconds,
  timeLeft,
  smallest,
} from '@capstan/kube'
import { reportLegacy, reportLegacyConditions } from '../legacy-status.ts'
import type { MachineSetScope } from './scope.ts'

/** Legacy conditions that this controller owns. */
export const OwnedLegacyConditions = ['Ready', 'MachinesCreated', 'Resized', 'MachinesReady']

/** Writes counts and conditions on the draft. Keeps earlier counts when Machines could not be listed or `spec.replicas` is not set. */
export function reportLegacyStatus(scope: MachineSetScope, now: number): void {
  const { machineSet, machines, created = 0 } = scope
  const { replicas, template } = machineSet.spec
  const computed = creationConditions(scope)
  if (machines && replicas !== undefined) {
    const labels = labelSelector({ matchLabels: template.metadata?.labels ?? {} })
    const counts = {
      fullyLabeledReplicas: machines.filter(({ metadata }) => labels.matches(metadata.labels)).length,
      readyReplicas: machines.filter(hasReadyNode).length,
      availableReplicas: machines.filter((machine) => availableAt(machine, template.spec.minReadySeconds, now) <= now).length,
    }
    reportLegacy(machineSet, counts)
    const desired = isDeleting(machineSet) ? 0 : replicas
    // As upstream, MachinesCreated and Resized do not count Machines that this reconcile has created.
    appendAll(computed, sizeConditions(machines.length - created, desired, counts.readyReplicas), readyConditions(machines))
  }
  reportLegacyConditions(machineSet, computed, { now, ready: { of: ['MachinesCreated', 'Resized', 'MachinesReady'] } })
}

/** Returns the time after `now` at which one more replica becomes available without a watch event; `undefined` if there is none. */
export function nextLegacyReport({ machineSet, machines = [] }: MachineSetScope, now: number): number | undefined {
  const { minReadySeconds } = machineSet.spec.template.spec
  const futureTimes = machines
    .map((machine) => availableAt(machine, minReadySeconds, now))
    .filter((at) => at > now && at < Infinity)
  return futureTimes.length === 0 ? undefined : smallest(futureTimes)
}

/**
 * Whether the Machine has a ready Node, by its condition NodeReady, which mirrors the Node's condition Ready. Upstream reads the Node from the
 * workload cluster.
 */
const hasReadyNode = (machine: Machine): boolean => machine.status?.nodeRef !== undefined && isTrue(machine, 'NodeReady')

function availableAt(machine: Machine, minReadySeconds = 0, now: number): number {
  if (!hasReadyNode(machine)) return Infinity
  if (minReadySeconds === 0) return 0
  const since = Date.parse(getCondition(machine, 'NodeReady')?.lastTransitionTime ?? '')
  return Number.isNaN(since) ? Infinity : now + timeLeft({ since, length: seconds(minReadySeconds), now })
}

function creationConditions({ preflightProblems, creationFailure }: MachineSetScope): NewLegacyCondition[] {
  const type = 'MachinesCreated'
  if (creationFailure) return [legacyFalse(type, creationFailure.reason, 'Error', creationFailure.message)]
  if (preflightProblems.length === 0) return []
  return [legacyFalse(type, 'PreflightCheckFailed', 'Error', preflightProblems.join('; '))]
}

function sizeConditions(current: number, desired: number, ready: number): NewLegacyCondition[] {
  const created = legacyTrue('MachinesCreated')
  const resizing = (direction: 'up' | 'down') =>
    legacyFalse(
      'Resized',
      direction === 'up' ? 'ScalingUp' : 'ScalingDown',
      'Warning',
      `Scaling ${direction} MachineSet to ${desired} replicas (actual ${current})`,
    )
  if (current < desired) return [resizing('up')]
  if (current > desired) return [created, resizing('down')]
  // As upstream, Resized becomes True once all Machines have ready Nodes, not when the Machines exist.
  return ready === current ? [created, legacyTrue('Resized')] : [created]
}

function readyConditions(machines: readonly Machine[]): NewLegacyCondition[] {
  if (machines.length === 0) return [legacyTrue('MachinesReady')]
  const aggregated = legacyAggregate(machines, 'MachinesReady')
  return aggregated ? [aggregated] : []
}
