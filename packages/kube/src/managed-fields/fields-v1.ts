/** Decodes and encodes field sets in the format of managedFields entries. */
import { PieceSize, SortedAtOnce, type Work } from '../clock.ts'
import { isRecord, setMember } from '../json.ts'
import type { FieldSet } from './field-set.ts'
import { emptySet, fieldSet, leaf, sameSet, sortedElements, union } from './field-set.ts'
import type { PathElement } from './path-element.ts'
import { ordering, parseElement } from './path-element.ts'

export type FieldsV1 = { [element: string]: unknown }

// Caches, because the frozen entries of a stored object are decoded, and often encoded again, with every write of the object.
const decoded = new WeakMap<object, FieldSet>()
const encoded = new WeakMap<FieldSet, FieldsV1>()

/**
 * Decodes FieldsV1. Returns the empty set for `undefined` and null; ignores elements with an unknown prefix.
 *
 * @throws Error when the value is not FieldsV1
 */
export function decodeFields(fields: unknown): FieldSet {
  if (fields === null || fields === undefined) return emptySet
  if (!isRecord(fields)) throw new Error('fieldsV1 is not an object')
  const cached = decoded.get(fields)
  if (cached) return cached
  const set = decodeText(JSON.stringify(fields), fields)
  if (Object.isFrozen(fields)) {
    decoded.set(fields, set)
    if (!encoded.has(set)) encoded.set(set, fields)
  }
  return set
}

/** Cache of decoded texts: entries of one manager are often equal in all objects of a kind. Bounded by count and text length. */
const texts = new Map<string, FieldSet>()
const MaxTexts = 64
const MaxTextLength = 8192

function decodeText(text: string, fields: Record<string, unknown>): FieldSet {
  const cached = texts.get(text)
  if (cached) return cached
  const set = decodeChildren(fields, false)
  if (text.length > MaxTextLength) return set
  texts.set(text, set)
  if (texts.size > MaxTexts) texts.delete(texts.keys().next().value!)
  return set
}

function decodeChildren(fields: Record<string, unknown>, owned: boolean): FieldSet {
  const children = new Map<PathElement, FieldSet>()
  for (const key of Object.keys(fields)) {
    if (key === '.') continue
    const element = parseElement(key)
    if (element === undefined) continue
    const childFields = fields[key]
    if (childFields !== null && !isRecord(childFields))
      throw new Error(`fieldsV1 has something other than an object at ${JSON.stringify(key)}`)
    const names = childFields === null ? [] : Object.keys(childFields)
    const child = names.length === 0 ? leaf : decodeChildren(childFields!, names.includes('.'))
    const sameElement = children.get(element)
    children.set(element, sameElement ? union(sameElement, child) : child)
  }
  return fieldSet(owned, children)
}

/** The latest encoded sets: entries of one manager are often equal in all objects of a kind. */
const recent: FieldSet[] = []
const MaxRecentSets = 16
/** Maximum number of nodes of a set in `recent`: sixteen sets of 200,000 fields would occupy hundreds of megabytes. */
const MaxNodes = 2000

/**
 * Encodes a set as FieldsV1. The result is frozen and cached. Its elements are sorted, unless it is the frozen object from which the set was
 * decoded.
 */
export function* encodeFields(set: FieldSet): Work<FieldsV1> {
  const cached = encoded.get(set)
  if (cached) return cached
  const isKept = nodesLeft(set, MaxNodes) >= 0
  const equalSet = isKept ? recent.find((candidate) => sameSet(candidate, set)) : undefined
  if (equalSet) return encoded.get(equalSet)!
  const fields = yield* encode(set)
  encoded.set(set, fields)
  decoded.set(fields, set)
  if (!isKept) return fields
  recent.unshift(set)
  if (recent.length > MaxRecentSets) recent.pop()
  return fields
}

/** Returns `nodes` minus the number of nodes in the set. Stops counting when the result is negative. */
function nodesLeft(set: FieldSet, nodes: number): number {
  let remaining = nodes - set.children.size
  for (const child of set.children.values()) {
    if (remaining < 0) return remaining
    remaining = nodesLeft(child, remaining)
  }
  return remaining
}

/** Encoding of a field without fields below it. */
const EncodedLeaf: FieldsV1 = Object.freeze({})

function* encode(set: FieldSet, isOwned = false): Work<FieldsV1> {
  const fields: FieldsV1 = {}
  if (isOwned) fields['.'] = EncodedLeaf
  let count = 0
  const isLong = set.children.size > SortedAtOnce
  for (const element of isLong ? yield* ordering([...set.children.keys()]) : sortedElements(set)) {
    const child = set.children.get(element)!
    setMember(fields, element, child.children.size === 0 ? EncodedLeaf : yield* encode(child, child.owned))
    if (++count % PieceSize === 0) yield
  }
  return Object.freeze(fields)
}
