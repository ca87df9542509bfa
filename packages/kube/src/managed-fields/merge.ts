/** Merges an applied configuration into the live object. */
import { atOnce, PieceSize, type Work } from '../clock.ts'
import { isRecord, setMember } from '../json.ts'
import { itemElement } from './list-item.ts'
import type { PathElement } from './path-element.ts'
import type { ListType, MapType, Type } from './type.ts'
import { formsOf, memberType } from './type.ts'

/** Merges two values. `undefined` means that the value is absent. The result shares parts with its arguments. */
export const mergeTyped = (type: Type, live: unknown, applied: unknown): unknown => atOnce(merging(type, live, applied))

/** Like `mergeTyped`, but as work that yields between its pieces. */
export function* merging(type: Type, live: unknown, applied: unknown): Work<unknown> {
  // For a type with several forms, the applied value determines the form; without an applied value, the live value does.
  const { map, scalar, list } = formsOf(type, applied === undefined ? live : applied)
  if (map) return yield* mergeMap(map, live, applied)
  if (list && !scalar) return yield* mergeList(list, live, applied)
  return applied === undefined ? live : applied
}

/** Reports whether both values are scalars, null or absent. The applied value then replaces the live value in every type. */
const isReplaced = (live: unknown, applied: unknown): boolean => isScalar(live) && isScalar(applied)
const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null

function* mergeMap(map: MapType, live: unknown, applied: unknown): Work<unknown> {
  const [left, right] = [isRecord(live) ? live : {}, isRecord(applied) ? applied : {}]
  const [leftNames, rightNames] = [Object.keys(left), Object.keys(right)]
  // If neither value has members, the result is one of the two values, unchanged: an empty map and null are different results.
  if (map.atomic || (leftNames.length === 0 && rightNames.length === 0)) return applied === undefined ? live : applied
  const merged: Record<string, unknown> = {}
  let count = 0
  for (const name of leftNames) {
    if (++count % PieceSize === 0) yield
    const [before, after] = [left[name], Object.hasOwn(right, name) ? right[name] : undefined]
    if (after === undefined) setMember(merged, name, before)
    else if (isReplaced(before, after)) setMember(merged, name, after)
    else setMember(merged, name, yield* merging(memberType(map, name) ?? {}, before, after))
  }
  for (const name of rightNames) {
    if (++count % PieceSize === 0) yield
    if (Object.hasOwn(left, name)) continue
    const after = right[name]
    if (isReplaced(undefined, after)) setMember(merged, name, after)
    else setMember(merged, name, yield* merging(memberType(map, name) ?? {}, undefined, after))
  }
  return merged
}

/**
 * Merges two lists. Live items keep their relative order, and so do applied items; if the two orders differ for shared items, the applied
 * order wins. Shared items are those whose keys or value occur in both lists. A shared item is merged; if the live list has it several times, the
 * applied item replaces all of these instead.
 */
function* mergeList(list: ListType, live: unknown, applied: unknown): Work<unknown> {
  const [left, right] = [asList(live), asList(applied)]
  if (list.atomic || (!left && !right)) return applied === undefined ? live : applied
  const leftItems = indexItems(list, left ?? [])
  const rightItems = indexItems(list, right ?? [])
  const shared = rightItems.elements.filter((element) => leftItems.byElement.has(element))
  let nextShared = 0
  const taken = new Set<PathElement>()
  const merged: unknown[] = []

  const take = (element: PathElement): Work<unknown> => {
    taken.add(element)
    if (shared[nextShared] === element) nextShared++
    return merging(list.element, leftItems.byElement.get(element), rightItems.byElement.get(element))
  }
  let [l, r] = [0, 0]
  let count = 0
  while (l < leftItems.elements.length || r < rightItems.elements.length) {
    if (++count % PieceSize === 0) yield
    const [liveElement, appliedElement] = [leftItems.elements[l], rightItems.elements[r]]
    if (liveElement !== undefined && appliedElement !== undefined) {
      if (liveElement === appliedElement) {
        merged.push(yield* take(liveElement))
        l++
        r++
        continue
      }
      if (rightItems.byElement.has(liveElement) && nextShared < shared.length && shared[nextShared] !== liveElement) {
        // Both lists have this item, but it is not the next shared item in the applied order: it is taken later, or was taken before.
        l++
        continue
      }
    }
    if (liveElement !== undefined) {
      if (!rightItems.byElement.has(liveElement)) {
        merged.push(left![l])
        l++
        continue
      }
      if (taken.has(liveElement)) l++
    }
    if (appliedElement !== undefined) {
      merged.push(yield* take(appliedElement))
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

const asList = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) && value.length > 0 ? value : undefined)
