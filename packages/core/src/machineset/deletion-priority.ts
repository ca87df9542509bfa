/** Selects the Machines to delete when a MachineSet has too many. Pure. Upstream: machineset_deletion_order.go, v1.14. */
import { DeleteMachineAnnotation, isUpdateInProgress, type Machine, type MachineSet } from '@capstan/api'
import { compareText, isDeleting, isFalse } from '@capstan/kube'

type Order = NonNullable<NonNullable<MachineSet['spec']['deletion']>['order']>

/**
 * Returns the first `count` Machines to delete. Machines that are being deleted already come first, and are included in `count`. `now` is in
 * milliseconds since the Unix epoch.
 */
export function machinesToDelete(machines: readonly Machine[], count: number, order: Order = 'Random', now: number): Machine[] {
  const ranked = machines.map((machine) => ({ machine, priority: deletionPriority(machine, order, now) }))
  ranked.sort((a, b) => b.priority - a.priority || compareText(a.machine.metadata.name, b.machine.metadata.name))
  return ranked.slice(0, Math.max(count, 0)).map(({ machine }) => machine)
}

/** Returns a priority from 0 to 100; the highest is deleted first. */
export function deletionPriority(machine: Machine, order: Order, now: number): number {
  const { annotations = {}, creationTimestamp } = machine.metadata
  if (isDeleting(machine)) return 100
  if (annotations[DeleteMachineAnnotation] !== undefined) return 80
  if (isUpdateInProgress(machine)) return 75
  if (isUnhealthy(machine)) return 50
  if (order === 'Random') return 20
  const age = Math.max(now - Date.parse(creationTimestamp), 0) / 1000
  // Grows with age towards the priority of unhealthy Machines: about half of it after a week.
  const byAge = 50 * (1 - Math.exp(-age / TenDays))
  return order === 'Oldest' ? byAge : 50 - byAge
}

/** Ten days in seconds. */
const TenDays = 864_000

const isUnhealthy = (machine: Machine): boolean =>
  !machine.status?.nodeRef || isFalse(machine, 'NodeHealthy') || isFalse(machine, 'HealthCheckSucceeded')
