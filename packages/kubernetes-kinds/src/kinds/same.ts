/** Semantic equality of API values, and helpers for validation errors. */
import { duplicate, equal, type FieldError, invalid, isRecord, type LabelSelector, valueKey, writeJSON } from '@capstan/kube'

/** Reports whether two values are equal. `undefined`, `null`, an absent field and an empty list are equal. Upstream: Semantic.DeepEqual. */
export function same(a: unknown, b: unknown): boolean {
  if (isEmpty(a) && isEmpty(b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return equal(a, b)
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => same(item, b[index]))
  }
  const [left, right] = [a as { [name: string]: unknown }, b as { [name: string]: unknown }]
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((name) => same(left[name], right[name]))
}

const isEmpty = (value: unknown): boolean => value === undefined || value === null || (Array.isArray(value) && value.length === 0)

export const immutable = (field: string, value: unknown, old: unknown): FieldError[] =>
  same(value, old) ? [] : [invalid(field, value, 'field is immutable')]

/** Returns a key for Maps and Sets: two values have the same key exactly when they are `same`. */
export const sameKey = (value: unknown): unknown => valueKey(withoutEmpty(value))

function withoutEmpty(value: unknown): unknown {
  if (isEmpty(value)) return null
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => !isEmpty(member))
      .map(([name, member]) => [name, withoutEmpty(member)]),
  )
}

/** Returns an error for each list value whose JSON text equals that of an earlier value. */
export function unique(values: readonly unknown[], fieldOf: (index: number) => string): FieldError[] {
  const seenKeys = new Set<string>()
  return values.flatMap((value, index) => {
    const text = writeJSON(value)
    if (seenKeys.has(text)) return [duplicate(fieldOf(index), value)]
    seenKeys.add(text)
    return []
  })
}

/** Returns a map with sorted keys, as Go prints it. But JavaScript puts keys that are integers first. */
export const inOrder = <T>(map: { readonly [key: string]: T } | undefined): { [key: string]: T } | undefined =>
  map && Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Returns a selector as error texts print it: with sorted `matchLabels`. */
export const printedSelector = (selector: LabelSelector | undefined): LabelSelector | undefined =>
  selector?.matchLabels ? { ...selector, matchLabels: inOrder(selector.matchLabels)! } : selector

/** Returns the error for an invalid value that upstream's text does not print. */
export const invalidWithoutValue = (field: string, detail: string): FieldError => ({
  type: 'FieldValueInvalid',
  field,
  text: `Invalid value: ${detail}`,
})
