import { isRecord } from '../json.ts'
import type { PathElement } from './path-element.ts'
import { keyElement, valueElement } from './path-element.ts'
import type { ListType } from './type.ts'

/** Error for an item that cannot be identified within its list. */
export class ItemError extends Error {
  override readonly name = 'ItemError'
}

/**
 * Returns the path element that identifies an item of an associative list. Keys that the item omits have the default of their field.
 * @throws ItemError for items that cannot be identified
 */
export function itemElement(list: ListType, item: unknown): PathElement {
  return list.keys.length > 0 ? keyedElement(list, item) : setElement(item)
}

function keyedElement({ keys, element }: ListType, item: unknown): PathElement {
  if (item === null || item === undefined) throw new ItemError('associative list with keys may not have a null element')
  if (!isRecord(item)) throw new ItemError('associative list with keys may not have non-map elements')
  const values: Record<string, unknown> = {}
  for (const key of keys) {
    const value = Object.hasOwn(item, key) && item[key] !== undefined ? item[key] : element.map?.fields.get(key)?.default
    if (value !== undefined && (value !== null || Object.hasOwn(item, key))) values[key] = value
  }
  if (Object.keys(values).length === 0) {
    const names = keys.map((key) => JSON.stringify(key)).join(' ')
    throw new ItemError(
      `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
    )
  }
  return keyElement(values)
}

function setElement(item: unknown): PathElement {
  if (isRecord(item)) throw new ItemError("associative list without keys has an element that's a map type")
  if (Array.isArray(item)) throw new ItemError('not supported: associative list with lists as elements')
  if (item === null || item === undefined)
    throw new ItemError("associative list without keys has an element that's an explicit null")
  return valueElement(item)
}
