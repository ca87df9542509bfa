/** Makes, parses, formats and sorts path elements of FieldsV1. */
import { atOnce, eachInPieces, sorting, type Work } from '../clock.ts'
import { isNumeric, readJSON, writeJSON } from '../json-text.ts'
import { isRecord } from '../json.ts'
import { stableText } from '../structural/stable-text.ts'

/**
 * One step of a path into an object, in the format of FieldsV1: `f:name` a field, `k:{"name":"a"}` an item by its keys, `v:"a"` an item by
 * its value, `i:0` an item by its index. Elements are strings in canonical form, so that equal elements are equal strings.
 */
export type PathElement = string

export const fieldElement = (name: string): PathElement => `f:${name}`
export const keyElement = (keys: { readonly [name: string]: unknown }): PathElement => `k:${stableText(keys)}`
export const valueElement = (value: unknown): PathElement => `v:${stableText(value)}`

/** Returns the name of a field element; `undefined` for items of lists. */
export const fieldName = (element: PathElement): string | undefined => (element.startsWith('f:') ? element.slice(2) : undefined)

/**
 * Parses an element and returns its canonical form; `undefined` for an unknown prefix, which a newer server may have written.
 *
 * @throws Error when the text has no prefix, or the part after the prefix is invalid
 */
export function parseElement(text: string): PathElement | undefined {
  if (text.length < 2 || text[1] !== ':') throw new Error(`missing colon: ${JSON.stringify(text)}`)
  const content = text.slice(2)
  switch (text.charAt(0)) {
    case 'f':
      return text
    case 'k': {
      const keys: unknown = readJSON(content)
      if (!isRecord(keys)) throw new Error(`incorrect key: ${JSON.stringify(text)} is not an object`)
      return keyElement(keys)
    }
    case 'v':
      return valueElement(readJSON(content))
    case 'i': {
      if (!/^-?\d+$/.test(content)) throw new Error(`incorrect index: ${JSON.stringify(text)}`)
      return `i:${Number(content)}`
    }
    default:
      return undefined
  }
}

/** Formats the element for messages: `.name`, `[name="a"]`, `[="a"]`, `[0]`. */
export function elementText(element: PathElement): string {
  const content = element.slice(2)
  switch (element.charAt(0)) {
    case 'f':
      return `.${content}`
    case 'k': {
      const keys = readJSON(content) as Record<string, unknown>
      return `[${Object.entries(keys)
        .map(([name, value]) => `${name}=${valueText(value)}`)
        .join(',')}]`
    }
    case 'v':
      return `[=${valueText(readJSON(content))}]`
    default:
      return `[${content}]`
  }
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(',')}]`
  if (!isRecord(value)) return writeJSON(value)
  return Object.entries(value)
    .map(([name, member]) => `${name}=${valueText(member)}`)
    .join('') // Upstream: without a separator.
}

/**
 * Returns the elements in order: fields first, then items by keys, items by value, and items by index. May reorder `elements`. Each element
 * is parsed once, because sorting compares it several times.
 */
export const inOrder = (elements: PathElement[]): PathElement[] => atOnce(ordering(elements))

/** Sorts as `inOrder` does, and yields between pieces of the work. */
export function* ordering(elements: PathElement[]): Work<PathElement[]> {
  if (elements.every((element) => element.startsWith('f'))) return yield* sorting(elements)
  const parsed: { readonly element: PathElement; readonly kind: number; readonly value: unknown }[] = []
  yield* eachInPieces(elements, (element) => {
    const value = element.startsWith('f') ? element : toSortable(readJSON(element.slice(2)))
    parsed.push({ element, kind: KindOrder.indexOf(element.charAt(0)), value })
  })
  const sorted = yield* sorting(parsed, (a, b) => a.kind - b.kind || compareValues(a.value, b.value))
  return sorted.map(({ element }) => element)
}
const KindOrder = 'fkvi'

/** Replaces objects by `Members`, which are compared name by name and value by value. */
function toSortable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSortable)
  if (!isRecord(value)) return value
  return new Members(Object.entries(value).flatMap(([name, member]) => [name, toSortable(member)]))
}

/** Names and values of an object, alternating. */
class Members {
  readonly parts: readonly unknown[]

  constructor(parts: readonly unknown[]) {
    this.parts = parts
  }
}

/** Compares values for sorting. The order of types is: numbers, strings, booleans, lists, objects, null. */
function compareValues(a: unknown, b: unknown): number {
  const [rankA, rankB] = [valueRank(a), valueRank(b)]
  if (rankA !== rankB) return rankA - rankB
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let index = 0; index < Math.min(a.length, b.length); index++) {
      const order = compareValues(a[index], b[index])
      if (order !== 0) return order
    }
    return a.length - b.length
  }
  if (a instanceof Members && b instanceof Members) return compareValues(a.parts, b.parts)
  const [left, right] = [a as string, b as string]
  return left < right ? -1 : left > right ? 1 : 0
}

function valueRank(value: unknown): number {
  if (isNumeric(value)) return 0
  if (typeof value === 'string') return 1
  if (typeof value === 'boolean') return 2
  if (Array.isArray(value)) return 3
  if (value instanceof Members) return 4
  return 5
}
