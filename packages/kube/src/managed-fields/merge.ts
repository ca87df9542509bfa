/** Merges an applied configuration into the live object. */
import { isRecord, setMember } from '../json.ts'
import { itemElement } from './list-item.ts'
import type { PathElement } from './path-element.ts'
import type { ListType, MapType, Type } from './type.ts'
import { formsOf, memberType } from './type.ts'

/** Merges two values. `undefined` means that the value is absent. The result shares parts with its arguments. */
export function mergeTyped(type: Type, live: unknown, applied: unknown): unknown {
  // For a type with several forms, the applied value determines the form.
  const { map, scalar, list } = formsOf(type, applied === undefined ? live : applied)
  if (map) return mergeMap(map, live, applied)
  if (list && !scalar) return mergeList(list, live, applied)
  return applied === undefined ? live : applied
}

function mergeMap(map: MapType, live: unknown, applied: unknown): unknown {
  const [left, right] = [asRecord(live), asRecord(applied)]
  // Keeps the difference between an empty map and null when neither side has members.
  if (map.atomic || (!left && !right)) return applied === undefined ? live : applied
  const merged: Record<string, unknown> = {}
  for (const name of Object.keys(left ?? {})) {
    const mine = right && Object.hasOwn(right, name) ? right[name] : undefined
    setMember(merged, name, mine === undefined ? left![name] : mergeTyped(memberType(map, name) ?? {}, left![name], mine))
  }
  for (const name of Object.keys(right ?? {})) {
    if (left && Object.hasOwn(left, name)) continue
    setMember(merged, name, mergeTyped(memberType(map, name) ?? {}, undefined, right![name]))
  }
  return merged
}

/**
 * Merges two lists. Live items keep their relative order, and so do applied items; if the two orders differ for shared items, the applied
 * one wins. Live duplicates are replaced by one item when they are applied.
 */
function mergeList(list: ListType, live: unknown, applied: unknown): unknown {
  const [left, right] = [asList(live), asList(applied)]
  if (list.atomic || (!left && !right)) return applied === undefined ? live : applied
  const leftItems = indexItems(list, left ?? [])
  const rightItems = indexItems(list, right ?? [])
  const shared = rightItems.elements.filter((element) => leftItems.byElement.has(element))
  let nextShared = 0
  const taken = new Set<PathElement>()
  const merged: unknown[] = []

  const take = (element: PathElement) => {
    taken.add(element)
    merged.push(mergeTyped(list.element, leftItems.byElement.get(element), rightItems.byElement.get(element)))
    if (shared[nextShared] === element) nextShared++
  }
  let [l, r] = [0, 0]
  while (l < leftItems.elements.length || r < rightItems.elements.length) {
    const [mine, theirs] = [leftItems.elements[l], rightItems.elements[r]]
    if (mine !== undefined && theirs !== undefined) {
      if (mine === theirs) {
        take(mine)
        l++
        r++
        continue
      }
      if (rightItems.byElement.has(mine) && nextShared < shared.length && shared[nextShared] !== mine) {
        // Both lists have this item, but in the applied order another shared item comes first. So it is taken later.
        l++
        continue
      }
    }
    if (mine !== undefined) {
      if (!rightItems.byElement.has(mine)) {
        merged.push(left![l])
        l++
        continue
      }
      if (taken.has(mine)) l++
    }
    if (theirs !== undefined) {
      take(theirs)
      r++
    }
  }
  return merged
}

function indexItems(
  list: ListType,
  items: readonly unknown[],
): { elements: PathElement[]; byElement: Map<PathElement, unknown> } {
  const byElement = new Map<PathElement, unknown>()
  const elements = items.map((item) => {
    const element = itemElement(list, item)
    // Duplicate items are replaced, not merged.
    byElement.set(element, byElement.has(element) ? null : item)
    return element
  })
  return { elements, byElement }
}

const asRecord = (value: unknown): Record<string, unknown> | undefined =>
  isRecord(value) && Object.keys(value).length > 0 ? value : undefined
const asList = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) && value.length > 0 ? value : undefined)
