/** JSON Patch, RFC 6902, with the leniencies that a real API server has. */
import { appendAll } from '../lists.ts'
import { jsonTypeName } from '../go-text.ts'
import { writeJSON } from '../json-text.ts'
import type { JsonPatchOperation } from '../client.ts'
import { StatusError, badRequest } from '../errors.ts'
import type { Json } from '../json.ts'
import { draft, equal, getMember, isRecord, setMember } from '../json.ts'

/** Upstream: a server takes no more operations than this in one patch. */
export const MaxJsonPatchOperations = 10_000

/**
 * A request body as the operations of a patch.
 *
 * @throws StatusError BadRequest for what is not a list of objects, RequestEntityTooLarge for too many of them
 */
export function parseJsonPatch(body: unknown): readonly JsonPatchOperation[] {
  if (!Array.isArray(body)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonTypeName(body)} into Go value of type []handlers.jsonPatchOp`,
    )
  }
  // Upstream: a null operation is decoded, and does not apply.
  const odd = body.find((operation) => !isRecord(operation) && operation !== null)
  if (odd !== undefined) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonTypeName(odd)} into Go value of type handlers.jsonPatchOp`,
    )
  }
  for (const operation of body as readonly (Record<string, unknown> | null)[]) {
    for (const member of ['op', 'path', 'from']) {
      const value = operation?.[member] ?? ''
      if (typeof value === 'string') continue
      const where = `Go struct field jsonPatchOp.${member} of type string`
      throw badRequest(`error decoding patch: json: cannot unmarshal ${jsonTypeName(value)} into ${where}`)
    }
  }
  if (body.length > MaxJsonPatchOperations) {
    throw new StatusError(
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${MaxJsonPatchOperations}, got ${body.length}`,
    )
  }
  return body.map((operation: JsonPatchOperation | null) => operation ?? ({} as JsonPatchOperation))
}

/**
 * The document after the operations, in their order: all of them, or none. `document` itself stays as it is.
 *
 * Upstream: `replace` of a member that is not there adds it, and what precedes the first `/` of a path is not looked at.
 *
 * @throws StatusError Invalid when an operation does not apply; its `cause` says which one and why
 */
export function applyJsonPatch<T>(document: T, operations: readonly JsonPatchOperation[]): T {
  // One level above the document, so that the whole of it is a member like any other.
  const root: Record<string, unknown> = { document: draft(document) }
  const copies = { left: MaxCopied }
  for (const [index, operation] of operations.entries()) {
    try {
      apply(root, operation, copies)
    } catch (cause) {
      if (!(cause instanceof PatchError)) throw cause
      cause.message = `operation ${index} (${JSON.stringify(operation.op)} ${JSON.stringify(operation.path)}): ${cause.message}`
      throw new StatusError('Invalid', 'the server rejected our request due to an error in our request', { details: {}, cause })
    }
  }
  return root.document as T
}

/** Why an operation does not apply. */
class PatchError extends Error {
  override readonly name = 'PatchError'
}

/** Upstream: what all copies of a patch may add together, since a few can double an object each. */
const MaxCopied = 3 * 1024 * 1024

function apply(root: Record<string, unknown>, operation: JsonPatchOperation, copies: { left: number }): void {
  switch (operation.op) {
    case 'add':
      return locate(root, operation.path).add(draft(operation.value ?? null))
    case 'replace':
      return locate(root, operation.path).replace(draft(operation.value ?? null))
    case 'remove':
      return locate(root, operation.path).remove()
    case 'test': {
      const found = locate(root, operation.path).get()
      if (!equal(found ?? null, operation.value ?? null)) throw new PatchError(`the value is ${writeJSON(found)}`)
      return
    }
    case 'copy': {
      const value = existing(root, operation.from)
      copies.left -= writeJSON(value).length
      if (copies.left < 0) throw new PatchError(`what is copied is larger than ${MaxCopied} together`)
      return locate(root, operation.path).add(draft(value))
    }
    case 'move': {
      const value = existing(root, operation.from)
      if (isInside(operation.path, operation.from)) throw new PatchError('a value cannot move into itself')
      locate(root, operation.from).remove()
      return locate(root, operation.path).add(value)
    }
    default:
      throw new PatchError('there is no such operation')
  }
}

const isInside = (path: string, place: string): boolean =>
  typeof path === 'string' && path !== place && `${path}/`.startsWith(`${place}/`)

function existing(root: Record<string, unknown>, from: string): unknown {
  const found = locate(root, from).get()
  if (found === undefined) throw new PatchError(`there is nothing at ${JSON.stringify(from)}`)
  return found
}

/** A place in the document where a value is or could be. */
interface Place {
  get(): unknown
  add(value: unknown): void
  replace(value: unknown): void
  remove(): void
}

function locate(root: Record<string, unknown>, path: string): Place {
  if (typeof path !== 'string') throw new PatchError('the path is not a string')
  const tokens = path === '' ? [] : path.split('/').slice(1).map(unescapeToken)
  if (path !== '' && tokens.length === 0) throw new PatchError('the path does not begin with "/"')
  const last = tokens.pop()
  if (last === undefined) return memberPlace(root, 'document')
  let parent: unknown = root.document
  for (const token of tokens) {
    if (Array.isArray(parent)) parent = parent[indexIn(parent, token, parent.length - 1)]
    else parent = isRecord(parent) ? getMember(parent, token) : undefined
    if (typeof parent !== 'object' || parent === null) throw new PatchError(`there is nothing at ${JSON.stringify(token)}`)
  }
  if (Array.isArray(parent)) return itemPlace(parent, last)
  if (!isRecord(parent)) throw new PatchError('the document has no members')
  return memberPlace(parent, last)
}

const unescapeToken = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~')

function memberPlace(parent: Record<string, unknown>, key: string): Place {
  return {
    get: () => getMember(parent, key),
    add: (value) => setMember(parent, key, value),
    replace: (value) => setMember(parent, key, value),
    remove() {
      if (!Object.hasOwn(parent, key)) throw new PatchError(`there is nothing at ${JSON.stringify(key)}`)
      delete parent[key]
    },
  }
}

function itemPlace(parent: unknown[], token: string): Place {
  const index = () => indexIn(parent, token, parent.length - 1)
  return {
    get: () => parent[index()],
    add: (value) => void parent.splice(token === '-' ? parent.length : indexIn(parent, token, parent.length), 0, value),
    replace: (value) => void (parent[index()] = value),
    remove: () => void parent.splice(index(), 1),
  }
}

/** Upstream: a negative index counts from the end. */
function indexIn(list: readonly unknown[], token: string, max: number): number {
  const given = /^-?\d+$/.test(token) ? Number(token) : Number.NaN
  const index = given < 0 ? given + max + 1 : given
  if (!(index >= 0 && index <= max)) throw new PatchError(`${JSON.stringify(token)} is no index of a list of ${list.length}`)
  return index
}

/**
 * The operations that make `to` of `from`: as few as there can be without replacing what is still there. Members come in
 * alphabetical order. The same for the same values.
 */
export const diffJson = (from: Json, to: Json): JsonPatchOperation[] => diff(from, to, { pairs: MaxPairs })

/** How many pairs of items are compared in all: lists beyond that are compared place by place. */
interface Budget {
  pairs: number
}
const MaxPairs = 100_000

/** Paths of the operations begin at the values. */
function diff(from: unknown, to: unknown, budget: Budget): JsonPatchOperation[] {
  if (equal(from, to)) return []
  if (Array.isArray(from) && Array.isArray(to)) return diffItems(from, to, budget)
  if (isRecord(from) && isRecord(to)) return diffMembers(from, to, budget)
  return [{ op: 'replace', path: '', value: to as Json }]
}

const below = (token: string | number, operations: readonly JsonPatchOperation[]): JsonPatchOperation[] =>
  operations.map((operation) => ({ ...operation, path: `/${token}${operation.path}` }))

function diffMembers(from: Record<string, unknown>, to: Record<string, unknown>, budget: Budget): JsonPatchOperation[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].sort().flatMap((key) => {
    const [before, after] = [getMember(from, key), getMember(to, key)]
    const token = key.replaceAll('~', '~0').replaceAll('/', '~1')
    if (before !== undefined && after !== undefined) {
      // What Go programs apply patches with finds nothing below a member without a name: it is replaced as a whole.
      if (key === '') return equal(before, after) ? [] : [{ op: 'replace', path: '/', value: after as Json }]
      return below(token, diff(before, after, budget))
    }
    if (after !== undefined) return [{ op: 'add', path: `/${token}`, value: after as Json }]
    return before === undefined ? [] : [{ op: 'remove', path: `/${token}` }]
  })
}

/** Equal beginnings and ends stay as they are; of what is between them items are kept so that the fewest operations are left. */
function diffItems(from: readonly unknown[], to: readonly unknown[], budget: Budget): JsonPatchOperation[] {
  let start = 0
  while (start < from.length && start < to.length && equal(from[start], to[start])) start++
  let end = 0
  while (end < Math.min(from.length, to.length) - start && equal(from[from.length - 1 - end], to[to.length - 1 - end])) end++
  const [old, fresh] = [from.slice(start, from.length - end), to.slice(start, to.length - end)]

  const operations: JsonPatchOperation[] = []
  let at = start
  for (const step of alignment(old, fresh, budget)) {
    if (step.kind === 'keep') appendAll(operations, below(at++, step.operations))
    else if (step.kind === 'remove') operations.push({ op: 'remove', path: `/${at}` })
    else operations.push({ op: 'add', path: `/${at++}`, value: step.item as Json })
  }
  return operations
}

/** What becomes of an item, from the first to the last of both lists. */
type Step =
  | { readonly kind: 'keep'; readonly operations: readonly JsonPatchOperation[] }
  | { readonly kind: 'remove' }
  | { readonly kind: 'add'; readonly item: unknown }

function alignment(old: readonly unknown[], fresh: readonly unknown[], budget: Budget): Step[] {
  budget.pairs -= old.length * fresh.length
  if (budget.pairs < 0) return placeByPlace(old, fresh, budget)

  const kept = old.map((before) => fresh.map((after) => diff(before, after, budget)))
  // cost[i][j]: the fewest operations from the items of `old` after the first i to those of `fresh` after the first j.
  const cost = Array.from({ length: old.length + 1 }, (): number[] => [])
  for (let i = old.length; i >= 0; i--) {
    for (let j = fresh.length; j >= 0; j--) {
      if (i === old.length || j === fresh.length) cost[i]![j] = old.length - i + (fresh.length - j)
      else cost[i]![j] = Math.min(kept[i]![j]!.length + cost[i + 1]![j + 1]!, 1 + cost[i + 1]![j]!, 1 + cost[i]![j + 1]!)
    }
  }
  const steps: Step[] = []
  for (let i = 0, j = 0; i < old.length || j < fresh.length; ) {
    const operations = kept[i]?.[j]
    if (operations && cost[i]![j] === operations.length + cost[i + 1]![j + 1]!) {
      steps.push({ kind: 'keep', operations })
      i++
      j++
    } else if (i < old.length && cost[i]![j] === 1 + cost[i + 1]![j]!) {
      steps.push({ kind: 'remove' })
      i++
    } else steps.push({ kind: 'add', item: fresh[j++] })
  }
  return steps
}

const placeByPlace = (old: readonly unknown[], fresh: readonly unknown[], budget: Budget): Step[] => [
  ...old.map(
    (before, at): Step =>
      at < fresh.length ? { kind: 'keep', operations: diff(before, fresh[at], budget) } : { kind: 'remove' },
  ),
  ...fresh.slice(old.length).map((item): Step => ({ kind: 'add', item })),
]
