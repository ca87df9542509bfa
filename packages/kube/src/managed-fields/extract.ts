/** Extracts the part of a value that a set of fields covers, such as the fields of one manager. */
import { isRecord, setMember } from '../json.ts'
import type { FieldSet } from './field-set.ts'
import { itemElement } from './list-item.ts'
import { fieldElement } from './path-element.ts'
import type { ListType, MapType, Type } from './type.ts'
import { formsOf, memberType } from './type.ts'

export interface ExtractOptions {
  /** Whether list items keep their keys even if the set does not contain the keys. Default false. */
  readonly keepKeys?: boolean
}

/**
 * Returns the part of the value that the set covers; null when the set covers no member or item, or the value is not a list or map as the
 * type requires. Scalars, atomic or empty lists and maps, and list items that the set contains without fields below them are returned
 * completely.
 */
export function extractFields(type: Type, value: unknown, fields: FieldSet, options: ExtractOptions = {}): unknown {
  const { map, scalar, list } = formsOf(type, value)
  if (map) return isRecord(value) ? extractMembers(map, value, fields, options) : null
  if (list && !scalar) return Array.isArray(value) ? extractItems(list, value, fields, options) : null
  return value
}

function extractMembers(map: MapType, value: Record<string, unknown>, fields: FieldSet, options: ExtractOptions): unknown {
  const names = Object.keys(value)
  if (map.atomic || names.length === 0) return value
  const members: Record<string, unknown> = {}
  for (const name of names) {
    const subset = fields.children.get(fieldElement(name))
    if (subset) setMember(members, name, extractFields(memberType(map, name) ?? {}, value[name], subset, options))
  }
  return Object.keys(members).length > 0 ? members : null
}

function extractItems(list: ListType, value: readonly unknown[], fields: FieldSet, options: ExtractOptions): unknown {
  if (list.atomic || value.length === 0) return value
  const items: unknown[] = []
  for (const item of value) {
    const subset = fields.children.get(itemElement(list, item))
    if (!subset) continue
    const isWhole = subset.children.size === 0
    items.push(isWhole ? item : withKeys(list, item, extractFields(list.element, item, subset, options), options))
  }
  return items.length > 0 ? items : null
}

function withKeys(list: ListType, item: unknown, extracted: unknown, { keepKeys }: ExtractOptions): unknown {
  if (!keepKeys || !isRecord(item) || !isRecord(extracted)) return extracted
  const keys: Record<string, unknown> = {}
  for (const key of list.keys) if (Object.hasOwn(item, key)) keys[key] = item[key]
  return { ...keys, ...extracted }
}
