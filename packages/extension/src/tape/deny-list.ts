/**
 * Redacts tapes (recorded hook calls). The list of all rules is in docs/reference/tapes.md: add a new rule there too, and test it with a
 * new canary (planted secret) in deny-list.test.ts.
 */
import { isUtf8 } from 'node:buffer'
import { isRecord, setMember } from '@capstan/kube'
import { isSecretName } from './secret-names.ts'
import { Redacted, withoutSecrets } from './secret-text.ts'

/**
 * Returns a copy of the JSON value without the secrets that the rules detect. Types are kept: strings stay strings. Base64 that contains a
 * secret stays base64, except in a field whose whole value is secret. Idempotent.
 */
export const redact = <T>(value: T): T => redactValue(value, 0) as T

/** Returns a text without the secrets that the rules detect. Parses a text that is JSON as a whole, and decodes base64 in a text. */
export const redactText = (text: string): string => redactTextAt(text, 0)

/** Maximum number of nested encodings, each of which is JSON in a string or base64. Deeper values are redacted as a whole. */
const MaxDepth = 4

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redactTextAt(value, depth)
  if (Array.isArray(value)) return redactList(value, depth)
  return isRecord(value) ? redactObject(value, depth) : value
}

function redactObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  const clean: Record<string, unknown> = {}
  for (const key of Object.keys(object)) {
    const value = object[key]
    setMember(clean, redactTextAt(key, depth), redactMember(object, key, value, depth))
  }
  return clean
}

function redactMember(object: Record<string, unknown>, key: string, value: unknown, depth: number): unknown {
  if (key === 'openAPIV3Schema') return redactSchema(value, depth, false)
  if (key === 'schema' && isRecord(value) && isRecord(value.openAPIV3Schema)) {
    return { ...redactObject(value, depth), openAPIV3Schema: redactSchema(value.openAPIV3Schema, depth, isNamedAsSecret(object)) }
  }
  return isSecretName(key) || isSecretMember(object, key) ? redactAll(value) : redactValue(value, depth)
}

/** Redacts values in a schema, such as defaults; all of them if `isSecret`. Core must still be able to decode the schema. */
function redactSchema(schema: unknown, depth: number, isSecret: boolean): unknown {
  if (!isRecord(schema)) return isSecret ? redactAll(schema) : redactValue(schema, depth)
  const clean: Record<string, unknown> = {}
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (isSecretMember(schema, key)) setMember(clean, key, redactAll(value))
    else if (key === 'default' || key === 'example' || key === 'enum')
      setMember(clean, key, isSecret ? redactAll(value) : redactValue(value, depth))
    else if (key === 'items' || key === 'additionalProperties') setMember(clean, key, redactSchema(value, depth, isSecret))
    else if (key === 'properties' && isRecord(value)) {
      const properties = Object.entries(value).map(([name, one]) => [
        name,
        redactSchema(one, depth, isSecret || isSecretName(name)),
      ])
      setMember(clean, key, Object.fromEntries(properties))
    } else setMember(clean, redactTextAt(key, depth), redactMember(schema, key, value, depth))
  }
  return clean
}

/** Whether a member is secret because of other members of its object. */
function isSecretMember(object: Record<string, unknown>, key: string): boolean {
  switch (key) {
    case 'data':
    case 'stringData':
      return object.kind === 'Secret'
    case 'items':
      return object.kind === 'SecretList'
    case 'users':
      return object.kind === 'Config'
    case 'value':
    case 'values':
    case 'content':
    case 'contents':
      return isNamedAsSecret(object)
    default:
      return false
  }
}

/**
 * Whether the object names its value as a secret: `{name: dbPassword, value}` of variables and environments;
 * `{op, path: /spec/token, value}` of patches; `{path: ca.key, content}` of files.
 */
const isNamedAsSecret = ({ name, key, path }: Record<string, unknown>): boolean =>
  [name, key].some((one) => typeof one === 'string' && isSecretName(one)) ||
  (typeof path === 'string' && path.split('/').some((step) => isSecretName(step.replaceAll('~1', '/'))))

/** Redacts a list. A list of strings may be a text in lines: if it contains a private key, all its strings are redacted. */
function redactList(list: readonly unknown[], depth: number): unknown[] {
  const isText = list.length > 1 && list.every((item) => typeof item === 'string')
  if (isText && /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY/.test(list.join('\n'))) return list.map(() => Redacted)
  return list.map((item) => redactValue(item, depth))
}

/** Redacts all numbers and all strings that are not empty in the value, and keeps their types. */
function redactAll(value: unknown): unknown {
  if (typeof value === 'string') return value === '' ? '' : Redacted
  if (typeof value === 'number') return 0
  if (Array.isArray(value)) return value.map(redactAll)
  if (!isRecord(value)) return value
  const clean: Record<string, unknown> = {}
  for (const key of Object.keys(value)) setMember(clean, redactText(key), redactAll(value[key]))
  return clean
}

function redactTextAt(text: string, depth: number): string {
  const json = documentIn(text)
  if (json !== undefined) {
    if (depth >= MaxDepth) return Redacted
    const original = JSON.stringify(json)
    const cleaned = JSON.stringify(redactValue(json, depth + 1))
    return cleaned === original ? text : cleaned
  }
  return withoutSecrets(text)
    .replace(wrapped, (run) => redactBase64(run, depth))
    .replace(unbroken, (run) => redactBase64(run, depth))
}

/** Parses a text that is a JSON object, list or string; returns `undefined` for every other text. */
function documentIn(text: string): unknown {
  if (!/^\s*[{["]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Base64 with line breaks, as in PEM and MIME. */
const wrapped = /(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60,}[ \t]*\r?\n[ \t]*)+[A-Za-z0-9+/]{4,}={0,2}/g
const unbroken = /[A-Za-z0-9+/_-]{16,}={0,2}/g

function redactBase64(run: string, depth: number): string {
  // The beginning of gzip data: compressed data cannot be searched.
  if (run.startsWith('H4sI')) return base64Of(Redacted)
  const text = textIn(run)
  if (text === undefined) return hidesSecret(run, depth) ? base64Of(Redacted) : run
  if (depth >= MaxDepth) return base64Of(Redacted)
  const clean = redactTextAt(text, depth + 1)
  return clean === text ? run : base64Of(clean)
}

/**
 * Whether a run of base64 characters contains the encoded header of a private key, or an encoded secret that starts at the second, third
 * or fourth character. The characters before the secret may be the end of a path or of an escaped line break.
 */
const hidesSecret = (run: string, depth: number): boolean =>
  keyFragments.some((fragment) => run.includes(fragment)) ||
  [1, 2, 3].some((start) => {
    const text = textIn(run.slice(start))
    return text !== undefined && (depth >= MaxDepth || redactTextAt(text, depth + 1) !== text)
  })

const base64Of = (text: string): string => Buffer.from(text).toString('base64')

/** Decodes base64; returns `undefined` when it does not contain text. */
function textIn(run: string): string | undefined {
  const bytes = Buffer.from(run, 'base64')
  if (!isUtf8(bytes)) return undefined
  const text = bytes.toString()
  // oxlint-disable-next-line no-control-regex -- control characters indicate binary data
  return /[\0-\x08\x0e-\x1f]/.test(text) ? undefined : text
}

/** Base64 fragments of a private key's header at the three possible alignments. */
const keyFragments: readonly string[] = [0, 1, 2].map((offset) => {
  const text = 'PRIVATE KEY-----'
  const encoded = base64Of('\0'.repeat(offset) + text)
  return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + text.length) * 8) / 6))
})
