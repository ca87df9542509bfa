/** Sprig's functions on strings. Upstream: Masterminds/sprig v3, strings.go. */
import { checkSize, limited, text } from '../format.ts'
import { quotedGo } from '@capstan/kube'
import type { TemplateFunction, Value } from '../value.ts'
import { byteLength, byteSlice, goFunction, mapOf, variadic } from '../value.ts'
import { isNil, stringOf, stringsOf } from './convert.ts'

const onString = (change: (text: string) => Value): TemplateFunction => goFunction(['string'], change)

export const stringFunctions: Readonly<Record<string, TemplateFunction>> = {
  hello: goFunction([], () => 'Hello!'),
  trim: onString(trimSpace),
  nospace: onString((value) => {
    const bytes = bytesOf(value)
    const kept = bytes.replace(/[\t-\r \u0085\u00a0]/g, '')
    return kept.length === bytes.length ? value : kept
  }),
  initials: onString(
    (value) =>
      bytesOf(value)
        .match(/(?<=^|[\t-\r \u0085\u00a0])[^\t-\r \u0085\u00a0]/g)
        ?.join('') ?? '',
  ),
  trimAll: goFunction(['string', 'string'], (set, value) => trimCharacters(value, set)),
  trimall: goFunction(['string', 'string'], (set, value) => trimCharacters(value, set)),
  trimPrefix: goFunction(['string', 'string'], (prefix, value) =>
    value.startsWith(prefix) ? value.slice(prefix.length) : value,
  ),
  trimSuffix: goFunction(['string', 'string'], (suffix, value) =>
    suffix !== '' && value.endsWith(suffix) ? value.slice(0, -suffix.length) : value,
  ),
  hasPrefix: goFunction(['string', 'string'], (prefix, value) => value.startsWith(prefix)),
  hasSuffix: goFunction(['string', 'string'], (suffix, value) => value.endsWith(suffix)),
  contains: goFunction(['string', 'string'], (substring, value) => value.includes(substring)),
  replace: goFunction(['string', 'string', 'string'], (from, to, value) => value.replaceAll(from, () => to)),
  repeat: goFunction(['int', 'string'], (count, value) => {
    if (count < 0n) throw new Error('strings: negative Repeat count')
    checkSize(byteLength(value) * Number(count))
    return value.repeat(Number(count))
  }),
  substr: goFunction(['int', 'int', 'string'], (from, to, value) => {
    const length = BigInt(byteLength(value))
    if (from < 0n) {
      if (to < 0n) throw outOfRange(`[:${to}]`)
      if (to > length) throw outOfRange(`[:${to}] with length ${length}`)
      return byteSlice(value, 0, Number(to))
    }
    const end = to < 0n || to > length ? length : to
    if (from > end) throw outOfRange(`[${from}:${end}]`)
    return byteSlice(value, Number(from), Number(end))
  }),
  trunc: goFunction(['int', 'string'], (count, value) => {
    const length = byteLength(value)
    if (count < 0n) return length + Number(count) > 0 ? byteSlice(value, length + Number(count)) : value
    return byteSlice(value, 0, Number(count))
  }),
  indent: goFunction(['int', 'string'], (width, value) => indentLines(Number(width), value)),
  nindent: goFunction(['int', 'string'], (width, value) => `\n${indentLines(Number(width), value)}`),
  quote: variadic([], 'any', (...values) =>
    values
      .filter((value) => !isNil(value))
      .map((value) => quotedGo(stringOf(value)))
      .join(' '),
  ),
  squote: variadic([], 'any', (...values) =>
    values
      .filter((value) => !isNil(value))
      .map((value) => `'${text(value)}'`)
      .join(' '),
  ),
  cat: variadic([], 'any', (...values) =>
    values
      .filter((value) => !isNil(value))
      .map(text)
      .join(' '),
  ),
  plural: goFunction(['string', 'string', 'int'], (singular, pluralForm, count) => (count === 1n ? singular : pluralForm)),
  toString: goFunction(['any'], stringOf),
  toStrings: goFunction(['any'], stringsOf),
  join: goFunction(['string', 'any'], (separator, values) => limited(stringsOf(values).join(separator))),
  split: goFunction(['string', 'string'], (separator, value) => numberedMap(splitText(value, separator))),
  splitList: goFunction(['string', 'string'], (separator, value) => splitText(value, separator)),
  splitn: goFunction(['string', 'int', 'string'], (separator, count, value) =>
    numberedMap(splitText(value, separator, Number(count))),
  ),
}

/** Go's error for the slice of a text with the given bounds. */
const outOfRange = (bounds: string): Error => new Error(`runtime error: slice bounds out of range ${bounds}`)

/** Returns a text with one character for each byte, because upstream reads bytes as characters in some functions. */
const bytesOf = (value: string): string => Buffer.from(value).toString('latin1')

function trimSpace(value: string): string {
  const start = value.search(/\P{White_Space}/u)
  if (start < 0) return ''
  let end = value.length
  while (/\p{White_Space}/u.test(value[end - 1]!)) end--
  return value.slice(start, end)
}

function trimCharacters(value: string, set: string): string {
  const chars = Array.from(value)
  while (chars.length > 0 && set.includes(chars[0]!)) chars.shift()
  while (chars.length > 0 && set.includes(chars.at(-1)!)) chars.pop()
  return chars.join('')
}

function indentLines(width: number, value: string): string {
  if (width < 0) throw new Error('strings: negative Repeat count')
  checkSize(width * value.split('\n').length)
  const pad = ' '.repeat(width)
  return pad + value.replaceAll('\n', `\n${pad}`)
}

/** Splits a text into at most `count` parts; the last part contains the remaining text. A negative count means no limit. */
function splitText(value: string, separator: string, count = -1): string[] {
  const parts = separator === '' ? Array.from(value) : value.split(separator)
  if (count < 0 || parts.length <= count) return parts
  return count === 0 ? [] : [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)]
}

const numberedMap = (values: readonly string[]) => mapOf(values.map((value, index) => [`_${index}`, value]))
