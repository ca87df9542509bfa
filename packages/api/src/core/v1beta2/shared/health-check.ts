/** Health checks of a topology, from which a MachineHealthCheck is made. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { conditionTypeName } from './patterns.ts'

export const healthChecks = s
  .object(
    {
      nodeStartupTimeoutSeconds: s
        .int32({ minimum: 0 })
        .optional()
        .doc('How long a Machine may take to get a Node; 600 when absent, without limit when 0.'),
      unhealthyMachineConditions: s
        .list(
          s.object({
            status: s.enum('True', 'False', 'Unknown'),
            timeoutSeconds: s.int32({ minimum: 0 }),
            type: s
              .string({ minLength: 1, maxLength: 316, pattern: conditionTypeName })
              .rule(
                "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
                'type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated',
              ),
          }),
          { minItems: 1, maxItems: 100 },
        )
        .atomic()
        .optional()
        .doc('Conditions of the Machine that make it unhealthy once they last so long.'),
      unhealthyNodeConditions: s
        .list(
          s.object({
            status: s.string({ minLength: 1 }),
            timeoutSeconds: s.int32({ minimum: 0 }),
            type: s.string({ minLength: 1 }),
          }),
          { minItems: 1, maxItems: 100 },
        )
        .atomic()
        .optional()
        .doc('Conditions of the Node that make the Machine unhealthy once they last so long.'),
    },
    { minProperties: 1 },
  )
  .doc('When a Machine counts as unhealthy.')
export type HealthChecks = Infer<typeof healthChecks>

export const remediationTrigger = s
  .object(
    {
      unhealthyInRange: s
        .string({ minLength: 1, maxLength: 32, pattern: '^\\[[0-9]+-[0-9]+\\]$' })
        .optional()
        .doc('Only while so many Machines are unhealthy: `[from-to]`.'),
      unhealthyLessThanOrEqualTo: s
        .intOrString()
        .optional()
        .doc('Only while at most so many Machines are unhealthy: a number, or a percentage.'),
    },
    { minProperties: 1 },
  )
  .doc('Remediates only while few enough Machines are unhealthy.')
export type RemediationTrigger = Infer<typeof remediationTrigger>
