/** Validates numbers, percentages and lengths of lists. Upstream: pkg/apis/core/validation and pkg/apis/apps/validation, v1.36. */
import { type FieldError, invalid, isNumeric, tooMany } from '@capstan/kube'

export const atLeastZero = 'must be greater than or equal to 0'

/** Returns an error for each named field of `object` that is negative. `field` is the path of `object`; empty for the whole API object. */
export function nonNegative<T extends object>(field: string, object: T, ...names: (keyof T & string)[]): FieldError[] {
  return names.flatMap((name) => {
    const value = object[name]
    return isNumeric(value) && value < 0 ? [invalid(field === '' ? name : `${field}.${name}`, value, atLeastZero)] : []
  })
}

/** Returns an error for each named field of `object` that exceeds its field `limit`: for example, readyReplicas must not exceed replicas. */
export function notAbove<T extends object>(
  field: string,
  object: T,
  limit: keyof T & string,
  names: readonly (keyof T & string)[],
  text: string,
): FieldError[] {
  const maximum = Number(object[limit] ?? 0)
  return names.flatMap((name) => {
    const value = Number(object[name] ?? 0)
    return value > maximum ? [invalid(`${field}.${name}`, value, text)] : []
  })
}

/** Requires a value that is not less than the old value. Upstream: IsDecremented. */
export const notDecremented = (field: string, value: number | undefined, old: number | undefined): FieldError[] =>
  old !== undefined && (value === undefined || value < old) ? [invalid(field, value ?? 0, 'cannot be decremented')] : []

/** Requires at most `max` items. */
export const noMoreThan = (field: string, list: readonly unknown[] | undefined, max: number): FieldError[] =>
  (list?.length ?? 0) > max ? [tooMany(field, list!.length, max)] : []

const percentText =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
const isPercent = (value: unknown): value is string => typeof value === 'string' && /^[0-9]+%$/.test(value)

/** Requires that a value, if present, is a percentage or a number that is not negative. Upstream: ValidatePositiveIntOrPercent. */
export function intOrPercentErrors(field: string, value: number | string | undefined): FieldError[] {
  if (value === undefined) return []
  if (typeof value === 'string') return isPercent(value) ? [] : [invalid(field, value, percentText)]
  return value < 0 ? [invalid(field, value, atLeastZero)] : []
}

export const atMostHundredPercent = (field: string, value: number | string | undefined): FieldError[] =>
  isPercent(value) && Number.parseInt(value, 10) > 100 ? [invalid(field, value, 'must not be greater than 100%')] : []

/** Returns a value as a number: a percentage without its percent sign, and 0 for an absent or malformed value. */
export function numberOf(value: number | string | undefined): number {
  if (typeof value === 'number') return value
  return isPercent(value) || /^[+-]?\d+$/.test(value ?? '') ? Number.parseInt(value!, 10) : 0
}
