/**
 * Applies the patches that responses of extensions contain, as upstream does; `answer-patch.test.ts` lists the differences. Pure.
 * Upstream: internal/util/patch, evanphx/json-patch v5.9.
 */
import { applyMergePatch, equal, isRecord, type JsonPatchOperation, setMember } from '@capstan/kube'
import { applyOperations } from './patch-dialect.ts'

/**
 * Returns the patched document; `undefined` for a JSON patch without operations, and for a merge patch that is empty or `{}`.
 *
 * @throws Error when the patch is invalid or does not apply; usually with upstream's text
 */
export function patchedDocument<T extends object>(document: T, patchType: string, text: string): T | undefined {
  switch (patchType) {
    case 'JSONPatch': {
      const operations = parseOperations(text)
      return operations.length === 0 ? undefined : applyOperations(document, operations)
    }
    case 'JSONMergePatch': {
      if (text === '' || text === '{}') return undefined
      const patch = parseOrThrow(text, () => new Error(`${cannotMerge}: Invalid JSON Patch`))
      if (!isRecord(patch)) throw new Error(`${cannotMerge}: expected an object`)
      return applyMergePatch(document, withoutNullsInLists(patch))
    }
    default:
      throw new Error(`failed to apply patch: unknown patchType ${patchType}`)
  }
}

/**
 * Returns the template `document` with spec, labels and annotations of `patched`; changes of other parts are ignored. If a patch has removed
 * one of these three parts, the part keeps its value. Upstream: applyPatchToRequest of core/reconcilers/topology/cluster/patches, v1.14.
 *
 * @returns the template, and in `ignored` the paths of the ignored changes
 */
export function copyPatchedParts<T extends object>(document: T, patched: T): { document: T; ignored: string[] } {
  const [before, after] = [document as Members, patched as Members]
  const [oldMetadata, metadata] = [membersOf(before.metadata), membersOf(after.metadata)]
  const { labels, annotations } = metadata
  const changed = (from: Members, to: Members, patchable: readonly string[], prefix: string): string[] =>
    [...new Set([...Object.keys(from), ...Object.keys(to)])]
      .filter((name) => !equal(from[name], to[name]))
      .filter((name) => !patchable.includes(name) || to[name] === undefined)
      .map((name) => `${prefix}${name}`)
  return {
    document: {
      ...document,
      ...(after.spec === undefined ? {} : { spec: after.spec }),
      metadata: {
        ...oldMetadata,
        ...(labels === undefined ? {} : { labels }),
        ...(annotations === undefined ? {} : { annotations }),
      },
    },
    ignored: [
      ...changed({ ...before, metadata: undefined }, { ...after, metadata: undefined }, ['spec'], ''),
      ...changed(oldMetadata, metadata, ['labels', 'annotations'], 'metadata.'),
    ],
  }
}

type Members = Readonly<Record<string, unknown>>

const membersOf = (value: unknown): Members => (isRecord(value) ? value : {})

const cannotMerge = 'failed to apply patch: error applying json merge patch (RFC7386)'
const cannotDecode = (reason: string): Error => new Error(`failed to apply patch: error decoding json patch (RFC6902): ${reason}`)

function parseOperations(text: string): JsonPatchOperation[] {
  const patch = parseOrThrow(text, () => cannotDecode('invalid state detected')) ?? []
  if (!Array.isArray(patch)) throw cannotDecode(`json: cannot unmarshal ${goKind(patch)} into Go value of type jsonpatch.Patch`)
  const invalidOperation: unknown = patch.find((operation) => operation !== null && !isRecord(operation))
  if (invalidOperation !== undefined)
    throw cannotDecode(`json: cannot unmarshal ${goKind(invalidOperation)} into Go value of type jsonpatch.Operation`)
  for (const operation of patch as (Record<string, unknown> | null)[]) {
    const problem = operationProblem(operation ?? {})
    if (problem) throw cannotDecode(`invalid operation ${operationText(operation)}: ${problem}`)
  }
  return patch as JsonPatchOperation[]
}

function parseOrThrow(text: string, problem: () => Error): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw problem()
  }
}

function operationProblem(operation: Record<string, unknown>): string | undefined {
  const { op, value } = operation
  if (typeof op !== 'string' || !['add', 'remove', 'replace', 'move', 'copy', 'test'].includes(op)) return 'unsupported operation'
  const path = textProblem(operation, 'path', 'operation missing path field')
  if (path) return path
  if (op === 'move' || op === 'copy') return textProblem(operation, 'from', 'operation, missing from field')
  if (value === undefined && (op === 'add' || op === 'replace')) {
    return "failed to decode 'value': operation, missing value field: missing value"
  }
  return undefined
}

function textProblem(operation: Record<string, unknown>, field: string, missing: string): string | undefined {
  const value = operation[field] ?? null
  if (value === null) return `failed to decode '${field}': ${missing}: missing value`
  if (typeof value === 'string') return undefined
  return `failed to decode '${field}': json: cannot unmarshal ${goKind(value)} into Go value of type string`
}

/** Encodes an operation as JSON with the keys in alphabetical order, as Go encodes a map. */
const operationText = (operation: Record<string, unknown> | null): string =>
  JSON.stringify(operation && Object.fromEntries(Object.entries(operation).sort(([a], [b]) => (a < b ? -1 : 1))))

function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

/**
 * Removes null members of objects in lists, as upstream does. RFC 7386 keeps them, because a merge patch replaces a list as a whole.
 */
function withoutNullsInLists(value: unknown, inList = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNullsInLists(item, true))
  if (!isRecord(value)) return value
  const members: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (!inList || member !== null) setMember(members, name, withoutNullsInLists(member, inList))
  }
  return members
}
