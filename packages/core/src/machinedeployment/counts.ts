import type { MachineSet } from '@capstan/api'
import type { MachineCounts } from '../machineset/machines-report.ts'

/** The counts of a deployment: the sums over its sets. */
export function machineDeploymentCounts(sets: readonly MachineSet[]): MachineCounts {
  const total = (field: keyof MachineCounts) => sets.reduce((sum, { status }) => sum + (status?.[field] ?? 0), 0)
  return {
    replicas: total('replicas'),
    readyReplicas: total('readyReplicas'),
    availableReplicas: total('availableReplicas'),
    upToDateReplicas: total('upToDateReplicas'),
  }
}
