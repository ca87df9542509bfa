/**
 * The kind MachineHealthCheck, which reports unhealthy Machines for remediation.
 * Upstream: api/core/v1beta2/machinehealthcheck_types.go, v1.14.
 */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { defaultMachineHealthCheck, machineHealthCheckErrors } from './admission/machine-health-check.ts'
import { ageColumn, clusterColumn, pausedColumn } from './shared/columns.ts'
import { clusterName, observedGeneration } from './shared/common-fields.ts'
import { coreLabels } from './shared/core-labels.ts'
import { healthCheckRemediation, healthChecks } from './shared/health-check.ts'
import { labelSelector } from './shared/label-selector.ts'
import { legacyStatus } from './shared/legacy-status.ts'
import { nonEmpty } from './shared/limits.ts'

const machineHealthCheckSpec = s.object({
  clusterName,
  selector: labelSelector.doc('Selects the Machines to check by their labels. An empty selector is rejected.'),
  checks: healthChecks.optional(),
  remediation: healthCheckRemediation.optional(),
})
export interface MachineHealthCheckSpec extends Infer<typeof machineHealthCheckSpec> {}

const machineHealthCheckStatus = s.object(
  {
    conditions: s.conditions(),
    expectedMachines: s.int32({ minimum: 0 }).optional().doc('Number of Machines that are checked.'),
    currentHealthy: s.int32({ minimum: 0 }).optional().doc('Number of checked Machines that are healthy.'),
    remediationsAllowed: s
      .int32({ minimum: 0 })
      .optional()
      .doc('Number of further Machines that may become unhealthy before remediation stops. See spec.remediation.triggerIf.'),
    observedGeneration,
    targets: s
      .list(s.string({ minLength: 1, maxLength: 253 }), { maxItems: 10000 })
      .atomic()
      .optional()
      .doc('Names of the Machines that are checked.'),
    deprecated: legacyStatus(),
  },
  nonEmpty,
)
export interface MachineHealthCheckStatus extends Infer<typeof machineHealthCheckStatus> {}

export const MachineHealthCheckConditions = conditionTypes({
  RemediationAllowed: ['RemediationAllowed', 'TooManyUnhealthy'],
  Paused: ['Paused', 'NotPaused'],
})

export const MachineHealthCheck = defineKind({
  group: 'cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'MachineHealthCheck',
  plural: 'machinehealthchecks',
  shortNames: ['mhc', 'mhcs'],
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Finds unhealthy Machines and marks them for remediation.',
  spec: machineHealthCheckSpec,
  status: machineHealthCheckStatus,
  columns: [
    clusterColumn,
    column('Replicas', '.status.expectedMachines', { type: 'integer', description: 'Machines that are checked' }),
    column('Healthy', '.status.currentHealthy', { type: 'integer', description: 'Machines that are healthy' }),
    pausedColumn,
    ageColumn,
  ],
  labels: coreLabels,
  versions: olderVersions('cluster.x-k8s.io', 'MachineHealthCheck'),
  default: defaultMachineHealthCheck,
  validate: machineHealthCheckErrors,
})
export interface MachineHealthCheck extends ObjectOf<typeof MachineHealthCheck> {
  spec: MachineHealthCheckSpec
  status?: MachineHealthCheckStatus
}
