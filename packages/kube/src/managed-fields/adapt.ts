/** Adapts field sets that were recorded for an older schema to the current schema. */
import type { FieldSet } from './field-set.ts'
import { fieldSet, isEmpty, leaf } from './field-set.ts'
import type { PathElement } from './path-element.ts'
import { fieldName } from './path-element.ts'
import type { Type } from './type.ts'
import { deducedType, memberType } from './type.ts'

const adapted = new WeakMap<FieldSet, WeakMap<Type, FieldSet>>()

/**
 * Adapts a field set to `type`, the type of the current schema. If a list or map has become atomic, a manager that owned a part owns the
 * whole. If a list or map is no longer atomic, ownership does not change, as upstream. Returns the set itself if it needs no change.
 */
export function adaptToType(type: Type, set: FieldSet): FieldSet {
  const cached = adapted.get(set)?.get(type)
  if (cached) return cached
  const result = adapt(type, set, false)
  const byType = adapted.get(set) ?? new WeakMap<Type, FieldSet>()
  adapted.set(set, byType.set(type, result))
  return result
}

/** Adapts one node. `isWhole` means that the set contains the node's field, and no fields below it: an atomic value needs no change. */
function adapt(type: Type, set: FieldSet, isWhole: boolean): FieldSet {
  const { map, scalar, list } = type
  if (map) {
    const { element } = map
    // Upstream: a map without declared fields, whose members have no schema, is not adapted.
    if (map.fields.size === 0 && (element === deducedType || (element?.scalar === 'untyped' && !element.map && !element.list)))
      return set
    if (map.atomic) return isWhole || set.children.size === 0 ? set : leaf
    return adaptChildren(set, (item) => memberType(map, fieldName(item) ?? ''))
  }
  if (scalar || !list) return set
  if (list.atomic) return isWhole ? set : leaf
  return adaptChildren(set, () => list.element)
}

function adaptChildren(set: FieldSet, typeOf: (element: PathElement) => Type | undefined): FieldSet {
  let children: Map<PathElement, FieldSet> | undefined
  for (const [element, child] of set.children) {
    const type = typeOf(element)
    if (!type) continue
    const adaptedChild = adapt(type, child, child.owned && child.children.size === 0)
    if (adaptedChild === child) continue
    children ??= new Map(set.children)
    children.set(element, adaptedChild)
  }
  if (!children) return set
  return isEmpty(set) ? set : fieldSet(set.owned, children)
}
