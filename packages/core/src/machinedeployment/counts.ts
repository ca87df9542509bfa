import type { MachineSet } from '@capstan/api'
import type { MachineCounts } from '../machineset/machines-report.ts'

export const countFields = ['replicas', 'readyReplicas', 'availableReplicas', 'upToDateReplicas'] as const

/** Sums the counts of the sets for the deployment's status. A count that no set reports is absent. */
export function reportedCounts(sets: readonly MachineSet[]): Partial<MachineCounts> {
  const counts: { -readonly [field in keyof MachineCounts]?: number } = {}
  for (const { status } of sets)
    for (const field of countFields) {
      const count = status?.[field]
      if (count !== undefined) counts[field] = (counts[field] ?? 0) + count
    }
  return counts
}

/** Sums the counts of the sets for calculations. A count that no set reports is 0. */
export const machineDeploymentCounts = (sets: readonly MachineSet[]): MachineCounts => ({
  replicas: 0,
  readyReplicas: 0,
  availableReplicas: 0,
  upToDateReplicas: 0,
  ...reportedCounts(sets),
})
