/** Fields of health checks in MachineHealthChecks, and in classes and topologies from which MachineHealthChecks are created. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { conditionTypeName, nonEmpty } from './limits.ts'
import { templateReference } from './references.ts'

const unhealthyNodeCondition = s.object({
  type: s.string({ minLength: 1 }),
  status: s.string({ minLength: 1 }),
  timeoutSeconds: s.int32({ minimum: 0 }),
})

const unhealthyMachineCondition = s.object({
  type: s
    .string({ minLength: 1, maxLength: 316, pattern: conditionTypeName })
    .rule(
      "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
      'type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated',
    ),
  status: s.enum('True', 'False', 'Unknown'),
  timeoutSeconds: s.int32({ minimum: 0 }),
})

export const healthChecks = s
  .object(
    {
      nodeStartupTimeoutSeconds: s
        .int32({ minimum: 0 })
        .optional()
        .doc('Seconds within which a Machine must get a Node; 600 when absent, without limit when 0.'),
      unhealthyNodeConditions: s
        .list(unhealthyNodeCondition, { minItems: 1, maxItems: 100 })
        .atomic()
        .optional()
        .doc('Conditions of the Node that make the Machine unhealthy after their timeout.'),
      unhealthyMachineConditions: s
        .list(unhealthyMachineCondition, { minItems: 1, maxItems: 100 })
        .atomic()
        .optional()
        .doc('Conditions of the Machine that make it unhealthy after their timeout.'),
    },
    nonEmpty,
  )
  .doc('When a Machine counts as unhealthy.')
export interface HealthChecks extends Infer<typeof healthChecks> {}

const triggerIf = s
  .object(
    {
      unhealthyLessThanOrEqualTo: s
        .intOrString()
        .optional()
        .doc(
          'Remediates only while at most this many Machines are unhealthy: a number, or a percentage of the checked Machines.',
        ),
      unhealthyInRange: s
        .string({ minLength: 1, maxLength: 32, pattern: '^\\[[0-9]+-[0-9]+\\]$' })
        .optional()
        .doc(
          'Remediates only while the number of unhealthy Machines is in this range: `[from-to]`. Takes precedence over unhealthyLessThanOrEqualTo.',
        ),
    },
    nonEmpty,
  )
  .doc('Numbers of unhealthy Machines at which Machines are remediated; any number when absent.')
export interface RemediationTrigger extends Infer<typeof triggerIf> {}

export const maxInFlight = s
  .intOrString()
  .optional()
  .doc(
    'Maximum number of Machines that are remediated at the same time: a number, or a percentage of the replicas. No limit when absent.',
  )

const remediation = { triggerIf: triggerIf.optional(), templateRef: templateReference.optional() }

export const healthCheckRemediation = s.object(remediation, nonEmpty).doc('How and when unhealthy Machines are remediated.')
export interface HealthCheckRemediation extends Infer<typeof healthCheckRemediation> {}

const controlPlaneFields = {
  checks: healthChecks.optional(),
  remediation: healthCheckRemediation.optional(),
}
const machineDeploymentFields = {
  checks: healthChecks.optional(),
  remediation: s
    .object({ maxInFlight, ...remediation }, nonEmpty)
    .optional()
    .doc('How and when unhealthy Machines are remediated.'),
}
const enabled = s
  .boolean()
  .optional()
  .doc(
    'Whether a MachineHealthCheck is created. When absent, it is created if the topology or the class defines checks or remediation.',
  )

const description = 'When Machines count as unhealthy, and how they are remediated.'

export const controlPlaneClassHealthCheck = s.object(controlPlaneFields, nonEmpty).optional().doc(description)
export const controlPlaneHealthCheck = s
  .object({ enabled, ...controlPlaneFields }, nonEmpty)
  .optional()
  .doc(description)
export const machineDeploymentClassHealthCheck = s.object(machineDeploymentFields, nonEmpty).optional().doc(description)
export const machineDeploymentHealthCheck = s
  .object({ enabled, ...machineDeploymentFields }, nonEmpty)
  .optional()
  .doc(description)
