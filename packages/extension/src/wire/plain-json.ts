/**
 * Decodes plain JSON texts with JSON.parse. A text is plain if its form ensures that Go and JavaScript decode it in the same way: for
 * example, encoding its value again must give the same text. Nearly all texts that encoders write are plain. The decoder in `wire.ts`
 * decodes all other texts by Go's rules. JSON.parse takes a twentieth of that decoder's time.
 */
import type { JSONSchema } from '@capstan/kube'
import { isRecord, setMember } from '@capstan/kube'
import { isBase64 } from './go-bytes.ts'
import { byFoldedName, foldKey } from './go-names.ts'
import { strictText } from './go-string.ts'
import { maxDepth } from './json-syntax.ts'
import { addZeroValues, resolveRef } from './zero-values.ts'

/** Returns the value of a plain text that matches the schema; `undefined` for any other text. */
export function decodePlain(bytes: Uint8Array, root: JSONSchema): Record<string, unknown> | undefined {
  const text = strictText(bytes)
  // An escaped surrogate may be a lone one, which Go decodes differently.
  if (text === undefined || text.includes('\\ud')) return undefined
  try {
    const parsed = JSON.parse(text) as unknown
    if (!isRecord(parsed) || !survivesRoundTrip(parsed, text.trimEnd())) return undefined
    // Each level of nesting needs two characters, so a shorter text cannot be too deep.
    if (text.length > 2 * maxDepth && isTooDeep(parsed)) return undefined
    const decoded = valueOf(parsed, root, root)
    return isRecord(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

/** Whether encoding the value results in the same text. It does not for duplicate members and unusual forms of numbers. */
function survivesRoundTrip(value: unknown, text: string): boolean {
  const spelled = JSON.stringify(value)
  return spelled === text || escapeAsGo(spelled) === text
}

/** Escapes characters with a meaning in HTML or JavaScript, as Go's encoder does. Upstream: encoding/json, HTMLEscape. */
const escapeAsGo = (text: string): string =>
  text.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

function isTooDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === maxDepth) return true
    level = level.flatMap((one) => Object.values(one as object).filter((member) => typeof member === 'object' && member !== null))
  }
  return false
}

/** Marks a value that the decoder in `wire.ts` must decode or reject. */
const notPlain = Symbol('not plain')

function valueOf(parsed: unknown, schemaOrRef: JSONSchema, root: JSONSchema): unknown {
  if (parsed === null) return notPlain
  const schema = resolveRef(schemaOrRef, root)
  const { type, format } = schema
  if (type === undefined || schema['x-kubernetes-preserve-unknown-fields'] === true) {
    return type === 'object' && !isRecord(parsed) ? notPlain : parsed
  }
  switch (type) {
    case 'object':
      if (!isRecord(parsed)) return notPlain
      return typeof schema.additionalProperties === 'object'
        ? mapOf(parsed, schema.additionalProperties, root)
        : objectOf(parsed, schema, root)
    case 'array':
      return Array.isArray(parsed) ? listOf(parsed, schema.items ?? {}, root) : notPlain
    case 'string':
      return typeof parsed === 'string' && (format !== 'byte' || isBase64(parsed)) ? parsed : notPlain
    case 'integer':
      return Number.isSafeInteger(parsed) && (format !== 'int32' || parsed === ((parsed as number) | 0)) ? parsed : notPlain
    case 'number':
      return typeof parsed === 'number' ? parsed : notPlain
    case 'boolean':
      return typeof parsed === 'boolean' ? parsed : notPlain
  }
}

function objectOf(parsed: Record<string, unknown>, schema: JSONSchema, root: JSONSchema): unknown {
  const properties = schema.properties ?? {}
  const decoded: Record<string, unknown> = {}
  let names: ReadonlyMap<string, string> | undefined
  for (const key of Object.keys(parsed)) {
    if (Object.hasOwn(properties, key)) {
      const value = valueOf(parsed[key], properties[key]!, root)
      if (value === notPlain) return notPlain
      decoded[key] = value
    } else if ((names ??= byFoldedName(properties)).has(foldKey(key))) return notPlain
  }
  return addZeroValues(decoded, schema, root)
}

function mapOf(parsed: Record<string, unknown>, schema: JSONSchema, root: JSONSchema): unknown {
  const decoded: Record<string, unknown> = {}
  for (const key of Object.keys(parsed)) {
    const value = valueOf(parsed[key], schema, root)
    if (value === notPlain) return notPlain
    setMember(decoded, key, value)
  }
  return decoded
}

function listOf(parsed: readonly unknown[], items: JSONSchema, root: JSONSchema): unknown {
  const decoded: unknown[] = []
  for (const element of parsed) {
    const value = valueOf(element, items, root)
    if (value === notPlain) return notPlain
    decoded.push(value)
  }
  return decoded
}
