import type { ConditionType, NewCondition } from '../condition.ts'
import { timeProblem } from '../go-time.ts'
import { isRecord } from '../json.ts'
import { conditionReasonLimits } from '../schema.ts'
import type { ConditionSource, ReportedCondition } from './read.ts'
import { getCondition } from './read.ts'

/** Reasons of a mirrored condition whose source reports no condition, no reason, or an invalid condition. Upstream: util/conditions. */
export const NotYetReported = 'NotYetReported'
export const NoReasonReported = 'NoReasonReported'
export const InvalidConditionReported = 'InvalidConditionReported'

export interface MirrorOptions {
  /** Type of the resulting condition. Default: the type of the copied condition. */
  readonly as?: string | Pick<ConditionType, 'type'>
  /** Result, without its type, while the source does not report the condition. */
  readonly fallback?: Omit<NewCondition, 'type'>
  /**
   * Reason of the result when the copied condition is True, and its reason is missing, as in older contracts, or is `NoReasonReported`. By
   * default, the result then has the reason `NoReasonReported`.
   */
  readonly trueReason?: string
}

/**
 * Copies another object's condition: its status, reason, message and transition time. Returns Unknown when one of the object's conditions
 * is invalid, or when the reason or message of the copied condition is invalid. When the object does not report the condition, returns the
 * fallback, or Unknown without a fallback.
 *
 * @example mirror(infraMachine, 'Ready', { as: MachineConditions.InfrastructureReady, fallback })
 */
export function mirror(
  source: ConditionSource,
  type: string,
  { as = type, fallback, trueReason }: MirrorOptions = {},
): NewCondition {
  const target = typeof as === 'string' ? as : as.type
  const mirrored = getCondition(source, type)
  const invalid = invalidConditions(source) ?? (mirrored && invalidTexts(mirrored))
  if (invalid !== undefined) return { type: target, status: 'Unknown', reason: InvalidConditionReported, message: invalid }
  if (!mirrored) {
    if (fallback) return { ...fallback, type: target }
    return { type: target, status: 'Unknown', reason: NotYetReported, message: `Condition ${type} not yet reported` }
  }
  const reason = mirrored.reason || NoReasonReported
  return {
    type: target,
    status: mirrored.status,
    reason: reason === NoReasonReported && mirrored.status === 'True' && trueReason !== undefined ? trueReason : reason,
    message: mirrored.message ?? '',
    ...(mirrored.lastTransitionTime === undefined ? {} : { lastTransitionTime: mirrored.lastTransitionTime }),
  }
}

/**
 * Returns the error for invalid conditions of a source. One invalid condition makes the whole list invalid, even if another condition is
 * mirrored. Upstream: UnstructuredGetAll in util/conditions.
 */
function invalidConditions(source: ConditionSource): string | undefined {
  if (Array.isArray(source)) return source.map(invalidCondition).find((problem) => problem !== undefined)
  const { status, kind = 'object' } = source as { readonly status?: unknown; readonly kind?: string }
  if (!isRecord(status)) return undefined
  const v1beta2Conditions = isRecord(status.v1beta2) ? status.v1beta2.conditions : undefined
  const [path, conditions] = Array.isArray(v1beta2Conditions)
    ? ['status.v1beta2.conditions', v1beta2Conditions]
    : ['status.conditions', status.conditions]
  if (!Array.isArray(conditions)) return undefined
  const firstProblem = conditions.map(invalidCondition).find((problem) => problem !== undefined)
  return firstProblem === undefined ? undefined : `failed to convert ${path} from ${kind} to []metav1.Condition: ${firstProblem}`
}

function invalidCondition(condition: unknown): string | undefined {
  if (!isRecord(condition)) return undefined
  const { type = '', status = '', lastTransitionTime } = condition
  // Upstream: metav1.Time.UnmarshalQueryParameter, which reads an empty text and `null` as an empty time.
  if (typeof lastTransitionTime === 'string' && lastTransitionTime !== '' && lastTransitionTime !== 'null') {
    const problem = timeProblem(lastTransitionTime, false)
    if (problem !== undefined) return `failed to unmarshal lastTransitionTime value: ${lastTransitionTime}: ${problem}`
  }
  if (type === '') return 'type must be set for all conditions'
  if (status === '') return `status must be set for the ${String(type)} condition`
  if (status === 'True' || status === 'False' || status === 'Unknown') return undefined
  return `status for the ${String(type)} condition must be one of True, False, Unknown`
}

/**
 * Returns why reason or message cannot be copied. Upstream copies an invalid reason, and the API server then rejects the status of the
 * target. For a reason or message that is not a string, upstream's reconcile panics.
 */
function invalidTexts({ type, reason, message }: { readonly [Field in keyof ReportedCondition]: unknown }): string | undefined {
  const isReason = typeof reason === 'string' && reason.length <= maxLength && reasonPattern.test(reason)
  if (reason && !isReason) {
    const rule = `must begin with a letter, contain only letters, digits, "_", "," and ":", and end in a letter, digit or "_"`
    return `reason for the ${String(type)} condition ${rule}, with at most ${maxLength} characters`
  }
  return message && typeof message !== 'string' ? `message for the ${String(type)} condition must be a string` : undefined
}

const { maxLength } = conditionReasonLimits
const reasonPattern = new RegExp(conditionReasonLimits.pattern)
