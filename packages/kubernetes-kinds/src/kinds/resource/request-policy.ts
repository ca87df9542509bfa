/** Validates request policies: the amounts of a shared capacity that claims can request. */
import {
  addQuantities,
  compareQuantities,
  type FieldError,
  forbidden,
  invalid,
  parseQuantity,
  quantityText,
  required,
} from '@capstan/kube'
import { compareAmounts } from '../checks.ts'
import type { CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity } from '../schemas/types.ts'
import { setErrors } from './lists.ts'

const MaxValues = 10

type Amount = DeviceCapacity['value']

const textOf = (amount: Amount): string => quantityText(parseQuantity(String(amount)))
const isMore = (a: Amount, b: Amount): boolean => compareAmounts(a, b) > 0

/** Returns an amount as a whole number, rounded up as Go does. */
function wholeOf(amount: Amount): bigint {
  const { nano } = parseQuantity(String(amount))
  const whole = nano / 1_000_000_000n
  return nano % 1_000_000_000n > 0n ? whole + 1n : whole
}

export function requestPolicyErrors(field: string, policy: CapacityRequestPolicy, capacity: Amount): FieldError[] {
  const { validValues = [], validRange } = policy
  // Go clients send an absent default as `null`.
  const defaultAmount = policy.default ?? undefined
  const text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
  if (validValues.length > 0 && validRange) return [forbidden(field, text)]
  const kind = validValues.length > 0 ? 'validValues' : 'validRange'
  if (validValues.length === 0 && !validRange) return []
  if (defaultAmount === undefined) return [required(`${field}.default`, `required when ${kind} is defined`)]
  const valuePath = `${field}.${kind}`
  return validRange
    ? rangeErrors(valuePath, validRange, defaultAmount, capacity)
    : valueErrors(valuePath, validValues, defaultAmount, capacity)
}

function valueErrors(field: string, values: readonly Amount[], defaultAmount: Amount, capacity: Amount): FieldError[] {
  const isTooLarge = (valuePath: string, value: Amount) =>
    isMore(value, capacity)
      ? [invalid(valuePath, textOf(value), `option is larger than capacity value: ${textOf(capacity)}`)]
      : []
  // As upstream, a list that is too long is not searched, and therefore also has the error that it does not contain the default.
  const isListed = values.length <= MaxValues && values.some((value) => compareAmounts(value, defaultAmount) === 0)
  return [
    ...values.flatMap((value, index) =>
      index > 0 && isMore(values[index - 1]!, value)
        ? [invalid(`${field}[${index}]`, textOf(value), 'values must be sorted in ascending order')]
        : [],
    ),
    ...setErrors(field, values, MaxValues, isTooLarge, (value) => String(wholeOf(value))),
    ...(isListed ? [] : [invalid(field, textOf(defaultAmount), 'default value is not valid according to the requestPolicy')]),
  ]
}

function rangeErrors(
  field: string,
  { min, max, step }: Partial<CapacityRequestPolicyRange>,
  defaultAmount: Amount,
  capacity: Amount,
): FieldError[] {
  if (min === undefined) return [required(`${field}.min`, 'required when validRange is defined')]
  const errors: FieldError[] = []
  const check = (isWrong: boolean, member: string, value: Amount, text: string) => {
    if (isWrong) errors.push(invalid(`${field}.${member}`, textOf(value), text))
  }
  check(isMore(min, capacity), 'min', min, `min is larger than capacity value: ${textOf(capacity)}`)
  check(isMore(min, defaultAmount), 'min', defaultAmount, `default is less than min: ${textOf(min)}`)
  if (max !== undefined) {
    check(isMore(min, max), 'max', min, `min is larger than max: ${textOf(max)}`)
    check(isMore(max, capacity), 'max', max, `max is larger than capacity value: ${textOf(capacity)}`)
    check(isMore(defaultAmount, max), 'max', defaultAmount, `default is more than max: ${textOf(max)}`)
  }
  if (step !== undefined) {
    const next = addQuantities(parseQuantity(String(min)), parseQuantity(String(step)))
    const isOver = compareQuantities(next, parseQuantity(String(capacity))) > 0
    const text = `value is not a multiple of a given step (${textOf(step)}) from (${textOf(min)})`
    check(isOver, 'step', step, `one step ${quantityText(next)} is larger than capacity value: ${textOf(capacity)}`)
    for (const value of max === undefined ? [defaultAmount] : [defaultAmount, max])
      check(!isReached(value, min, step), 'step', value, text)
  }
  return errors
}

/** Reports whether a value is `from` plus a multiple of `step`, all as whole numbers; false if `step` is 0. */
const isReached = (value: Amount, from: Amount, step: Amount): boolean =>
  wholeOf(step) !== 0n && (wholeOf(value) - wholeOf(from)) % wholeOf(step) === 0n
