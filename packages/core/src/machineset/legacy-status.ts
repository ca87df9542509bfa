/**
 * What a MachineSet tells in the form of v1beta1, under `status.deprecated.v1beta1`. Pure, but for the draft that it writes on.
 * Upstream: machineset_controller.go, reconcileV1Beta1Status, v1.14.
 */
import type { Machine } from '@capstan/api'
import {
  getCondition,
  isDeleting,
  isTrue,
  labelSelector,
  legacyAggregate,
  legacyFalse,
  legacyTrue,
  type NewLegacyCondition,
  seconds,
} from '@capstan/kube'
import { reportLegacy, reportLegacyConditions } from '../legacy-status.ts'
import type { MachineSetScope } from './scope.ts'

/** Legacy conditions in which this controller's word counts. */
export const OwnedLegacyConditions = ['Ready', 'MachinesCreated', 'Resized', 'MachinesReady']

/** Writes counts and conditions on the draft. Machines that could not be listed, or counts that are not wanted, leave them be. */
export function reportLegacyStatus(scope: MachineSetScope, now: number): void {
  const { machineSet, machines } = scope
  const { replicas, template } = machineSet.spec
  const computed = creation(scope)
  if (machines && replicas !== undefined) {
    const labels = labelSelector({ matchLabels: template.metadata?.labels ?? {} })
    const counts = {
      fullyLabeledReplicas: machines.filter(({ metadata }) => labels.matches(metadata.labels)).length,
      readyReplicas: machines.filter(hasReadyNode).length,
      availableReplicas: machines.filter((machine) => availableAt(machine, template.spec.minReadySeconds) <= now).length,
    }
    reportLegacy(machineSet, counts)
    const desired = isDeleting(machineSet) ? 0 : replicas
    computed.push(...sizeOf(machines.length, desired, counts.readyReplicas), ...machinesReady(machines))
  }
  reportLegacyConditions(machineSet, computed, { now, ready: { of: ['MachinesCreated', 'Resized', 'MachinesReady'] } })
}

/** When, after `now`, time alone makes one more replica available; `undefined` when it never does. */
export function nextLegacyReport({ machineSet, machines = [] }: MachineSetScope, now: number): number | undefined {
  const { minReadySeconds } = machineSet.spec.template.spec
  const coming = machines.map((machine) => availableAt(machine, minReadySeconds)).filter((at) => at > now && at < Infinity)
  return coming.length === 0 ? undefined : Math.min(...coming)
}

/**
 * Of the Node, as the Machine reports it. Upstream asks the workload cluster for the Node itself; NodeReady is a copy of its
 * condition, with its time.
 */
const hasReadyNode = (machine: Machine): boolean => machine.status?.nodeRef !== undefined && isTrue(machine, 'NodeReady')

function availableAt(machine: Machine, minReadySeconds = 0): number {
  if (!hasReadyNode(machine)) return Infinity
  if (minReadySeconds === 0) return 0
  const since = Date.parse(getCondition(machine, 'NodeReady')?.lastTransitionTime ?? '')
  return Number.isNaN(since) ? Infinity : since + seconds(minReadySeconds)
}

function creation({ preflightProblems, creationFailure }: MachineSetScope): NewLegacyCondition[] {
  const type = 'MachinesCreated'
  if (creationFailure) return [legacyFalse(type, creationFailure.reason, 'Error', creationFailure.message)]
  if (preflightProblems.length === 0) return []
  return [legacyFalse(type, 'PreflightCheckFailed', 'Error', preflightProblems.join('; '))]
}

function sizeOf(current: number, desired: number, ready: number): NewLegacyCondition[] {
  const created = legacyTrue('MachinesCreated')
  const resizing = (what: 'up' | 'down') =>
    legacyFalse(
      'Resized',
      what === 'up' ? 'ScalingUp' : 'ScalingDown',
      'Warning',
      `Scaling ${what} MachineSet to ${desired} replicas (actual ${current})`,
    )
  if (current < desired) return [resizing('up')]
  if (current > desired) return [created, resizing('down')]
  // Upstream: the size is right once all Machines have ready Nodes, not when they are there.
  return ready === current ? [created, legacyTrue('Resized')] : [created]
}

function machinesReady(machines: readonly Machine[]): NewLegacyCondition[] {
  if (machines.length === 0) return [legacyTrue('MachinesReady')]
  const aggregated = legacyAggregate(machines, 'MachinesReady')
  return aggregated ? [aggregated] : []
}
