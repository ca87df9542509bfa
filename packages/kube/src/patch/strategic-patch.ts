/**
 * Strategic merge patch: a merge patch that merges lists by their keys, with the directives `$patch`, `$retainKeys`, `$setElementOrder` and
 * `$deleteFromPrimitiveList`. Only for built-in kinds.
 * Upstream: k8s.io/apimachinery/pkg/util/strategicpatch, v0.36.
 */
import { after, asWork, atOnce, each, type RemainingWork, sorting, visiting, type Work } from '../clock.ts'
import { badRequest, StatusError } from '../errors.ts'
import { appendAll } from '../lists.ts'
import { goText } from '../go-text.ts'
import { drafting, emptyLike, equal, getMember, isRecord, setMember, valueKey } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { ObjectMetaSchema } from '../structural/object-meta.ts'

type Members = Record<string, unknown>

/**
 * Applies the patch to a copy of the object. `object` and `patch` do not change.
 *
 * @throws StatusError BadRequest when `$deleteFromPrimitiveList` or `$retainKeys` is not a list, or `$retainKeys` lacks a key that the patch
 * sets. StatusError without a reason, code 500, for all other errors, such as an unknown directive or an item without its merge key.
 * Directives in an object or list that the patch adds are not checked
 */
export const applyStrategicPatch = <T extends object>(object: T, patch: object, schema: JSONSchema): T =>
  atOnce(applyingStrategicPatch(object, patch, schema))

/** Like `applyStrategicPatch`, as long work that yields between its pieces. */
export function* applyingStrategicPatch<T extends object>(object: T, patch: object, schema: JSONSchema): Work<T> {
  const root: JSONSchema = { ...schema, properties: { ...schema.properties, metadata: ObjectMetaSchema } }
  const result: Members = { object: yield* drafting(object) }
  const patchCopy = (yield* drafting(patch)) as Members
  yield* asWork(() => mergeObject(result, 'object', patchCopy, root))
  return result.object as T
}

const Directive = '$patch'
const RetainKeys = '$retainKeys'
const SetOrder = '$setElementOrder'
const DeleteValues = '$deleteFromPrimitiveList/'

/** Merges the patch into the object at `key` of `parent`. Not a generator, so that deeply nested objects do not exhaust the stack. */
function mergeObject(
  parent: Members | unknown[],
  key: string | number,
  patch: Members,
  schema: JSONSchema | undefined,
): RemainingWork {
  if (Object.hasOwn(patch, Directive)) {
    setMember(parent as Members, `${key}`, replacementOf(patch))
    return undefined
  }
  const object = (parent as Members)[key] as Members
  retainKeys(object, patch)
  const keys = Object.keys(patch)
  const orders = elementOrders(patch, keys)
  const rest = each(keys, (member) => {
    if (member === RetainKeys || member.startsWith(SetOrder)) return undefined
    return member.startsWith(DeleteValues)
      ? deletingValues(object, member.slice(DeleteValues.length), patch[member])
      : mergeMember(object, member, patch[member], propertyOf(schema, member), orders.get(member))
  })
  return orders.size === 0 ? rest : after(rest, () => sortingMembers(object, patch, orders, schema))
}

/** Returns the object that replaces the current object, as the directive `$patch` of the patch demands. */
function replacementOf({ [Directive]: directive, ...replacement }: Members): Members {
  if (directive === 'replace') return replacement
  if (directive === 'delete') return {}
  throw unknownDirective({ [Directive]: directive, ...replacement })
}

/** Sorts the lists for which the patch has a `$setElementOrder`, but no member with items. */
function* sortingMembers(
  object: Members,
  patch: Members,
  orders: ReadonlyMap<string, unknown[]>,
  schema: JSONSchema | undefined,
): Work<void> {
  for (const [key, order] of orders) {
    const list = getMember(object, key)
    if (Object.hasOwn(patch, key) || !Array.isArray(list)) continue
    setMember(object, key, yield* sortingByOrder(list, order, list, strategyOf(propertyOf(schema, key)).mergeKey))
  }
}

function mergeMember(
  object: Members,
  key: string,
  change: unknown,
  schema: JSONSchema | undefined,
  order: unknown[] | undefined,
): RemainingWork {
  if (typeof change === 'object' && change !== null) {
    const replaces = schema?.['x-kubernetes-patch-strategy']?.includes('replace')
    return !replaces && isRecord(change) && isRecord(getMember(object, key))
      ? mergeObject(object, key, change, schema)
      : settingMember(object, key, change, schema, order)
  }
  if (change === null) delete object[key]
  else setMember(object, key, change)
  return undefined
}

/**
 * Merges a list into the member if the member is a list, too, and the schema merges it. Otherwise replaces the member, or removes it if
 * `change` is a directive.
 */
function* settingMember(
  object: Members,
  key: string,
  change: object,
  schema: JSONSchema | undefined,
  order: unknown[] | undefined,
): Work<void> {
  const current = getMember(object, key)
  const { merges, mergeKey } = strategyOf(schema)
  if (Array.isArray(current) && Array.isArray(change)) {
    if (order) checkOrder(change, order, mergeKey)
    const merged = merges
      ? yield* mergingList(current, change, mergeKey, schema?.items)
      : { list: (yield* withoutDirectives(change)) as unknown[], added: [] }
    setMember(object, key, merges ? yield* sortingByOrder(merged.list, order ?? merged.added, current, mergeKey) : merged.list)
  } else {
    const plain = yield* withoutDirectives(change)
    if (plain === undefined) delete object[key]
    else setMember(object, key, Array.isArray(plain) && order ? yield* sortingByOrder(plain, order, [], mergeKey) : plain)
  }
}

const propertyOf = (schema: JSONSchema | undefined, key: string): JSONSchema | undefined => {
  const declared = schema?.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
  return declared ?? (typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined)
}

/** Returns whether a list is merged, and by which key. Only lists of scalars are merged without a key. */
function strategyOf(schema: JSONSchema | undefined): { merges: boolean; mergeKey: string | undefined } {
  const strategy = schema?.['x-kubernetes-patch-strategy']
  const listType = schema?.['x-kubernetes-list-type']
  return {
    merges: strategy === undefined ? listType === 'map' || listType === 'set' : strategy.split(',').includes('merge'),
    mergeKey: schema?.['x-kubernetes-patch-merge-key'] ?? schema?.['x-kubernetes-list-map-keys']?.[0],
  }
}

/**
 * Merges items of the patch into the items with the same key, or appends them. `added` of the result contains the items of the patch that
 * are not directives.
 */
function* mergingList(
  current: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  schema: JSONSchema | undefined,
): Work<{ list: unknown[]; added: unknown[] }> {
  if (![...current, ...patch].some(isRecord)) {
    const list = new Map<unknown, unknown>()
    yield* visiting([...current, ...patch], (value): undefined => {
      const key = valueKey(value)
      if (!list.has(key)) list.set(key, value)
    })
    return { list: [...list.values()], added: [...patch] }
  }
  if (mergeKey === undefined) throw patchError('cannot merge lists without merge key')
  const keyOf = (item: unknown): unknown => {
    if (!isRecord(item)) throw patchError(`expected a map[string]interface {}, but received a ${goKind(item)}`)
    if (!Object.hasOwn(item, mergeKey)) throw patchError(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`)
    return item[mergeKey]
  }
  const added = patch.filter((item) => !isDirective(item))
  const deletedKeys = new Set<unknown>()
  let replaces = false
  for (const item of patch.filter(isDirective)) {
    if (item[Directive] === 'delete') {
      // Upstream: a deletion fails when an item of the list has no key.
      const deleted = keyOf(item)
      if (deletedKeys.size === 0) current.forEach(keyOf)
      deletedKeys.add(valueKey(deleted))
    } else if (item[Directive] === 'replace') replaces = true
    else if (item[Directive] === 'merge') throw patchError('merging lists cannot yet be specified in the patch')
    else throw unknownDirective(item)
  }
  if (replaces) return { list: added, added }
  const list = deletedKeys.size === 0 ? [...current] : current.filter((item) => !deletedKeys.has(valueKey(keyOf(item))))
  const indexes = yield* indexing(added.length === 0 ? [] : list, keyOf)
  yield* visiting(added, (item) => {
    const key = valueKey(keyOf(item))
    const index = indexes.get(key)
    if (index !== undefined) return mergeObject(list, index, item as Members, schema)
    indexes.set(key, list.push(item) - 1)
    return undefined
  })
  return { list, added }
}

/** Returns the first index of each key in the list. */
function* indexing(list: readonly unknown[], keyOf: (item: unknown) => unknown): Work<Map<unknown, number>> {
  const indexes = new Map<unknown, number>()
  let index = 0
  yield* visiting(list, (item): undefined => {
    const key = valueKey(keyOf(item))
    if (!indexes.has(key)) indexes.set(key, index)
    index++
  })
  return indexes
}

/**
 * Sorts the items that `order` names. The other items keep their order and, as far as possible, stay before or after the same named items as
 * in `current`. If `current` lacks a named item or the other item, the named item comes first.
 */
function* sortingByOrder(
  list: readonly unknown[],
  order: readonly unknown[],
  current: readonly unknown[],
  mergeKey: string | undefined,
): Work<unknown[]> {
  const idOf = (item: unknown) => (mergeKey !== undefined && isRecord(item) ? getMember(item, mergeKey) : item)
  const inOrder = yield* indexing(order, idOf)
  const inCurrent = yield* indexing(current, idOf)
  const named: Ranked[] = []
  const others: Ranked[] = []
  yield* visiting(list, (item): undefined => {
    const key = valueKey(idOf(item))
    const rank = inOrder.get(key) ?? -1
    ;(rank < 0 ? others : named).push({ item, rank, place: inCurrent.get(key) ?? -1 })
  })
  yield* sorting(named, (a, b) => a.rank - b.rank)
  const result: unknown[] = []
  let [nextNamed, nextOther] = [0, 0]
  while (nextNamed < named.length && nextOther < others.length) {
    const [placeOfOther, placeOfNamed] = [others[nextOther]!.place, named[nextNamed]!.place]
    const otherIsFirst = placeOfOther >= 0 && placeOfNamed >= 0 && placeOfOther < placeOfNamed
    result.push((otherIsFirst ? others[nextOther++]! : named[nextNamed++]!).item)
  }
  appendAll(
    result,
    named.slice(nextNamed).map(({ item }) => item),
    others.slice(nextOther).map(({ item }) => item),
  )
  return result
}

interface Ranked {
  readonly item: unknown
  /** Index in `order`; -1 for an item that `order` does not name. */
  readonly rank: number
  /** Index in the current list; -1 for a new item. */
  readonly place: number
}

function elementOrders(patch: Members, keys: readonly string[]): Map<string, unknown[]> {
  const orders = new Map<string, unknown[]>()
  for (const key of keys) {
    if (!key.startsWith(SetOrder)) continue
    const order = patch[key]
    if (!Array.isArray(order)) throw patchError(`expected a []interface {}, but received a ${goKind(order)}`)
    orders.set(key.slice(SetOrder.length + 1), order)
  }
  return orders
}

/** Rejects a patch with an item that `$setElementOrder` lacks, or with items in another order than there. An empty order permits all items. */
function checkOrder(patch: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): void {
  if (patch.length === 0 || order.length === 0) return
  const idOf = (item: unknown) => (mergeKey !== undefined && isRecord(item) ? getMember(item, mergeKey) : item)
  const items = patch.filter((item) => !isRecord(item) || !Object.hasOwn(item, Directive))
  let next = 0
  for (const ordered of order) if (next < items.length && equal(idOf(items[next]), idOf(ordered))) next++
  if (next < items.length) {
    throw patchError(`The order in patch list:\n${goText(patch)}\n doesn't match ${SetOrder} list:\n${goText(order)}\n`)
  }
}

/** Applies `$retainKeys`, the list of all members that may stay. */
function retainKeys(object: Members, patch: Members): void {
  if (!Object.hasOwn(patch, RetainKeys)) return
  const keys = patch[RetainKeys]
  const isDirectiveKey = (key: string) => key === RetainKeys || key.startsWith(DeleteValues) || key.startsWith(SetOrder)
  const setKeys = Object.keys(patch).filter((key) => patch[key] !== null && !isDirectiveKey(key))
  const retained = new Set<unknown>(Array.isArray(keys) ? keys : [])
  if (!Array.isArray(keys) || setKeys.some((key) => !retained.has(key))) throw badRequest('invalid patch format of retainKeys')
  for (const key of Object.keys(object)) if (!retained.has(key)) delete object[key]
}

function* deletingValues(object: Members, key: string, values: unknown): Work<void> {
  const list = getMember(object, key)
  if (!Array.isArray(values)) throw badRequest('invalid patch format of primitive list')
  if (!Array.isArray(list)) return
  const deletedValues = yield* indexing(values, (value) => value)
  const kept: unknown[] = []
  yield* visiting(list, (value): undefined => {
    if (!deletedValues.has(valueKey(value))) kept.push(value)
  })
  setMember(object, key, kept)
}

/** Returns the value that a patch adds, without directives and null members; `undefined` for a directive. */
function* withoutDirectives(value: unknown): Work<unknown> {
  if (isDirective(value)) return undefined
  const plain = emptyLike(value)
  const rest = addWithoutDirectives(plain, value)
  if (rest) yield* rest
  return plain
}

/** Adds the items or members of `value` to a copy, without directives and null members. */
function addWithoutDirectives(copy: unknown, value: unknown): RemainingWork {
  if (Array.isArray(value)) {
    return each(value, (item) => {
      if (isDirective(item)) return undefined
      const plain = emptyLike(item)
      ;(copy as unknown[]).push(plain)
      return addWithoutDirectives(plain, item)
    })
  }
  if (!isRecord(value)) return undefined
  return each(Object.keys(value), (key) => {
    const member = value[key]
    const isDirectiveKey = key === RetainKeys || key.startsWith(SetOrder) || key.startsWith(DeleteValues)
    if (isDirectiveKey || member === null || member === undefined || isDirective(member)) return undefined
    const plain = emptyLike(member)
    setMember(copy as Members, key, plain)
    return addWithoutDirectives(plain, member)
  })
}

const isDirective = (value: unknown): value is Members => isRecord(value) && Object.hasOwn(value, Directive)

const patchError = (message: string): StatusError => new StatusError('', message)
const unknownDirective = (patch: Members): StatusError =>
  patchError(`unknown patch type: ${goText(patch[Directive])} in map: ${goText(patch)}`)

const goKind = (value: unknown): string =>
  isRecord(value) ? 'map[string]interface {}' : Array.isArray(value) ? '[]interface {}' : typeof value
