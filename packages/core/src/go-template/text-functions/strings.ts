/** Sprig's functions on strings. Upstream: Masterminds/sprig v3, strings.go. */
import { checkSize, limited, quote, text } from '../format.ts'
import type { TemplateFunction, Value } from '../value.ts'
import { byteLength, byteSlice, goFunction, mapOf, variadic } from '../value.ts'
import { isNil, stringOf, stringsOf } from './convert.ts'

const onString = (change: (text: string) => Value): TemplateFunction => goFunction(['string'], change)

export const stringFunctions: Readonly<Record<string, TemplateFunction>> = {
  hello: goFunction([], () => 'Hello!'),
  trim: onString((value) => value.trim()),
  upper: onString((value) => value.toUpperCase()),
  lower: onString((value) => value.toLowerCase()),
  title: onString((value) => value.replace(/(?<![\p{L}\p{N}_])\p{Ll}/gu, (letter) => letter.toUpperCase())),
  untitle: onString((value) => value.replace(/(?<!\S)\S/gu, (letter) => letter.toLowerCase())),
  nospace: onString((value) => value.replace(/\s/gu, '')),
  initials: onString((value) =>
    value
      .split(/\s+/u)
      .map((word) => Array.from(word)[0] ?? '')
      .join(''),
  ),
  swapcase: onString((value) =>
    value.replace(/\p{L}/gu, (letter) => (letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase())),
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
    const length = byteLength(value)
    if (from < 0n) return byteSlice(value, 0, Number(to))
    return byteSlice(value, Number(from), to < 0n || to > BigInt(length) ? length : Number(to))
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
      .map((value) => quote(stringOf(value)))
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
