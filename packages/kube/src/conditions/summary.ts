import type { ConditionType, NewCondition } from '../condition.ts'
import { NotYetReported } from './mirror.ts'
import type { MergePriority, MergeReasons } from './priority.ts'
import { GenericReasons, mergedStatus, nested, topPriority, defaultPriority } from './priority.ts'
import type { ConditionSource, ReportedCondition } from './read.ts'
import { conditionsOf } from './read.ts'

export interface SummaryOptions<Reason extends string = string> {
  /** Types to summarize, in order of relevance, which is the order of the message. Of a repeated type, the last position counts. */
  readonly of: readonly string[]
  /** Types that are good when False. */
  readonly negative?: readonly string[]
  /** Types that may be missing; other missing types count as Unknown. */
  readonly ignoreIfMissing?: readonly string[]
  /** Conditions to use instead of the object's conditions of the same types. The object must have these types. */
  readonly overrides?: readonly NewCondition[]
  readonly reasons?: MergeReasons<Reason>
  /** Replaces the default priority of conditions, which uses `negative`. */
  readonly priority?: (condition: ReportedCondition) => MergePriority
  /** Changes the lines of the message before they are joined. */
  readonly lines?: (lines: string[]) => string[]
}

/**
 * Summarizes several conditions of one object: False when any is an issue, else Unknown when any is Unknown, else True. Missing conditions count
 * as Unknown, except those of `ignoreIfMissing`.
 *
 * @throws Error when `of` contains the target, when no condition is left to summarize, or when the source lacks an overridden type
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
  const {
    of,
    negative = [],
    reasons = GenericReasons,
    priority = defaultPriority(negative),
    lines = (unchanged) => unchanged,
  } = options
  const conditions = conditionsToMerge(source, type, options)
  if (conditions.length === 0) throw new Error(`condition ${type} sums up no conditions: none of ${of.join(', ')} is reported`)

  const top = topPriority(conditions.map(priority))
  const listed = conditions.filter((condition) => priority(condition) !== 'info' || (top === 'info' && !!condition.message))
  const message = lines(listed.map((condition) => `* ${condition.type}:${text(condition)}`)).join('\n')
  return { type, status: mergedStatus(top, false), reason: reasons[top], message }
}

const text = ({ message, reason = '' }: ReportedCondition): string => (message ? nested(message) : ` ${reason}`)

/** Returns the conditions to merge, in order of relevance. Missing conditions are Unknown, or left out if they are in `ignoreIfMissing`. */
function conditionsToMerge(
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
  for (const [index, type] of of.entries()) {
    if (of.lastIndexOf(type) !== index) continue
    const condition =
      overrides.find((override) => override.type === type) ?? reported.find((condition) => condition.type === type)
    if (condition) scope.push(condition)
    else if (!ignoreIfMissing.includes(type)) {
      scope.push({ type, status: 'Unknown', reason: NotYetReported, message: 'Condition not yet reported' })
    }
  }
  return scope
}
