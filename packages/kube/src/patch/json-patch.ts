/** JSON Patch, RFC 6902, as lenient as a real API server. */
import { atOnce, type Work } from '../clock.ts'
import { appendAll } from '../lists.ts'
import { jsonTypeName } from '../go-text.ts'
import { writeJSON } from '../json-text.ts'
import type { JsonPatchOperation } from '../client.ts'
import { StatusError, badRequest } from '../errors.ts'
import type { Json } from '../json.ts'
import { MaxObjects, measureJSON } from '../json-scan.ts'
import { draft, drafting, equal, getMember, isRecord, setMember } from '../json.ts'

/** Upstream: limit of operations in one patch. */
export const MaxJsonPatchOperations = 10_000

/**
 * Parses a request body as a JSON Patch.
 *
 * @throws StatusError BadRequest when the body is not a list of objects or nulls, or when `op`, `path` or `from` is neither a
 * string, null nor absent;
 * RequestEntityTooLarge for too many operations
 */
export function parseJsonPatch(body: unknown): readonly JsonPatchOperation[] {
  if (!Array.isArray(body)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonTypeName(body)} into Go value of type []handlers.jsonPatchOp`,
    )
  }
  // Upstream: a null operation decodes without error, but cannot be applied.
  const invalidOperation = body.find((operation) => !isRecord(operation) && operation !== null)
  if (invalidOperation !== undefined) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${jsonTypeName(invalidOperation)} into Go value of type handlers.jsonPatchOp`,
    )
  }
  for (const operation of body as readonly (Record<string, unknown> | null)[]) {
    for (const member of ['op', 'path', 'from']) {
      const value = operation?.[member] ?? ''
      if (typeof value === 'string') continue
      const goField = `Go struct field jsonPatchOp.${member} of type string`
      throw badRequest(`error decoding patch: json: cannot unmarshal ${jsonTypeName(value)} into ${goField}`)
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
 * Applies the operations in order, all or none, and returns the result. `document` does not change.
 *
 * Upstream: `replace` of a missing member adds it, and text before the first `/` of a path is ignored.
 *
 * @throws StatusError Invalid when an operation cannot be applied; its `cause` names the operation and the reason
 */
export const applyJsonPatch = <T>(document: T, operations: readonly JsonPatchOperation[]): T =>
  atOnce(applyingJsonPatch(document, operations))

/** Like `applyJsonPatch`, as long work that yields before each operation: an operation on a long list moves all its items. */
export function* applyingJsonPatch<T>(document: T, operations: readonly JsonPatchOperation[]): Work<T> {
  // The root is one level above the document, so that operations on the whole document change a member of the root.
  const root: Record<string, unknown> = { document: yield* drafting(document) }
  const copies = { charactersLeft: MaxCopied, objectsLeft: MaxObjects }
  for (const [index, operation] of operations.entries()) {
    yield
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

/** Reason why an operation cannot be applied. */
class PatchError extends Error {
  override readonly name = 'PatchError'
}

/**
 * Maximum total length of the JSON that all copies of a patch add, because each copy can double the size of an object. Upstream counts bytes;
 * this module counts UTF-16 units.
 */
const MaxCopied = 3 * 1024 * 1024

function apply(
  root: Record<string, unknown>,
  operation: JsonPatchOperation,
  copies: { charactersLeft: number; objectsLeft: number },
): void {
  switch (operation.op) {
    case 'add':
      return locate(root, operation.path).add(draft(operation.value ?? null))
    case 'replace':
      return locate(root, operation.path).replace(draft(operation.value ?? null))
    case 'remove':
      return locate(root, operation.path).remove()
    case 'test': {
      const actual = locate(root, operation.path).get()
      if (!equal(actual ?? null, operation.value ?? null)) throw new PatchError(`the value is ${writeJSON(actual)}`)
      return
    }
    case 'copy': {
      const value = valueAt(root, operation.from)
      const json = writeJSON(value)
      copies.charactersLeft -= json.length
      copies.objectsLeft -= measureJSON(json).objects
      if (copies.charactersLeft < 0) throw new PatchError(`the copied values are longer than ${MaxCopied} characters in total`)
      if (copies.objectsLeft < 0)
        throw new PatchError(`the copied values have more than ${MaxObjects} objects and lists in total`)
      return locate(root, operation.path).add(draft(value))
    }
    case 'move': {
      const value = valueAt(root, operation.from)
      if (isInside(operation.path, operation.from)) throw new PatchError('a value cannot move into itself')
      locate(root, operation.from).remove()
      return locate(root, operation.path).add(value)
    }
    default:
      throw new PatchError('the operation is unknown')
  }
}

const isInside = (path: string, container: string): boolean =>
  typeof path === 'string' && path !== container && `${path}/`.startsWith(`${container}/`)

function valueAt(root: Record<string, unknown>, from: string): unknown {
  const value = locate(root, from).get()
  if (value === undefined) throw new PatchError(`there is nothing at ${JSON.stringify(from)}`)
  return value
}

/** Location in the document, with or without a value. */
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
  const parsed = /^-?\d+$/.test(token) ? Number(token) : Number.NaN
  const index = parsed < 0 ? parsed + max + 1 : parsed
  if (!(index >= 0 && index <= max))
    throw new PatchError(`${JSON.stringify(token)} is not an index of a list of length ${list.length}`)
  return index
}

/**
 * Returns a patch that changes `from` to `to`, with few operations. A member that is an object in both values, or a list in both, is changed part
 * by part, not replaced, except a member with an empty name. An item of a list is changed part by part, or removed and added if this takes fewer
 * operations. The operations on members are in alphabetical order of their names, independent of the order of the members in the two values.
 */
export const diffJson = (from: Json, to: Json): JsonPatchOperation[] => diff(from, to, { pairs: MaxPairs })

/** Number of pairs of list items that may still be compared. When it is used up, items of further lists are compared by index. */
interface Budget {
  pairs: number
}
const MaxPairs = 100_000

/** Returns the operations that change `from` to `to`, with paths relative to the two values. */
function diff(from: unknown, to: unknown, budget: Budget): JsonPatchOperation[] {
  if (equal(from, to)) return []
  if (Array.isArray(from) && Array.isArray(to)) return diffItems(from, to, budget)
  if (isRecord(from) && isRecord(to)) return diffMembers(from, to, budget)
  return [{ op: 'replace', path: '', value: to as Json }]
}

const withPathPrefix = (token: string | number, operations: readonly JsonPatchOperation[]): JsonPatchOperation[] =>
  operations.map((operation) => ({ ...operation, path: `/${token}${operation.path}` }))

function diffMembers(from: Record<string, unknown>, to: Record<string, unknown>, budget: Budget): JsonPatchOperation[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].sort().flatMap((key) => {
    const [before, after] = [getMember(from, key), getMember(to, key)]
    const token = key.replaceAll('~', '~0').replaceAll('/', '~1')
    if (before !== undefined && after !== undefined) {
      // Upstream applies patches of extensions with evanphx/json-patch v5, which does not find paths below a member with an empty name.
      if (key === '') return equal(before, after) ? [] : [{ op: 'replace', path: '/', value: after as Json }]
      return withPathPrefix(token, diff(before, after, budget))
    }
    if (after !== undefined) return [{ op: 'add', path: `/${token}`, value: after as Json }]
    return before === undefined ? [] : [{ op: 'remove', path: `/${token}` }]
  })
}

/** Keeps equal items at both ends; aligns the items between them so that, within the budget, the fewest operations result. Uses no `move` and no `copy`. */
function diffItems(from: readonly unknown[], to: readonly unknown[], budget: Budget): JsonPatchOperation[] {
  let start = 0
  while (start < from.length && start < to.length && equal(from[start], to[start])) start++
  let end = 0
  while (end < Math.min(from.length, to.length) - start && equal(from[from.length - 1 - end], to[to.length - 1 - end])) end++
  const [old, next] = [from.slice(start, from.length - end), to.slice(start, to.length - end)]

  const operations: JsonPatchOperation[] = []
  let position = start
  for (const step of alignItems(old, next, budget)) {
    if (step.kind === 'keep') appendAll(operations, withPathPrefix(position++, step.operations))
    else if (step.kind === 'remove') operations.push({ op: 'remove', path: `/${position}` })
    else operations.push({ op: 'add', path: `/${position++}`, value: step.item as Json })
  }
  return operations
}

/** Change of one item. Steps are in the order of both lists. */
type Step =
  | { readonly kind: 'keep'; readonly operations: readonly JsonPatchOperation[] }
  | { readonly kind: 'remove' }
  | { readonly kind: 'add'; readonly item: unknown }

function alignItems(old: readonly unknown[], next: readonly unknown[], budget: Budget): Step[] {
  budget.pairs -= old.length * next.length
  if (budget.pairs < 0) return alignByIndex(old, next, budget)

  const diffs = old.map((before) => next.map((after) => diff(before, after, budget)))
  // cost[i][j]: the fewest operations that change the items of `old` from index i on into the items of `next` from index j on.
  const cost = Array.from({ length: old.length + 1 }, (): number[] => [])
  for (let i = old.length; i >= 0; i--) {
    for (let j = next.length; j >= 0; j--) {
      if (i === old.length || j === next.length) cost[i]![j] = old.length - i + (next.length - j)
      else cost[i]![j] = Math.min(diffs[i]![j]!.length + cost[i + 1]![j + 1]!, 1 + cost[i + 1]![j]!, 1 + cost[i]![j + 1]!)
    }
  }
  const steps: Step[] = []
  for (let i = 0, j = 0; i < old.length || j < next.length; ) {
    const operations = diffs[i]?.[j]
    if (operations && cost[i]![j] === operations.length + cost[i + 1]![j + 1]!) {
      steps.push({ kind: 'keep', operations })
      i++
      j++
    } else if (i < old.length && cost[i]![j] === 1 + cost[i + 1]![j]!) {
      steps.push({ kind: 'remove' })
      i++
    } else steps.push({ kind: 'add', item: next[j++] })
  }
  return steps
}

const alignByIndex = (old: readonly unknown[], next: readonly unknown[], budget: Budget): Step[] => [
  ...old.map(
    (before, index): Step =>
      index < next.length ? { kind: 'keep', operations: diff(before, next[index], budget) } : { kind: 'remove' },
  ),
  ...next.slice(old.length).map((item): Step => ({ kind: 'add', item })),
]
