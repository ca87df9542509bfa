/** Compares two versions of an object field by field. */
import { PieceSize, type Work } from '../clock.ts'
import { equal, isRecord } from '../json.ts'
import type { FieldSet } from './field-set.ts'
import { difference, emptySet, isEmpty, leaf, recursiveDifference, union } from './field-set.ts'
import { itemElement } from './list-item.ts'
import type { PathElement } from './path-element.ts'
import { fieldElement } from './path-element.ts'
import type { ListType, MapType, Type } from './type.ts'
import { formsOf, memberType } from './type.ts'

/** Fields that differ between two versions of an object. */
export interface Comparison {
  readonly added: FieldSet
  readonly removed: FieldSet
  readonly modified: FieldSet
}

const noDifferences: Comparison = { added: emptySet, removed: emptySet, modified: emptySet }
const addedLeaf: Comparison = { ...noDifferences, added: leaf }
const removedLeaf: Comparison = { ...noDifferences, removed: leaf }
const modifiedLeaf: Comparison = { ...noDifferences, modified: leaf }

/** Compares two values of a type. `undefined` means that the value is absent. */
export function* compareTyped(type: Type, before: unknown, after: unknown): Work<Comparison> {
  if (before === after) return noDifferences
  const oldForm = formsOf(type, before)
  const newForm = formsOf(type, after)
  if (before === undefined || after === undefined || sameForm(oldForm, newForm)) {
    const parts = comparingParts(after === undefined ? oldForm : newForm, before, after)
    return withContainer(parts ? yield* parts : compareLeaf(before, after), before, after)
  }
  // A value whose form changed, such as from a list to a map, is compared in both forms.
  const oldParts = comparingParts(oldForm, before, after)
  const newParts = comparingParts(newForm, before, after)
  return unionOf(
    (oldParts ? yield* oldParts : compareLeaf(before, after)).fields,
    (newParts ? yield* newParts : compareLeaf(before, after)).fields,
  )
}

/** Returns a comparison without `ignored`, the fields that the endpoint of the request resets, and without all fields below them. */
export const withoutFields = (comparison: Comparison, ignored: FieldSet | undefined): Comparison =>
  ignored === undefined
    ? comparison
    : {
        added: recursiveDifference(comparison.added, ignored),
        removed: recursiveDifference(comparison.removed, ignored),
        modified: recursiveDifference(comparison.modified, ignored),
      }

/** Returns the fields of `set` that do not differ. */
export const withoutDifferences = (set: FieldSet, { added, removed, modified }: Comparison): FieldSet =>
  difference(difference(difference(set, modified), added), removed)

/** Differences of two values, and whether the values are leaves. */
interface TypedComparison {
  readonly fields: Comparison
  readonly isLeaf: boolean
}

/** Adds the list or map itself to the fields if it was added or removed. */
function withContainer({ fields, isLeaf }: TypedComparison, before: unknown, after: unknown): Comparison {
  if (isLeaf) return fields
  if (before === undefined) return { ...fields, added: { ...fields.added, owned: true } }
  if (after === undefined) return { ...fields, removed: { ...fields.removed, owned: true } }
  return fields
}

const sameForm = (a: Type, b: Type): boolean => a.map === b.map && a.list === b.list && a.scalar === b.scalar

/** Compares the members or items of two values; returns `undefined` for a form without members and items. */
function comparingParts({ map, scalar, list }: Type, before: unknown, after: unknown): Work<TypedComparison> | undefined {
  if (map) return compareMap(map, before, after)
  return list && !scalar ? compareList(list, before, after) : undefined
}

const compareLeaf = (before: unknown, after: unknown): TypedComparison => ({
  fields: leafComparison(before, after),
  isLeaf: true,
})

function leafComparison(before: unknown, after: unknown): Comparison {
  if (before === undefined) return addedLeaf
  if (after === undefined) return removedLeaf
  return equal(before, after) ? noDifferences : modifiedLeaf
}

/**
 * Compares two scalars or absent values, which are leaves in every type; returns `undefined` for other values. Most values are scalars, for
 * which this function avoids the cost of a generator.
 */
const compareScalars = (before: unknown, after: unknown): Comparison | undefined =>
  isScalar(before) && isScalar(after) ? leafComparison(before, after) : undefined

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null

const NoMembers: Readonly<Record<string, unknown>> = {}

function* compareMap(map: MapType, before: unknown, after: unknown): Work<TypedComparison> {
  const left = isRecord(before) ? before : NoMembers
  const right = isRecord(after) ? after : NoMembers
  const leftNames = Object.keys(left)
  const rightNames = Object.keys(right)
  if (map.atomic || (leftNames.length === 0 && rightNames.length === 0)) return compareLeaf(before, after)
  const parts = new ComparisonBuilder()
  let count = 0
  for (const name of leftNames) {
    const newValue = Object.hasOwn(right, name) ? right[name] : undefined
    if (left[name] !== newValue) {
      const part =
        compareScalars(left[name], newValue) ?? (yield* compareTyped(memberType(map, name) ?? {}, left[name], newValue))
      parts.add(fieldElement(name), part)
    }
    if (++count % PieceSize === 0) yield
  }
  for (const name of rightNames) {
    if (Object.hasOwn(left, name)) continue
    const value = right[name]
    const part = compareScalars(undefined, value) ?? (yield* compareTyped(memberType(map, name) ?? {}, undefined, value))
    parts.add(fieldElement(name), part)
    if (++count % PieceSize === 0) yield
  }
  return { fields: parts.comparison(), isLeaf: false }
}

function* compareList(list: ListType, before: unknown, after: unknown): Work<TypedComparison> {
  const [left, right] = [Array.isArray(before) ? before : [], Array.isArray(after) ? after : []]
  if (list.atomic || (left.length === 0 && right.length === 0)) return compareLeaf(before, after)
  const [leftItems, rightItems] = [yield* groupItems(list, left), yield* groupItems(list, right)]
  const parts = new ComparisonBuilder()
  let count = 0
  for (const items of [leftItems, rightItems]) {
    for (const element of items.keys()) {
      if (++count % PieceSize === 0) yield
      if (items === rightItems && leftItems.has(element)) continue
      parts.add(element, yield* compareItems(list.element, leftItems.get(element) ?? [], rightItems.get(element) ?? []))
    }
  }
  return { fields: parts.comparison(), isLeaf: false }
}

/** Compares the items that one path element identifies in two lists. Duplicate items of a list are compared together, as one value. */
function* compareItems(type: Type, before: readonly unknown[], after: readonly unknown[]): Work<Comparison> {
  if (before.length <= 1 && after.length <= 1)
    return compareScalars(before[0], after[0]) ?? (yield* compareTyped(type, before[0], after[0]))
  if (before.length > 1 && after.length > 1) return equal(before, after) ? noDifferences : modifiedLeaf
  if (before.length > 1)
    return unionOf(after.length > 0 ? yield* compareTyped(type, undefined, after[0]) : noDifferences, removedLeaf)
  return unionOf(before.length > 0 ? yield* compareTyped(type, before[0], undefined) : noDifferences, addedLeaf)
}

function* groupItems(list: ListType, items: readonly unknown[]): Work<Map<PathElement, unknown[]>> {
  const groups = new Map<PathElement, unknown[]>()
  let count = 0
  for (const item of items) {
    if (++count % PieceSize === 0) yield
    const element = itemElement(list, item)
    const group = groups.get(element)
    if (group) group.push(item)
    else groups.set(element, [item])
  }
  return groups
}

const unionOf = (a: Comparison, b: Comparison): Comparison => ({
  added: union(a.added, b.added),
  removed: union(a.removed, b.removed),
  modified: union(a.modified, b.modified),
})

/** Collects the differences below a node; creates no maps for a node without differences. */
class ComparisonBuilder {
  #added: Map<PathElement, FieldSet> | undefined
  #removed: Map<PathElement, FieldSet> | undefined
  #modified: Map<PathElement, FieldSet> | undefined

  add(element: PathElement, { added, removed, modified }: Comparison): void {
    if (!isEmpty(added)) (this.#added ??= new Map()).set(element, added)
    if (!isEmpty(removed)) (this.#removed ??= new Map()).set(element, removed)
    if (!isEmpty(modified)) (this.#modified ??= new Map()).set(element, modified)
  }

  comparison(): Comparison {
    if (!this.#added && !this.#removed && !this.#modified) return noDifferences
    return {
      added: this.#added ? { owned: false, children: this.#added } : emptySet,
      removed: this.#removed ? { owned: false, children: this.#removed } : emptySet,
      modified: this.#modified ? { owned: false, children: this.#modified } : emptySet,
    }
  }
}
