import { ConditionOrder, Machine, MachineConditions, type MachineHealthCheck } from '@capstan/api'
import { commitChanges } from '@capstan/controller'
import {
  draft,
  getCondition,
  isDeleting,
  keyOf,
  keyText,
  legacyConditionsOf,
  legacyFalse,
  type NewCondition,
  type NewLegacyCondition,
  orAbsent,
  setConditions,
} from '@capstan/kube'
import { reportLegacyConditions } from '../legacy-status.ts'
import type { MachineHealthCheckIO } from './scope.ts'

/** Changes that a MachineHealthCheck makes to a Machine's status. */
export interface MachineChange {
  readonly conditions: NewCondition[]
  /** Conditions in the v1beta1 form. */
  readonly legacy: NewLegacyCondition[]
  /** Whether to request remediation by the Machine's owner, unless a remediation is in progress or the Machine is being deleted. */
  remediateByOwner?: boolean
  /** Whether an external remediation request was created. */
  isRequested?: boolean
  /** Whether remediation is not allowed. No event is then recorded. */
  readonly isRestricted: boolean
}

const { HealthCheckSucceeded, OwnerRemediated } = MachineConditions

/**
 * Writes the health of a Machine. If remediation is allowed, records an event when the Machine becomes unhealthy, when the reason changes,
 * and when remediation is requested.
 */
export async function reportHealth(
  before: Machine,
  change: MachineChange,
  healthCheck: MachineHealthCheck,
  { client, cache, clock, events, signal }: MachineHealthCheckIO,
): Promise<void> {
  const after = draft(before)
  const now = clock.now()
  const { generation } = before.metadata
  const request = change.remediateByOwner && !isDeleting(before) ? remediationRequest(before) : { conditions: [], legacy: [] }
  const computed = [...change.conditions, ...request.conditions]
  const conditions = setConditions(before.status?.conditions, computed, { now, generation, order: ConditionOrder })
  after.status = { ...after.status, conditions }
  reportLegacyConditions(after, [...change.legacy, ...request.legacy], { now })
  // Only HealthCheckSucceeded is owned here. Once OwnerRemediated exists, it belongs to the owner of the Machine, and ExternallyRemediated
  // to the controller of the remediation request: their changes must not be overwritten.
  const owned = [HealthCheckSucceeded.type]
  const options = { conditions: owned, legacyConditions: owned, cache, signal }
  const written = await orAbsent(commitChanges(client, Machine, before, after, options))
  // Undefined: the Machine was deleted in the meantime, often together with the Node whose absence made it unhealthy.
  if (written === undefined || written === before) return

  const [oldCondition, newCondition] = [
    getCondition(before, HealthCheckSucceeded.type),
    getCondition(after, HealthCheckSucceeded.type),
  ]
  if (change.isRestricted || newCondition?.status !== 'False') return
  const isRequested = change.isRequested || request.conditions.length > 0
  if (oldCondition?.status === 'False' && oldCondition.reason === newCondition.reason && !isRequested) return
  const [machineText, healthCheckText] = [before, healthCheck].map((object) => keyText(keyOf(object)))
  events.event(
    before,
    'Normal',
    'MachineMarkedUnhealthy',
    `Machine ${machineText} has been marked as unhealthy by ${healthCheckText}`,
  )
}

/**
 * Returns the conditions that request remediation by the owner. A remediation in progress belongs to the owner, so only a missing
 * condition, or the condition of an earlier success, is replaced.
 */
function remediationRequest(machine: Machine): Pick<MachineChange, 'conditions' | 'legacy'> {
  const { type } = OwnerRemediated
  const isDue = (status: string | undefined) => status === undefined || status === 'True'
  const legacy = legacyConditionsOf(machine).find((condition) => condition.type === type)
  return {
    conditions: isDue(getCondition(machine, type)?.status)
      ? [OwnerRemediated.false('WaitingForRemediation', 'Waiting for remediation')]
      : [],
    legacy: isDue(legacy?.status) ? [legacyFalse(type, 'WaitingForRemediation', 'Warning')] : [],
  }
}
