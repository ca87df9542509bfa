/** The built-in functions of Go templates. Upstream: Go's text/template/funcs.go. */
import { sprint, sprintf, text } from './format.ts'
import type { TemplateFunction, Value } from './value.ts'
import { byteLength, byteSlice, goFunction, has, isMap, truth, typeName, variadic } from './value.ts'

export const builtinFunctions: Readonly<Record<string, TemplateFunction>> = {
  // Declared for the parser only: `execute.ts` implements these two, since they evaluate their arguments lazily.
  and: variadic(['any'], 'any', (first) => first),
  or: variadic(['any'], 'any', (first) => first),
  not: goFunction(['any'], (value) => !truth(value)),
  eq: variadic(['any'], 'any', (first, ...others) => {
    if (others.length === 0) throw new Error('missing argument for comparison')
    return others.some((other) => isEqual(first, other))
  }),
  ne: goFunction(['any', 'any'], (a, b) => !isEqual(a, b)),
  lt: goFunction(['any', 'any'], (a, b) => compare(a, b) < 0),
  le: goFunction(['any', 'any'], (a, b) => compare(a, b) <= 0),
  gt: goFunction(['any', 'any'], (a, b) => compare(a, b) > 0),
  ge: goFunction(['any', 'any'], (a, b) => compare(a, b) >= 0),
  len: goFunction(['any'], (value) => {
    if (typeof value === 'string') return BigInt(byteLength(value))
    if (Array.isArray(value)) return BigInt(value.length)
    if (value !== null && isMap(value)) return BigInt(Object.keys(value).length)
    throw new Error(value === null ? 'len of nil pointer' : `len of type ${typeName(value).replace(/^\*/, '')}`)
  }),
  index: variadic(['any'], 'any', (collection, ...keys) => {
    if (collection === null) throw new Error('index of untyped nil')
    return keys.reduce<Value>(itemAt, collection)
  }),
  slice: variadic(['any'], 'any', (sequence, ...bounds) => slice(sequence, bounds)),
  print: variadic([], 'any', (...values) => sprint(values)),
  printf: variadic(['string'], 'any', (format, ...values) => sprintf(format, values)),
  println: variadic([], 'any', (...values) => `${values.map(text).join(' ')}\n`),
  html: variadic([], 'any', (...values) => printed(values).replace(/["'&<>\0]/g, (char) => HtmlEscapes[char]!)),
  js: variadic([], 'any', (...values) => printed(values).replace(/[\\'"<>&=\p{Cc}]/gu, jsEscape)),
  urlquery: variadic([], 'any', (...values) =>
    encodeURIComponent(printed(values))
      .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%20', '+'),
  ),
  call: variadic(['any'], 'any', (callee) => {
    throw new Error(callee === null ? 'call of nil' : `non-function of type ${typeName(callee)}`)
  }),
}

/** Formats values as `print` does, but nil as `<no value>`. */
const printed = (values: readonly Value[]): string => sprint(values.map((value) => (isNil(value) ? '<no value>' : value)))

const isNil = (value: Value): value is null | undefined => value === null || value === undefined
const isBasic = (value: Value): boolean => !isNil(value) && typeof value !== 'object'

function isEqual(a: Value, b: Value): boolean {
  if (isNil(a) || isNil(b)) return isNil(a) && isNil(b)
  if (isBasic(a) && isBasic(b)) {
    if (typeof a !== typeof b) throw incompatible(a, b)
    return a === b
  }
  if (isBasic(a) !== isBasic(b)) throw incompatible(a, b)
  throw new Error(`non-comparable type ${text(a)}: ${typeName(a)}`)
}

function compare(a: Value, b: Value): number {
  for (const value of [a, b]) {
    if (!isBasic(value)) throw new Error(`invalid type for comparison`)
  }
  if (typeof a !== typeof b) throw incompatible(a, b)
  if (typeof a === 'boolean') throw new Error('invalid type for comparison')
  return a! < b! ? -1 : a! > b! ? 1 : 0
}

const incompatible = (a: Value, b: Value): Error =>
  new Error(`incompatible types for comparison: ${typeName(a)} and ${typeName(b)}`)

function itemAt(collection: Value, key: Value): Value {
  if (isNil(collection)) throw new Error('index of nil pointer')
  if (typeof collection === 'string') {
    const index = position(key, byteLength(collection))
    return BigInt(Buffer.from(collection)[index]!)
  }
  if (Array.isArray(collection)) return collection[position(key, collection.length)]
  if (!isMap(collection)) throw new Error(`can't index item of type ${typeName(collection)}`)
  if (isNil(key)) throw new Error('value is nil; should be of type string')
  if (typeof key !== 'string') throw new Error(`value has type ${typeName(key)}; should be string`)
  return has(collection, key) ? collection[key] : null
}

function position(key: Value, length: number): number {
  if (isNil(key)) throw new Error('cannot index slice/array with nil')
  if (typeof key !== 'bigint') throw new Error(`cannot index slice/array with type ${typeName(key)}`)
  if (key < 0n || key >= BigInt(length)) throw new Error(`index out of range: ${key}`)
  return Number(key)
}

function slice(sequence: Value, bounds: readonly Value[]): Value {
  if (isNil(sequence)) throw new Error('slice of untyped nil')
  if (bounds.length > 3) throw new Error(`too many slice indexes: ${bounds.length}`)
  if (typeof sequence === 'string' && bounds.length === 3) throw new Error('cannot 3-index slice a string')
  if (typeof sequence !== 'string' && !Array.isArray(sequence)) throw new Error(`can't slice item of type ${typeName(sequence)}`)
  const length = typeof sequence === 'string' ? byteLength(sequence) : sequence.length
  // A bound may equal the length.
  const [from = 0, to = length, capacity = length] = bounds.map((bound) => position(bound, length + 1))
  if (from > to) throw new Error(`invalid slice index: ${from} > ${to}`)
  if (to > capacity) throw new Error(`invalid slice index: ${to} > ${capacity}`)
  return typeof sequence === 'string' ? byteSlice(sequence, from, to) : sequence.slice(from, to)
}

const HtmlEscapes: Readonly<Record<string, string>> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\ufffd',
}

const jsEscape = (char: string): string => {
  if (char === '\\' || char === "'" || char === '"') return `\\${char}`
  return `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}
