/** Validates lists and maps, which may have a maximum size. If a list or map exceeds its maximum, its entries are not validated. */
import { duplicate, type FieldError, tooMany, writeJSON } from '@capstan/kube'

type Check<T> = (field: string, item: T) => FieldError[]

/** Returns the errors of all items, or one error if there are more than `max` items. `max` is `undefined` for a list without a limit. */
export function listErrors<T>(
  field: string,
  list: readonly T[] | undefined,
  max: number | undefined,
  check: Check<T>,
): FieldError[] {
  const items = list ?? []
  if (max !== undefined && items.length > max) return [tooMany(field, items.length, max)]
  return items.flatMap((item, index) => check(`${field}[${index}]`, item))
}

/** Validates a list like `listErrors`, and also returns an error for each item that has the same key as an earlier item. */
export function setErrors<T>(
  field: string,
  list: readonly T[] | undefined,
  max: number | undefined,
  check: Check<T>,
  keyOf: (item: T) => unknown,
): FieldError[] {
  const items = list ?? []
  if (max !== undefined && items.length > max) return [tooMany(field, items.length, max)]
  return [...listErrors(field, items, max, check), ...duplicateErrors(field, items.map(keyOf))]
}

/** Returns an error for each key that equals an earlier key. */
export function duplicateErrors(field: string, keys: readonly unknown[]): FieldError[] {
  const seenKeys = new Set<string>()
  return keys.flatMap((key, index) => {
    const text = writeJSON(key)
    if (seenKeys.has(text)) return [duplicate(`${field}[${index}]`, key)]
    seenKeys.add(text)
    return []
  })
}

/**
 * Validates a map. `checkKey` receives the path of the map, `check` the path of the entry.
 * @param limits `max`: maximum number of entries; `shownKey`: length to which a longer key is shortened in paths
 */
export function mapErrors<T>(
  field: string,
  map: { readonly [key: string]: T } | undefined,
  limits: { readonly max?: number; readonly shownKey: number },
  checkKey: (field: string, key: string) => FieldError[],
  check: Check<T> = () => [],
): FieldError[] {
  const entries = Object.entries(map ?? {})
  if (limits.max !== undefined && entries.length > limits.max) return [tooMany(field, entries.length, limits.max)]
  return entries.flatMap(([key, value]) => [
    ...checkKey(field, key),
    ...check(`${field}[${shortened(key, limits.shownKey)}]`, value),
  ])
}

/** Shortens a long text in the middle. */
function shortened(text: string, length: number): string {
  if (text.length <= length) return text
  const shownLength = length - 3
  return `${text.slice(0, Math.floor((shownLength + 1) / 2))}...${text.slice(text.length - Math.floor(shownLength / 2))}`
}
