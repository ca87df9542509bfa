/** Computes the fields that a value sets, and removes fields from a value. */
import { atOnce, PieceSize, type Work } from '../clock.ts'
import { isRecord, setMember } from '../json.ts'
import type { FieldSet } from './field-set.ts'
import { emptySet, fieldSet, leaf } from './field-set.ts'
import { itemElement } from './list-item.ts'
import type { PathElement } from './path-element.ts'
import { fieldElement, fieldName } from './path-element.ts'
import type { ListType, MapType, Type } from './type.ts'
import { formsOf, memberType } from './type.ts'

/**
 * Returns the fields that applying this value sets: its leaves (scalars, atomic lists and maps), the items of its other lists, members that
 * are null or an empty object, and undeclared members. Other declared objects and lists are not included: setting a field does not own its
 * parent.
 */
export const fieldsOf = (type: Type, value: unknown): FieldSet => atOnce(fieldsIn(type, value))

/** Computes the same as `fieldsOf` in pieces, between which the caller may yield to the event loop. */
export function* fieldsIn(type: Type, value: unknown): Work<FieldSet> {
  const { map, scalar, list } = formsOf(type, value)
  const container = map ?? (scalar ? undefined : list)
  if (!container || container.atomic) return leaf
  if (map) return isRecord(value) ? yield* fieldsInMap(map, value) : emptySet
  return Array.isArray(value) ? yield* fieldsInList(list!, value) : emptySet
}

/** Returns the fields of a value: at once for scalars (most values) and null, otherwise as `Work`. */
const fieldsBelow = (type: Type, value: unknown): FieldSet | Work<FieldSet> => {
  if (typeof value === 'object' && value !== null) return fieldsIn(type, value)
  const { map, scalar, list } = formsOf(type, value)
  const container = map ?? (scalar ? undefined : list)
  return !container || container.atomic ? leaf : emptySet
}

function* fieldsInMap(map: MapType, value: Readonly<Record<string, unknown>>): Work<FieldSet> {
  const children = new Map<PathElement, FieldSet>()
  let count = 0
  for (const name of Object.keys(value)) {
    if (++count % PieceSize === 0) yield
    const member = value[name]
    if (member === undefined) continue
    const pending = fieldsBelow(memberType(map, name) ?? {}, member)
    const memberFields = 'owned' in pending ? pending : yield* pending
    const isEmpty = member === null || (isRecord(member) && Object.keys(member).length === 0)
    children.set(fieldElement(name), isEmpty || !map.fields.has(name) ? asOwned(memberFields) : memberFields)
  }
  return fieldSet(false, children)
}

function* fieldsInList(list: ListType, value: readonly unknown[]): Work<FieldSet> {
  const children = new Map<PathElement, FieldSet>()
  let count = 0
  for (const item of value) {
    if (++count % PieceSize === 0) yield
    const element = itemElement(list, item)
    const pending = fieldsBelow(list.element, item)
    // Duplicate items count together as one value, without fields below it.
    children.set(element, children.has(element) ? leaf : asOwned('owned' in pending ? pending : yield* pending))
  }
  return fieldSet(false, children)
}

const asOwned = (set: FieldSet): FieldSet => (set.owned ? set : { ...set, owned: true })

/** Adds the declared parents of the fields to the set, so that a parent can be removed with all its fields. */
export function withDeclaredParents(type: Type, set: FieldSet): FieldSet {
  if (set.children.size === 0) return set
  const { map, list } = type
  const children: [PathElement, FieldSet][] = []
  for (const [element, child] of set.children) {
    const name = fieldName(element)
    const innerType = name === undefined ? list?.element : map && memberType(map, name)
    const inner = withDeclaredParents(innerType ?? {}, child)
    const isDeclared = name !== undefined && child.children.size > 0 && map?.fields.has(name) === true
    children.push([element, isDeclared && !inner.owned ? { ...inner, owned: true } : inner])
  }
  return { owned: set.owned, children: new Map(children) }
}

/**
 * Removes the fields of the set, and all fields below them, from a value. Returns null when no member or item remains, for an atomic list or
 * map, and for a value that is not a list or map as the type requires.
 */
export function removeFields(type: Type, value: unknown, fields: FieldSet): unknown {
  const { map, scalar, list } = formsOf(type, value)
  if (map) return removeFromMap(map, value, fields)
  if (list && !scalar) return removeFromList(list, value, fields)
  return value
}

function removeFromMap(map: MapType, value: unknown, fields: FieldSet): unknown {
  if (map.atomic || !isRecord(value)) return null
  const remaining: Record<string, unknown> = {}
  for (const name of Object.keys(value)) {
    const subset = fields.children.get(fieldElement(name))
    if (subset?.owned) continue
    setMember(remaining, name, subset ? removeBelow(memberType(map, name) ?? {}, value[name], subset) : value[name])
  }
  return Object.keys(remaining).length > 0 ? remaining : null
}

function removeFromList(list: ListType, value: unknown, fields: FieldSet): unknown {
  if (list.atomic || !Array.isArray(value)) return null
  const remaining: unknown[] = []
  for (const item of value) {
    const subset = fields.children.get(itemElement(list, item))
    if (subset?.owned) continue
    remaining.push(subset ? removeBelow(list.element, item, subset) : item)
  }
  return remaining.length > 0 ? remaining : null
}

/** Removes fields from a list or map that itself is kept, possibly empty. */
function removeBelow(type: Type, value: unknown, fields: FieldSet): unknown {
  const remaining = removeFields(type, value, fields)
  if (remaining !== null) return remaining
  return isRecord(value) ? {} : Array.isArray(value) ? [] : null
}
