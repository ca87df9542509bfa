import { isRecord } from '../json.ts'
import type { UnknownObject } from '../object.ts'
import type { Condition } from '../schema.ts'

/** A condition as read from an object. Objects of providers may omit reason, message or time. */
export interface ReportedCondition {
  readonly type: string
  readonly status: Condition['status']
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

/** A list of conditions, or an object with conditions in its status. */
export type ConditionSource = readonly ReportedCondition[] | UnknownObject | { readonly status?: unknown }

/**
 * Returns the conditions of an object whose schema may be known only at run time, without entries that lack type or status. Returns a list
 * of conditions unchanged. Upstream: an object with `status.v1beta2.conditions` has its v1beta2 conditions there; its `status.conditions` are
 * v1beta1 conditions and ignored.
 */
export function conditionsOf(source: ConditionSource): readonly ReportedCondition[] {
  if (isList(source)) return source
  const { status } = source
  if (!isRecord(status)) return []
  const inTransition = isRecord(status.v1beta2) ? status.v1beta2.conditions : undefined
  const conditions = Array.isArray(inTransition) ? inTransition : status.conditions
  return Array.isArray(conditions) ? conditions.filter(isCondition) : []
}

/** Returns the condition of this type, if the object reports it. */
export function getCondition(source: ConditionSource, type: string): ReportedCondition | undefined {
  return conditionsOf(source).find((condition) => condition.type === type)
}

/** Reports whether the object has the condition with status True. */
export const isTrue = (source: ConditionSource, type: string): boolean => getCondition(source, type)?.status === 'True'
/** Reports whether the object has the condition with status False. An absent condition is not False. */
export const isFalse = (source: ConditionSource, type: string): boolean => getCondition(source, type)?.status === 'False'
/** Reports whether the condition is Unknown or absent. Upstream: a missing condition counts as Unknown. */
export const isUnknown = (source: ConditionSource, type: string): boolean =>
  (getCondition(source, type)?.status ?? 'Unknown') === 'Unknown'

const isList = (source: ConditionSource): source is readonly ReportedCondition[] => Array.isArray(source)

const isCondition = (value: unknown): value is ReportedCondition =>
  isRecord(value) && typeof value.type === 'string' && typeof value.status === 'string'
