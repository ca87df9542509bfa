/**
 * Strategic merge patch: a merge patch that knows which lists are merged, and by which key, and that takes orders (`$patch`,
 * `$retainKeys`, `$setElementOrder`, `$deleteFromPrimitiveList`). Only kinds that are built in understand it.
 * Upstream: k8s.io/apimachinery/pkg/util/strategicpatch, v0.36.
 */
import { badRequest, StatusError } from '../errors.ts'
import { goText } from '../go-text.ts'
import { draft, equal, getMember, isRecord, setMember } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { ObjectMetaSchema } from '../structural/object-meta.ts'

type Members = Record<string, unknown>

/**
 * The object after the patch. Neither argument changes.
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
    const { [Directive]: directive, ...rest } = patch
    if (directive === 'replace') return rest
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
    setMember(object, key, arranged(list, order, list, strategyOf(propertyOf(schema, key)).mergeKey))
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
    setMember(object, key, merges ? arranged(merged.list, order ?? merged.added, current, mergeKey) : merged.list)
  } else {
    const plain = withoutDirectives(change)
    if (plain === undefined) delete object[key]
    else setMember(object, key, Array.isArray(plain) && order ? arranged(plain, order, [], mergeKey) : plain)
  }
}

const propertyOf = (schema: JSONSchema | undefined, key: string): JSONSchema | undefined => {
  const declared = schema?.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
  return declared ?? (typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined)
}

/** Whether a list is merged, and by which key; without a key its items are plain values. */
function strategyOf(schema: JSONSchema | undefined): { merges: boolean; mergeKey: string | undefined } {
  const strategy = schema?.['x-kubernetes-patch-strategy']
  const listType = schema?.['x-kubernetes-list-type']
  return {
    merges: strategy === undefined ? listType === 'map' || listType === 'set' : strategy.split(',').includes('merge'),
    mergeKey: schema?.['x-kubernetes-patch-merge-key'] ?? schema?.['x-kubernetes-list-map-keys']?.[0],
  }
}

/** Items of the patch go into the items of the same key, or to the end. `added` are those that count for the order. */
function mergeList(
  current: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  schema: JSONSchema | undefined,
): { list: unknown[]; added: unknown[] } {
  if (![...current, ...patch].some(isRecord)) {
    const list: unknown[] = []
    for (const value of [...current, ...patch]) if (!list.some((other) => equal(other, value))) list.push(value)
    return { list, added: [...patch] }
  }
  if (mergeKey === undefined) throw refused('cannot merge lists without merge key')
  const keyOf = (item: unknown): unknown => {
    if (!isRecord(item)) throw refused(`expected a map[string]interface {}, but received a ${goKind(item)}`)
    if (!Object.hasOwn(item, mergeKey)) throw refused(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`)
    return item[mergeKey]
  }
  const isDirective = (item: unknown): item is Members => isRecord(item) && Object.hasOwn(item, Directive)
  const added = patch.filter((item) => !isDirective(item))
  let list = [...current]
  let replaces = false
  for (const item of patch.filter(isDirective)) {
    if (item[Directive] === 'delete') {
      const gone = keyOf(item)
      list = list.filter((other) => !equal(keyOf(other), gone))
    } else if (item[Directive] === 'replace') replaces = true
    else if (item[Directive] === 'merge') throw refused('merging lists cannot yet be specified in the patch')
    else throw unknownDirective(item)
  }
  if (replaces) return { list: added, added }
  for (const item of added) {
    const key = keyOf(item)
    const index = list.findIndex((other) => equal(keyOf(other), key))
    if (index < 0) list.push(item)
    else list[index] = mergeObject(list[index] as Members, item as Members, schema)
  }
  return { list, added }
}

/**
 * The list with the items that `order` names in that order. The others keep theirs, and stand as far as possible where they
 * stood among them in `current`; where nothing is known, items of the order come first.
 */
function arranged(
  list: readonly unknown[],
  order: readonly unknown[],
  current: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const idOf = (item: unknown) => (mergeKey !== undefined && isRecord(item) ? getMember(item, mergeKey) : item)
  const placeIn = (items: readonly unknown[], item: unknown) => items.findIndex((other) => equal(idOf(other), idOf(item)))
  const named = list.filter((item) => placeIn(order, item) >= 0).sort((a, b) => placeIn(order, a) - placeIn(order, b))
  const others = list.filter((item) => placeIn(order, item) < 0)
  const result: unknown[] = []
  while (named.length > 0 && others.length > 0) {
    const [before, after] = [placeIn(current, others[0]), placeIn(current, named[0])]
    result.push(before >= 0 && after >= 0 && before < after ? others.shift() : named.shift())
  }
  return [...result, ...named, ...others]
}

function elementOrders(patch: Members): Map<string, unknown[]> {
  const orders = new Map<string, unknown[]>()
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(SetOrder)) continue
    const order = patch[key]
    if (!Array.isArray(order)) throw refused(`expected a []interface {}, but received a ${goKind(order)}`)
    orders.set(key.slice(SetOrder.length + 1), order)
  }
  return orders
}

/** What a patch changes must stand in the same order as in the order that it sets. */
function checkOrder(patch: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): void {
  if (patch.length === 0 || order.length === 0) return
  const idOf = (item: unknown) => (mergeKey !== undefined && isRecord(item) ? getMember(item, mergeKey) : item)
  const items = patch.filter((item) => !isRecord(item) || !Object.hasOwn(item, Directive))
  let next = 0
  for (const place of order) if (next < items.length && equal(idOf(items[next]), idOf(place))) next++
  if (next < items.length) {
    throw refused(`The order in patch list:\n${goText(patch)}\n doesn't match ${SetOrder} list:\n${goText(order)}\n`)
  }
}

/** `$retainKeys` names all members that may stay. */
function retainKeys(object: Members, patch: Members): void {
  if (!Object.hasOwn(patch, RetainKeys)) return
  const keys = patch[RetainKeys]
  const isOrder = (key: string) => key === RetainKeys || key.startsWith(DeleteValues) || key.startsWith(SetOrder)
  const sets = Object.keys(patch).filter((key) => patch[key] !== null && !isOrder(key))
  if (!Array.isArray(keys) || sets.some((key) => !keys.includes(key))) throw badRequest('invalid patch format of retainKeys')
  for (const key of Object.keys(object)) if (!keys.includes(key)) delete object[key]
}

function deleteValues(object: Members, key: string, values: unknown): void {
  const list = getMember(object, key)
  if (!Array.isArray(values)) throw badRequest('invalid patch format of primitive list')
  if (Array.isArray(list))
    setMember(
      object,
      key,
      list.filter((value) => !values.some((gone) => equal(gone, value))),
    )
}

/** What a patch adds, without its orders and nulls. `undefined` for what is itself an order. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isRecord(value)) return value
  if (Object.hasOwn(value, Directive)) return undefined
  const plain: Members = {}
  for (const key of Object.keys(value)) {
    const isOrder = key === RetainKeys || key.startsWith(SetOrder) || key.startsWith(DeleteValues)
    const member = isOrder || value[key] === null ? undefined : withoutDirectives(value[key])
    if (member !== undefined) setMember(plain, key, member)
  }
  return plain
}

const refused = (message: string): StatusError => new StatusError('', message)
const unknownDirective = (patch: Members): StatusError =>
  refused(`unknown patch type: ${goText(patch[Directive])} in map: ${goText(patch)}`)

const goKind = (value: unknown): string =>
  isRecord(value) ? 'map[string]interface {}' : Array.isArray(value) ? '[]interface {}' : typeof value
