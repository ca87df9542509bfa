/**
 * Applies JSON patches of ClusterClasses and of extensions, with the semantics and error texts of evanphx/json-patch v5.9, which upstream
 * uses: the parent of a target must exist, for `remove` and `replace` also the target itself, and a negative index counts from the end.
 * `answer-patch.test.ts` lists the differences; `packages/api/testdata/patches.json` was recorded with that library. Pure.
 */
import { draft, equal, getMember, type JsonPatchOperation, setMember, writeJSON } from '@capstan/kube'

/**
 * Maximum total length of the JSON of the copies in a patch, in UTF-16 units, because each copy can double a document. Upstream has no such
 * limit; kube-apiserver limits the copies in JSON patches of clients to the same number of bytes.
 */
const MaxCopied = 3 * 1024 * 1024

/**
 * Returns the document after all operations; `document` itself is not changed.
 *
 * @throws Error that describes the first operation that does not apply
 */
export function applyOperations<T extends object>(document: T, operations: readonly JsonPatchOperation[]): T {
  const root = { document: draft(document) as unknown }
  const copied = { characters: 0 }
  for (const operation of operations) {
    const problem = apply(root, operation, copied)
    if (problem) throw new Error(`failed to apply patch: error applying json patch (RFC6902): ${problem}`)
  }
  return root.document as T
}

interface Root {
  document: unknown
}

/** Applies an operation. Returns an error text if it fails. */
function apply(root: Root, operation: JsonPatchOperation, copied: { characters: number }): string | undefined {
  const { op, path } = operation
  switch (op) {
    case 'add': {
      const value = draft<unknown>(operation.value ?? null)
      if (path === '') return replaceDocument(root, value)
      const place = locate(root, path)
      if (!place) return missingValue(`add operation does not apply: doc is missing path: ${JSON.stringify(path)}`)
      return withContext(`error in add for path: '${path}'`, insert(place, value))
    }
    case 'remove': {
      const place = locate(root, path)
      if (!place) return missingValue(`remove operation does not apply: doc is missing path: ${JSON.stringify(path)}`)
      return withContext(`error in remove for path: '${path}'`, remove(place))
    }
    case 'replace': {
      const value = draft<unknown>(operation.value ?? null)
      if (path === '') return replaceDocument(root, value)
      const place = locate(root, path)
      if (!place) return missingValue(`replace operation does not apply: doc is missing path: ${path}`)
      if (read(place).problem) return missingValue(`replace operation does not apply: doc is missing key: ${path}`)
      put(place, value)
      return undefined
    }
    case 'test':
      return test(root, path, operation.value ?? null)
    case 'move': {
      const from = locate(root, operation.from)
      if (!from) return missingValue(`move operation does not apply: doc is missing from path: ${operation.from}`)
      const { value, problem } = read(from)
      if (problem) return `error in move for path: '${from.key}': ${problem}`
      remove(from)
      const to = locate(root, path)
      if (!to) return missingValue(`move operation does not apply: doc is missing destination path: ${path}`)
      return withContext(`error in move for path: '${path}'`, insert(to, value))
    }
    case 'copy': {
      const { value, problem } = readSource(root, operation.from)
      if (problem) return problem
      const to = locate(root, path)
      if (!to) return missingValue(`copy operation does not apply: doc is missing destination path: ${path}`)
      copied.characters += writeJSON(value).length
      if (copied.characters > MaxCopied) {
        return `Unable to complete the copy, the accumulated size increase of copy is ${copied.characters}, exceeding the limit ${MaxCopied}`
      }
      return withContext('error while adding value during copy', insert(to, draft(value)))
    }
    default:
      return `Unexpected kind: ${String(op)}`
  }
}

const missingValue = (problem: string): string => `${problem}: missing value`
const withContext = (context: string, problem: string | undefined): string | undefined => problem && `${context}: ${problem}`

function replaceDocument(root: Root, value: unknown): string | undefined {
  if (typeof value === 'object' && value !== null) return void (root.document = value)
  return `the document cannot become ${JSON.stringify(value)}: expected an object`
}

function readSource(root: Root, from: string): Reading {
  if (from === '') return { value: root.document }
  const place = locate(root, from)
  if (!place) return { problem: missingValue(`copy operation does not apply: doc is missing from path: ${JSON.stringify(from)}`) }
  const { value, problem } = read(place)
  return problem ? { problem: `error in copy for from: '${from}': ${problem}` } : { value }
}

function test(root: Root, path: string, expected: unknown): string | undefined {
  let actual = root.document
  if (path !== '') {
    const place = locate(root, path)
    if (!place) return missingValue(`test operation does not apply: is missing path: ${path}`)
    const { value = null, problem } = read(place)
    // For a test, a missing member of an object equals null.
    if (problem && Array.isArray(place.parent)) return `error in test for path: '${path}': ${problem}`
    actual = value
  }
  return equal(actual, expected) ? undefined : `testing value ${path} failed: test failed`
}

/** The position of a value in its parent. The value itself may be absent. */
interface Place {
  readonly parent: Record<string, unknown> | unknown[]
  readonly key: string
}

/** Returns the position at a path; `undefined` when the parent does not exist. */
function locate(root: Root, path: string): Place | undefined {
  const tokens = path.split('/')
  // Text before the first slash is ignored. A path without a slash has no parent. The empty path means the same as `/` here, because callers
  // for which it means the whole document do not call `locate` with it.
  if (tokens.length < 2 && path !== '') return undefined
  let parent = root.document
  for (const token of tokens.slice(1, -1)) {
    // As in upstream, a path may end with an empty name, but cannot go through a member with an empty name.
    parent = isParent(parent) && token !== '' ? read({ parent, key: unescaped(token) }).value : undefined
  }
  return isParent(parent) ? { parent, key: unescaped(tokens.at(-1)!) } : undefined
}

const isParent = (value: unknown): value is Place['parent'] => typeof value === 'object' && value !== null

const unescaped = (token: string): string => token.replaceAll('~1', '/').replaceAll('~0', '~')

/** A value, or the error text when it cannot be read. */
interface Reading {
  readonly value?: unknown
  readonly problem?: string
}

function read({ parent, key }: Place): Reading {
  if (!Array.isArray(parent)) {
    if (!Object.hasOwn(parent, key)) return { problem: missingValue(`unable to get nonexistent key: ${key}`) }
    return { value: getMember(parent, key) }
  }
  const index = indexOf(key, parent.length)
  return typeof index === 'string' ? { problem: index } : { value: parent[index] }
}

function put({ parent, key }: Place, value: unknown): void {
  if (Array.isArray(parent)) parent[indexOf(key, parent.length) as number] = value
  else setMember(parent, key, value)
}

function insert({ parent, key }: Place, value: unknown): string | undefined {
  if (!Array.isArray(parent)) {
    setMember(parent, key, value)
    return undefined
  }
  if (key === '-') return void parent.push(value)
  if (!isInteger(key)) return `value was not a proper array index: '${key}': ${notAnInteger(key)}`
  // The index may also be one past the last item.
  const index = indexOf(key, parent.length + 1)
  return typeof index === 'string' ? index : void parent.splice(index, 0, value)
}

function remove({ parent, key }: Place): string | undefined {
  if (!Array.isArray(parent)) {
    if (!Object.hasOwn(parent, key)) return missingValue(`unable to remove nonexistent key: ${key}`)
    delete parent[key]
    return undefined
  }
  const index = indexOf(key, parent.length)
  return typeof index === 'string' ? index : void parent.splice(index, 1)
}

/** Parses a key as an index into `count` positions. Returns an error text when the key is invalid. */
function indexOf(key: string, count: number): number | string {
  if (!isInteger(key)) return notAnInteger(key)
  const index = Number(key)
  if (index >= count || index < -count) return `Unable to access invalid index: ${index}: invalid index referenced`
  return index < 0 ? index + count : index
}

const isInteger = (key: string): boolean => /^[+-]?\d+$/.test(key)
const notAnInteger = (key: string): string => `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`
