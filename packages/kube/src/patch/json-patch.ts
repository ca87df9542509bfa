/** JSON Patch, RFC 6902, with the leniencies that a real API server has. */
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
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goType(body)} into Go value of type []handlers.jsonPatchOp`)
  }
  const odd = body.find((operation) => !isRecord(operation))
  if (odd !== undefined) {
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goType(odd)} into Go value of type handlers.jsonPatchOp`)
  }
  if (body.length > MaxJsonPatchOperations) {
    throw new StatusError(
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${MaxJsonPatchOperations}, got ${body.length}`,
    )
  }
  return body as JsonPatchOperation[]
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
      if (!equal(found ?? null, operation.value ?? null)) throw new PatchError(`the value is ${JSON.stringify(found)}`)
      return
    }
    case 'copy': {
      const value = existing(root, operation.from)
      copies.left -= JSON.stringify(value).length
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

/** How Go's decoder calls a JSON value. */
function goType(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (isRecord(value)) return 'object'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

/** The operations that make `to` of `from`: members in alphabetical order, of lists only what differs. */
export function diffJson(from: Json, to: Json): JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = []
  diff('', from, to, operations)
  return operations
}

function diff(path: string, from: unknown, to: unknown, operations: JsonPatchOperation[]): void {
  if (equal(from, to)) return
  if (Array.isArray(from) && Array.isArray(to)) diffItems(path, from, to, operations)
  else if (isRecord(from) && isRecord(to)) diffMembers(path, from, to, operations)
  else operations.push({ op: 'replace', path, value: to as Json })
}

function diffMembers(
  path: string,
  from: Record<string, unknown>,
  to: Record<string, unknown>,
  operations: JsonPatchOperation[],
): void {
  for (const key of [...new Set([...Object.keys(from), ...Object.keys(to)])].sort()) {
    const [before, after] = [getMember(from, key), getMember(to, key)]
    const place = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (before !== undefined && after !== undefined) diff(place, before, after, operations)
    else if (after !== undefined) operations.push({ op: 'add', path: place, value: after as Json })
    else if (before !== undefined) operations.push({ op: 'remove', path: place })
  }
}

/** Leaves the equal beginnings and ends alone; between them items are changed in place, then removed or added. */
function diffItems(path: string, from: readonly unknown[], to: readonly unknown[], operations: JsonPatchOperation[]): void {
  let start = 0
  while (start < from.length && start < to.length && equal(from[start], to[start])) start++
  let [fromEnd, toEnd] = [from.length, to.length]
  while (fromEnd > start && toEnd > start && equal(from[fromEnd - 1], to[toEnd - 1])) {
    fromEnd--
    toEnd--
  }
  const common = Math.min(fromEnd, toEnd)
  for (let index = start; index < common; index++) diff(`${path}/${index}`, from[index], to[index], operations)
  for (let index = fromEnd - 1; index >= common; index--) operations.push({ op: 'remove', path: `${path}/${index}` })
  for (let index = common; index < toEnd; index++)
    operations.push({ op: 'add', path: `${path}/${index}`, value: to[index] as Json })
}
