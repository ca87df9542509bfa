import type { ConditionType, NewCondition } from '../condition.ts'
import { NotYetReported } from './mirror.ts'
import type { MergePriority, MergeReasons } from './priority.ts'
import { GenericReasons, mergedStatus, nested, topPriority, usualPriority } from './priority.ts'
import type { ConditionSource, ReportedCondition } from './read.ts'
import { conditionsOf } from './read.ts'

export interface SummaryOptions<Reason extends string = string> {
  /** Types to sum up, in order of relevance: the message follows it. */
  readonly of: readonly string[]
  /** Those of them that are well when False. */
  readonly negative?: readonly string[]
  /** Those of them that need not be there; others count as Unknown while missing. */
  readonly ignoreIfMissing?: readonly string[]
  /** Stand in for the object's condition of the same type, to say it in other words. The object must have it. */
  readonly overrides?: readonly NewCondition[]
  readonly reasons?: MergeReasons<Reason>
  /** Replaces the usual judgement of what counts as an issue; `negative` is then the caller's business. */
  readonly priority?: (condition: ReportedCondition) => MergePriority
  /** Last word on the lines of the message. */
  readonly lines?: (lines: string[]) => string[]
}

/**
 * One condition that sums up several of the same object: False when any is an issue, else Unknown when any is, else True.
 *
 * @example summary(conditions, MachineConditions.Ready, {
 *   of: ['Deleting', 'InfrastructureReady'], negative: ['Deleting'],
 *   reasons: { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' },
 * })
 */
export function summary<Reason extends string>(
  source: ConditionSource,
  target: string | ConditionType<string, Reason>,
  options: SummaryOptions<NoInfer<Reason>>,
): NewCondition {
  const type = typeof target === 'string' ? target : target.type
  const { of, negative = [], reasons = GenericReasons, priority = usualPriority(negative), lines = (all) => all } = options
  const conditions = inScope(source, type, options)
  if (conditions.length === 0) throw new Error(`condition ${type} sums up no conditions: none of ${of.join(', ')} is reported`)

  const top = topPriority(conditions.map(priority))
  const told = conditions.filter((condition) => priority(condition) !== 'info' || (top === 'info' && !!condition.message))
  const message = lines(told.map((condition) => `* ${condition.type}:${text(condition)}`)).join('\n')
  return { type, status: mergedStatus(top, false), reason: reasons[top], message }
}

const text = ({ message, reason = '' }: ReportedCondition): string => (message ? nested(message) : ` ${reason}`)

/** The conditions to merge, in order of relevance, with what is missing filled in as Unknown. */
function inScope(
  source: ConditionSource,
  target: string,
  { of, ignoreIfMissing = [], overrides = [] }: SummaryOptions,
): ReportedCondition[] {
  if (of.includes(target)) throw new Error(`condition ${target} cannot sum up itself`)
  const reported = conditionsOf(source)
  for (const { type } of overrides) {
    if (!reported.some((condition) => condition.type === type)) {
      throw new Error(`condition ${type} is overridden in the summary for ${target} but not reported`)
    }
  }
  const scope: ReportedCondition[] = []
  for (const type of of) {
    const found = overrides.find((o) => o.type === type) ?? reported.find((condition) => condition.type === type)
    if (found) scope.push(found)
    else if (!ignoreIfMissing.includes(type)) {
      scope.push({ type, status: 'Unknown', reason: NotYetReported, message: 'Condition not yet reported' })
    }
  }
  return scope
}
