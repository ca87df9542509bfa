import type { ConditionType, NewCondition } from '../condition.ts'
import type { ConditionSource } from './read.ts'
import { getCondition } from './read.ts'

/** Reasons that stand in for what nobody reported. Upstream: util/conditions. */
export const NotYetReported = 'NotYetReported'
export const NoReasonReported = 'NoReasonReported'
export const InvalidConditionReported = 'InvalidConditionReported'

export interface MirrorOptions {
  /** The condition to make; by default it has the type of its source. */
  readonly as?: string | Pick<ConditionType, 'type'>
  /** What to say while the source does not report the condition. Its type is replaced. */
  readonly fallback?: Omit<NewCondition, 'type'>
  /** Replaces `NoReasonReported` when the source is True and gives no reason, as objects of older contracts do. */
  readonly trueReason?: string
}

/**
 * A copy of another object's condition: its status, reason, message and the time since when it is so.
 *
 * @example mirror(infraMachine, 'Ready', { as: MachineConditions.InfrastructureReady, fallback })
 */
export function mirror(
  source: ConditionSource,
  type: string,
  { as = type, fallback, trueReason }: MirrorOptions = {},
): NewCondition {
  const target = typeof as === 'string' ? as : as.type
  const found = getCondition(source, type)
  if (!found) {
    if (fallback) return { ...fallback, type: target }
    return { type: target, status: 'Unknown', reason: NotYetReported, message: `Condition ${type} not yet reported` }
  }
  if (found.status !== 'True' && found.status !== 'False' && found.status !== 'Unknown') {
    return {
      type: target,
      status: 'Unknown',
      reason: InvalidConditionReported,
      message: `status for the ${type} condition must be one of True, False, Unknown`,
    }
  }
  const reason = found.reason || NoReasonReported
  return {
    type: target,
    status: found.status,
    reason: reason === NoReasonReported && found.status === 'True' && trueReason !== undefined ? trueReason : reason,
    message: found.message ?? '',
    ...(found.lastTransitionTime === undefined ? {} : { lastTransitionTime: found.lastTransitionTime }),
  }
}
