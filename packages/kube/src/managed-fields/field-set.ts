/**
 * Sets of fields of an object, as trees: a node is one field. Its `owned` is true when that field is in the set; its children are the
 * fields below that field. Sets are immutable. The results of `union`, `difference` and `recursiveDifference` share unchanged parts with
 * the arguments; these functions return their first argument when the result equals it.
 */
import type { PathElement } from './path-element.ts'
import { elementText, inOrder } from './path-element.ts'

export interface FieldSet {
  /** Whether the set contains the field of this node. Has no meaning at the root. */
  readonly owned: boolean
  /** Contains no empty sets. */
  readonly children: ReadonlyMap<PathElement, FieldSet>
}

export type Path = readonly PathElement[]

const NoChildren: ReadonlyMap<PathElement, FieldSet> = new Map()

export const emptySet: FieldSet = { owned: false, children: NoChildren }
/** Node of a field without fields below it. */
export const leaf: FieldSet = { owned: true, children: NoChildren }

export const isEmpty = (set: FieldSet | undefined): boolean => set === undefined || (!set.owned && set.children.size === 0)

/** Creates a node with those of `children` that are not empty. */
export function fieldSet(owned: boolean, children: Iterable<readonly [PathElement, FieldSet | undefined]>): FieldSet {
  const nonEmpty = new Map<PathElement, FieldSet>()
  for (const [element, child] of children) if (child !== undefined && !isEmpty(child)) nonEmpty.set(element, child)
  if (nonEmpty.size === 0) return owned ? leaf : emptySet
  return { owned, children: nonEmpty }
}

/** Creates the set of the given paths. */
export function setOf(paths: readonly Path[]): FieldSet {
  let set = emptySet
  for (const path of paths) set = union(set, setOfPath(path))
  return set
}

const setOfPath = (path: Path): FieldSet =>
  path.reduceRight<FieldSet>((child, element) => ({ owned: false, children: new Map([[element, child]]) }), leaf)

/** Returns the fields that are in at least one of the sets. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a
  if (isEmpty(a)) return b
  const children = new Map(a.children)
  let isChanged = b.owned && !a.owned
  for (const [element, child] of b.children) {
    const childOfA = a.children.get(element)
    const united = childOfA === undefined ? child : union(childOfA, child)
    if (united !== childOfA) {
      children.set(element, united)
      isChanged = true
    }
  }
  return isChanged ? { owned: a.owned || b.owned, children } : a
}

/** Returns the fields that are in both sets. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  const [small, large] = a.children.size <= b.children.size ? [a, b] : [b, a]
  const children: [PathElement, FieldSet][] = []
  for (const [element, child] of small.children) {
    const other = large.children.get(element)
    if (other) children.push([element, intersection(child, other)])
  }
  return fieldSet(a.owned && b.owned, children)
}

/** Returns the fields of `a` that are not in `b`. Fields below a field of `b` stay. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return without(a, b, (childOfA, childOfB) => difference(childOfA, childOfB))
}

/** Returns the fields of `a` that are neither in `b` nor below a field of `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return without(a, b, (childOfA, childOfB) => (childOfB.owned ? emptySet : recursiveDifference(childOfA, childOfB)))
}

function without(a: FieldSet, b: FieldSet, subtract: (childOfA: FieldSet, childOfB: FieldSet) => FieldSet): FieldSet {
  if (isEmpty(a) || isEmpty(b)) return a
  let children: Map<PathElement, FieldSet> | undefined
  for (const [element, childOfB] of b.children) {
    const childOfA = a.children.get(element)
    if (!childOfA) continue
    const remaining = subtract(childOfA, childOfB)
    if (remaining === childOfA) continue
    children ??= new Map(a.children)
    if (isEmpty(remaining)) children.delete(element)
    else children.set(element, remaining)
  }
  const owned = a.owned && !b.owned
  if (!children && owned === a.owned) return a
  return fieldSet(owned, children ?? a.children)
}

/** Returns the fields of the set that have no other fields of the set below them. */
export function leavesOf(set: FieldSet): FieldSet {
  if (set.children.size === 0) return set
  return fieldSet(
    false,
    [...set.children].map(([element, child]) => [element, leavesOf(child)] as const),
  )
}

/** Returns the number of fields in the set. */
export function sizeOf(set: FieldSet): number {
  let size = set.owned ? 1 : 0
  for (const child of set.children.values()) size += sizeOf(child)
  return size
}

export function sameSet(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  if (a.owned !== b.owned || a.children.size !== b.children.size) return false
  for (const [element, child] of a.children) {
    const other = b.children.get(element)
    if (!other || !sameSet(child, other)) return false
  }
  return true
}

export function hasPath(set: FieldSet, path: Path): boolean {
  let node: FieldSet | undefined = set
  for (const element of path) node = node?.children.get(element)
  return node?.owned ?? false
}

/** Returns the paths of the fields in the set. At each node, the fields directly below it come first, in order, then all deeper fields. */
export function pathsOf(set: FieldSet): Path[] {
  const paths: Path[] = []
  const visit = (node: FieldSet, prefix: Path) => {
    const elements = sortedElements(node)
    for (const element of elements) if (node.children.get(element)!.owned) paths.push([...prefix, element])
    for (const element of elements) visit(node.children.get(element)!, [...prefix, element])
  }
  visit(set, [])
  return paths
}

export const sortedElements = (set: FieldSet): PathElement[] => inOrder([...set.children.keys()])

/** Formats a path for messages: `.spec.ports[port=443].name`. */
export const pathText = (path: Path): string => path.map(elementText).join('')
