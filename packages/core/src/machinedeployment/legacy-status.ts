/**
 * Reports a MachineDeployment's status in the v1beta1 form, under `status.deprecated.v1beta1`. Pure, except for the draft that it changes.
 * Upstream: machinedeployment_sync.go, syncDeploymentStatus, v1.14.
 */
import type { MachineSet } from '@capstan/api'
import { isDeleting, legacyFalse, legacyTrue, mirrorLegacyReady, type NewLegacyCondition } from '@capstan/kube'
import { reportLegacy, reportLegacyConditions } from '../legacy-status.ts'
import { machineDeploymentCounts } from './counts.ts'
import { setsByRole } from './current-set.ts'
import { leastAvailable } from './fenceposts.ts'
import type { MachineDeploymentScope } from './scope.ts'

/** Legacy conditions that this controller owns. */
export const OwnedLegacyConditions = ['Ready', 'Available', 'MachineSetReady']

/**
 * Writes the v1beta1 status on the draft. As upstream, changes nothing while the MachineDeployment is being deleted, when its MachineSets
 * could not be listed, or when not all of them could be written. Also changes nothing without `spec.replicas`, or when maxSurge or
 * maxUnavailable is invalid.
 */
export function reportLegacyStatus(
  { machineDeployment, machineSets, rolloutIncomplete }: MachineDeploymentScope,
  now: number,
): void {
  if (!machineSets || rolloutIncomplete || isDeleting(machineDeployment) || machineDeployment.spec.replicas === undefined) return
  const least = leastAvailable(machineDeployment)
  if (least === undefined) return
  const { current } = setsByRole(machineDeployment, machineSets, now)
  const { availableReplicas } = machineDeploymentCounts(machineSets)
  // Upstream subtracts available replicas from the sum of the sets' spec.replicas, not from the number of existing Machines.
  const replicas = machineSets.reduce((sum, { spec }) => sum + (spec.replicas ?? 0), 0)
  const available = total(machineSets, 'availableReplicas')
  reportLegacy(machineDeployment, {
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: total(machineSets, 'readyReplicas'),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, replicas - available),
  })
  const computed: NewLegacyCondition[] = [
    available >= least
      ? legacyTrue('Available')
      : legacyFalse(
          'Available',
          'WaitingForAvailableMachines',
          'Warning',
          // Upstream: the v1beta1 count of available replicas decides, but the message has the v1beta2 count.
          `Minimum availability requires ${least} replicas, current ${availableReplicas} available`,
        ),
    current
      ? mirrorLegacyReady(current, 'MachineSetReady', legacyFalse('MachineSetReady', 'WaitingForMachineSet', 'Info'))
      : legacyFalse('MachineSetReady', 'WaitingForMachineSet', 'Info', 'MachineSet not found'),
  ]
  reportLegacyConditions(machineDeployment, computed, { now, ready: { of: ['Available'] } })
}

const total = (sets: readonly MachineSet[], count: 'availableReplicas' | 'readyReplicas'): number =>
  sets.reduce((sum, { status }) => sum + (status?.deprecated?.v1beta1?.[count] ?? 0), 0)
