/**
 * Strategic merge patch: a merge patch that merges lists by their keys, with the directives `$patch`, `$retainKeys`, `$setElementOrder` and
 * `$deleteFromPrimitiveList`. Only for built-in kinds.
 * Upstream: k8s.io/apimachinery/pkg/util/strategicpatch, v0.36.
 */
import { badRequest, StatusError } from '../errors.ts'
import { appendAll } from '../lists.ts'
import { goText } from '../go-text.ts'
import { draft, equal, getMember, isRecord, setMember, valueKey } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { ObjectMetaSchema } from '../structural/object-meta.ts'

type Members = Record<string, unknown>

/**
 * Applies the patch. Neither argument changes.
 *
 * @throws StatusError without a reason, code 500, when the patch contradicts itself or the schema
 */
export function applyStrategicPatch<T extends object>(object: T, patch: object, schema: JSONSchema): T {
  const root: JSONSchema = { ...schema, properties: { ...schema.properties, metadata: ObjectMetaSchema } }
  return mergeObject(draft(object) as Members, draft(patch) as Members, root) as T
}

const Directive = '$patch'
const RetainKeys = '$retainKeys'
const SetOrder = '$setElementOrder'
const DeleteValues = '$deleteFromPrimitiveList/'

function mergeObject(object: Members, patch: Members, schema: JSONSchema | undefined): Members {
  if (Object.hasOwn(patch, Directive)) {
    const { [Directive]: directive, ...replacement } = patch
    if (directive === 'replace') return replacement
    if (directive === 'delete') return {}
    throw unknownDirective(patch)
  }
  retainKeys(object, patch)
  const orders = elementOrders(patch)
  for (const key of Object.keys(patch)) {
    if (key === RetainKeys || key.startsWith(SetOrder)) continue
    if (key.startsWith(DeleteValues)) deleteValues(object, key.slice(DeleteValues.length), patch[key])
    else mergeMember(object, key, patch[key], propertyOf(schema, key), orders.get(key))
  }
  for (const [key, order] of orders) {
    const list = getMember(object, key)
    if (Object.hasOwn(patch, key) || !Array.isArray(list)) continue
    setMember(object, key, sortByOrder(list, order, list, strategyOf(propertyOf(schema, key)).mergeKey))
  }
  return object
}

function mergeMember(
  object: Members,
  key: string,
  change: unknown,
  schema: JSONSchema | undefined,
  order: unknown[] | undefined,
): void {
  if (change === null) {
    delete object[key]
    return
  }
  const current = getMember(object, key)
  const { merges, mergeKey } = strategyOf(schema)
  if (isRecord(current) && isRecord(change)) {
    setMember(
      object,
      key,
      schema?.['x-kubernetes-patch-strategy']?.includes('replace')
        ? withoutDirectives(change)
        : mergeObject(current, change, schema),
    )
  } else if (Array.isArray(current) && Array.isArray(change)) {
    if (order) checkOrder(change, order, mergeKey)
    const merged = merges
      ? mergeList(current, change, mergeKey, schema?.items)
      : { list: withoutDirectives(change) as unknown[], added: [] }
    setMember(object, key, merges ? sortByOrder(merged.list, order ?? merged.added, current, mergeKey) : merged.list)
  } else {
    const plain = withoutDirectives(change)
    if (plain === undefined) delete object[key]
    else setMember(object, key, Array.isArray(plain) && order ? sortByOrder(plain, order, [], mergeKey) : plain)
  }
}

const propertyOf = (schema: JSONSchema | undefined, key: string): JSONSchema | undefined => {
  const declared = schema?.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
  return declared ?? (typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined)
}

/** Returns whether a list is merged, and by which key; without a key its items are scalars. */
function strategyOf(schema: JSONSchema | undefined): { merges: boolean; mergeKey: string | undefined } {
  const strategy = schema?.['x-kubernetes-patch-strategy']
  const listType = schema?.['x-kubernetes-list-type']
  return {
    merges: strategy === undefined ? listType === 'map' || listType === 'set' : strategy.split(',').includes('merge'),
    mergeKey: schema?.['x-kubernetes-patch-merge-key'] ?? schema?.['x-kubernetes-list-map-keys']?.[0],
  }
}

/** Merges items of the patch into the items with the same key, or appends them. `added` are the items of the patch without directives. */
function mergeList(
  current: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  schema: JSONSchema | undefined,
): { list: unknown[]; added: unknown[] } {
  if (![...current, ...patch].some(isRecord)) {
    const list = new Map<unknown, unknown>()
    for (const value of [...current, ...patch]) if (!list.has(valueKey(value))) list.set(valueKey(value), value)
    return { list: [...list.values()], added: [...patch] }
  }
  if (mergeKey === undefined) throw patchError('cannot merge lists without merge key')
  const keyOf = (item: unknown): unknown => {
    if (!isRecord(item)) throw patchError(`expected a map[string]interface {}, but received a ${goKind(item)}`)
    if (!Object.hasOwn(item, mergeKey)) throw patchError(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`)
    return item[mergeKey]
  }
  const isDirective = (item: unknown): item is Members => isRecord(item) && Object.hasOwn(item, Directive)
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
  const indexes = firstIndexes(added.length === 0 ? [] : list, keyOf)
  for (const item of added) {
    const key = valueKey(keyOf(item))
    const index = indexes.get(key)
    if (index === undefined) indexes.set(key, list.push(item) - 1)
    else list[index] = mergeObject(list[index] as Members, item as Members, schema)
  }
  return { list, added }
}

/** Returns the first index of each key in the list. */
function firstIndexes(list: readonly unknown[], keyOf: (item: unknown) => unknown): Map<unknown, number> {
  const indexes = new Map<unknown, number>()
  for (const [index, item] of list.entries()) {
    const key = valueKey(keyOf(item))
    if (!indexes.has(key)) indexes.set(key, index)
  }
  return indexes
}

/**
 * Sorts the items that `order` names by that order. Other items keep their order, and their place relative to the named items in `current`
 * as far as possible; without a known place, named items come first.
 */
function sortByOrder(
  list: readonly unknown[],
  order: readonly unknown[],
  current: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const idOf = (item: unknown) => (mergeKey !== undefined && isRecord(item) ? getMember(item, mergeKey) : item)
  const inOrder = firstIndexes(order, idOf)
  const inCurrent = firstIndexes(current, idOf)
  const ranked = list.map((item) => {
    const key = valueKey(idOf(item))
    return { item, rank: inOrder.get(key) ?? -1, place: inCurrent.get(key) ?? -1 }
  })
  const named = ranked.filter(({ rank }) => rank >= 0).sort((a, b) => a.rank - b.rank)
  const unranked = ranked.filter(({ rank }) => rank < 0)
  const result: unknown[] = []
  let [nextNamed, nextOther] = [0, 0]
  while (nextNamed < named.length && nextOther < unranked.length) {
    const [before, after] = [unranked[nextOther]!.place, named[nextNamed]!.place]
    result.push((before >= 0 && after >= 0 && before < after ? unranked[nextOther++]! : named[nextNamed++]!).item)
  }
  appendAll(
    result,
    named.slice(nextNamed).map(({ item }) => item),
    unranked.slice(nextOther).map(({ item }) => item),
  )
  return result
}

function elementOrders(patch: Members): Map<string, unknown[]> {
  const orders = new Map<string, unknown[]>()
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(SetOrder)) continue
    const order = patch[key]
    if (!Array.isArray(order)) throw patchError(`expected a []interface {}, but received a ${goKind(order)}`)
    orders.set(key.slice(SetOrder.length + 1), order)
  }
  return orders
}

/** Rejects a patch whose items are in another order than in `$setElementOrder`. */
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

function deleteValues(object: Members, key: string, values: unknown): void {
  const list = getMember(object, key)
  if (!Array.isArray(values)) throw badRequest('invalid patch format of primitive list')
  if (!Array.isArray(list)) return
  const deletedValues = new Set(values.map(valueKey))
  setMember(
    object,
    key,
    list.filter((value) => !deletedValues.has(valueKey(value))),
  )
}

/** Returns the value that a patch adds, without directives and nulls; `undefined` for a directive. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isRecord(value)) return value
  if (Object.hasOwn(value, Directive)) return undefined
  const plain: Members = {}
  for (const key of Object.keys(value)) {
    const isDirectiveKey = key === RetainKeys || key.startsWith(SetOrder) || key.startsWith(DeleteValues)
    const member = isDirectiveKey || value[key] === null ? undefined : withoutDirectives(value[key])
    if (member !== undefined) setMember(plain, key, member)
  }
  return plain
}

const patchError = (message: string): StatusError => new StatusError('', message)
const unknownDirective = (patch: Members): StatusError =>
  patchError(`unknown patch type: ${goText(patch[Directive])} in map: ${goText(patch)}`)

const goKind = (value: unknown): string =>
  isRecord(value) ? 'map[string]interface {}' : Array.isArray(value) ? '[]interface {}' : typeof value
