/**
 * Patches in answers of extensions, in the dialect that upstream understands: what an operation names must be there, parents
 * included. Pure. Upstream: internal/util/patch and evanphx/json-patch v5.
 */
import { applyJsonPatch, applyMergePatch, getMember, isRecord, type JsonPatchOperation, scanJSON } from '@capstan/kube'

/**
 * The document after a patch; `undefined` when the patch has nothing in it.
 *
 * @throws Error with upstream's text for what cannot be read or does not apply
 */
export function patchedDocument<T extends object>(document: T, patchType: string, text: string): T | undefined {
  switch (patchType) {
    case 'JSONPatch': {
      const operations = parsed(text, 'failed to apply patch: error decoding json patch (RFC6902)', Array.isArray)
      return operations.length === 0 ? undefined : applyOperations(document, operations as JsonPatchOperation[])
    }
    case 'JSONMergePatch': {
      if (text === '' || text === '{}') return undefined
      return applyMergePatch(document, parsed(text, 'failed to apply patch: error applying json merge patch (RFC7386)', isRecord))
    }
    default:
      throw new Error(`failed to apply patch: unknown patchType ${patchType}`)
  }
}

function parsed<T>(text: string, what: string, is: (value: unknown) => value is T): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (err) {
    // The words of Go, which do not change with the engine that runs this.
    throw new Error(`${what}: ${scanJSON(text).error ?? (err as Error).message}`, { cause: err })
  }
  if (!is(value)) throw new Error(`${what}: expected ${is === (Array.isArray as unknown) ? 'a list of operations' : 'an object'}`)
  return value
}

/**
 * The document after the operations.
 *
 * @throws Error with upstream's text for the operation that does not apply
 */
export function applyOperations<T extends object>(document: T, operations: readonly JsonPatchOperation[]): T {
  let patched = document
  for (const given of operations) {
    const one = { ...given, path: withoutNegative(patched, given.path) }
    const place = placeOf(patched, one.path)
    const problem = place === 'there' ? undefined : doesNotApply(one, place)
    if (problem) throw new Error(`failed to apply patch: error applying json patch (RFC6902): ${problem}`)
    try {
      patched = applyJsonPatch(patched, [one])
    } catch (err) {
      const { message } = ((err as Error).cause ?? err) as Error
      throw new Error(`failed to apply patch: error applying json patch (RFC6902): ${message}`, { cause: err })
    }
  }
  return patched
}

/** A negative index counts from the end of its list. Upstream: evanphx/json-patch v5, SupportNegativeIndices. */
function withoutNegative(document: unknown, path: string): string {
  if (!/\/-\d/.test(path)) return path
  let at = document
  return path
    .split('/')
    .map((token, index) => {
      if (index === 0) return token
      const known = Array.isArray(at) && /^-\d+$/.test(token) ? String(at.length + Number(token)) : token
      at = memberOf(at, known.replaceAll('~1', '/').replaceAll('~0', '~'))
      return known
    })
    .join('/')
}

type Place = 'there' | 'absent' | 'noParent'

function placeOf(document: unknown, path: string): Place {
  const tokens = path
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = tokens.pop()
  let parent = document
  for (const token of tokens) parent = memberOf(parent, token)
  if (last === undefined || (!isRecord(parent) && !Array.isArray(parent))) return 'noParent'
  return memberOf(parent, last) === undefined ? 'absent' : 'there'
}

const memberOf = (value: unknown, token: string): unknown =>
  Array.isArray(value) ? value[Number(token)] : isRecord(value) ? getMember(value, token) : undefined

/** Upstream: evanphx/json-patch v5. */
function doesNotApply({ op, path }: JsonPatchOperation, place: 'absent' | 'noParent'): string | undefined {
  if (place === 'noParent')
    return `${op} operation does not apply: doc is missing path: ${op === 'replace' ? path : JSON.stringify(path)}: missing value`
  if (op === 'replace') return `replace operation does not apply: doc is missing key: ${path}: missing value`
  if (op === 'remove')
    return `error in remove for path: '${path}': unable to remove nonexistent key: ${path.split('/').at(-1)}: missing value`
  return undefined
}
