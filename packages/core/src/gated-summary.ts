import type { ConditionGate } from '@capstan/api'
import {
  type ConditionType,
  defaultPriority,
  type KubeObject,
  type Logger,
  type NewCondition,
  ref,
  type ReportedCondition,
  summary,
  type SummaryOptions,
} from '@capstan/kube'
import { SeeLogs } from './see-logs.ts'

export interface GatedSummaryOptions<Reason extends string> extends Omit<SummaryOptions<Reason>, 'priority'> {
  /** Further conditions to summarize, which a user has chosen. They follow the conditions of `of`. */
  readonly gates: readonly ConditionGate[]
  /** Returns whether a condition is no issue, independent of its status. */
  readonly isExpected: (condition: ReportedCondition) => boolean
  readonly log: Logger
}

/**
 * Summarizes conditions of an object, including those that its readiness or availability gates name. As upstream, the reason is InternalError
 * if a gate names the computed condition.
 */
export function gatedSummary<Reason extends string>(
  object: KubeObject & { readonly status?: { readonly conditions?: readonly ReportedCondition[] } },
  target: ConditionType<string, Reason | 'InternalError'>,
  { gates, isExpected, log, ...options }: GatedSummaryOptions<NoInfer<Reason>>,
): NewCondition {
  const types = gates.map(({ conditionType }) => conditionType)
  if (types.includes(target.type)) {
    log.error(`Failed to set ${target.type} condition: a gate names this condition`, { [object.kind]: ref(object) })
    return target.unknown('InternalError', SeeLogs)
  }
  const negativeGates = gates.filter(({ polarity }) => polarity === 'Negative').map(({ conditionType }) => conditionType)
  const usual = defaultPriority([...(options.negative ?? []), ...negativeGates])
  return summary(object, target, {
    ...options,
    of: [...options.of, ...types],
    priority: (condition) => (isExpected(condition) ? 'info' : usual(condition)),
  })
}
