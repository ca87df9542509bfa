/** Computes the status of a MachineHealthCheck. Pure, except for the draft that it changes. */
import { ConditionOrder, MachineHealthCheckConditions, pausedCondition } from '@capstan/api'
import { legacyFalse, legacyTrue, type NewCondition, type NewLegacyCondition, setConditions } from '@capstan/kube'
import { reportLegacyConditions } from '../legacy-status.ts'
import type { RemediationLimit } from './remediation-limit.ts'
import type { MachineHealthCheckScope } from './scope.ts'

const { RemediationAllowed } = MachineHealthCheckConditions

/** Conditions that this controller owns. */
export const OwnedConditions = Object.values(MachineHealthCheckConditions).map(({ type }) => type)
/** Legacy conditions that this controller owns. */
export const OwnedLegacyConditions = [RemediationAllowed.type]

/** Writes the status on the draft. While Machines cannot be checked, the earlier counts and RemediationAllowed condition stay. */
export function reportStatus({ healthCheck, cluster, limit, legacyProblems }: MachineHealthCheckScope, now: number): void {
  const computed = [...(limit ? [remediationAllowedCondition(limit)] : []), pausedCondition(cluster, healthCheck)]
  const { generation } = healthCheck.metadata
  const options = { now, generation, order: ConditionOrder }
  const conditions = setConditions(healthCheck.status?.conditions, computed, options)
  healthCheck.status = { ...healthCheck.status, conditions }
  if (limit) healthCheck.status.remediationsAllowed = limit.allowed ? limit.remaining : 0
  reportLegacyConditions(healthCheck, [...(limit ? [legacyRemediationAllowed(limit)] : []), ...legacyProblems], { now })
}

const remediationAllowedCondition = (limit: RemediationLimit): NewCondition =>
  limit.allowed ? RemediationAllowed.true('RemediationAllowed') : RemediationAllowed.false('TooManyUnhealthy', limit.message)

const legacyRemediationAllowed = (limit: RemediationLimit): NewLegacyCondition =>
  limit.allowed
    ? legacyTrue(RemediationAllowed.type)
    : legacyFalse(RemediationAllowed.type, 'TooManyUnhealthy', 'Warning', limit.message)
