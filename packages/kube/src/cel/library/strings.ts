/** String functions beyond the standard of CEL. Upstream: cel-go's string extension, version 2. */
import type { Library } from '../signature.ts'
import { CelList, EvaluationError, type Value } from '../value.ts'
import { formatted } from './string-format.ts'
import { isPlainText, substring } from './text.ts'

/** Unicode white space, as Go's `strings.TrimSpace` removes it. */
const Blank = /[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

function trim(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && Blank.test(text[start]!)) start++
  while (end > start && Blank.test(text[end - 1]!)) end--
  return text.slice(start, end)
}

function indexOf(text: string, part: string, offset = 0n): bigint {
  const letters = charactersOf(text)
  if (offset < 0n || offset > BigInt(letters.length)) throw new EvaluationError(`index out of range: ${offset}`)
  const pattern = charactersOf(part)
  for (let at = Number(offset); at + pattern.length <= letters.length; at++) {
    if (pattern.every((letter, index) => letters[at + index] === letter)) return BigInt(at)
  }
  return -1n
}

function lastIndexOf(text: string, part: string, offset?: bigint): bigint {
  const letters = charactersOf(text)
  const pattern = charactersOf(part)
  if (offset !== undefined && (offset < 0n || offset > BigInt(letters.length))) {
    throw new EvaluationError(`index out of range: ${offset}`)
  }
  const from = Math.min(Number(offset ?? letters.length), letters.length - pattern.length)
  for (let at = from; at >= 0; at--) {
    if (pattern.every((letter, index) => letters[at + index] === letter)) return BigInt(at)
  }
  return -1n
}

const charactersOf = (text: string): readonly string[] => (isPlainText(text) ? text.split('') : Array.from(text))

function charAt(text: string, index: bigint): string {
  const letters = charactersOf(text)
  if (index < 0n || index > BigInt(letters.length)) throw new EvaluationError(`index out of range: ${index}`)
  return letters[Number(index)] ?? ''
}

/** Splits as Go's `strings.SplitN`: returns at most `limit` parts, or all parts when `limit` is negative. */
function split(text: string, separator: string, limit = -1n): CelList {
  if (limit === 0n) return new CelList([])
  const parts = separator === '' ? Array.from(text) : text.split(separator)
  if (limit < 0n || parts.length <= Number(limit)) return new CelList(parts)
  const firstParts = parts.slice(0, Number(limit) - 1)
  return new CelList([...firstParts, parts.slice(firstParts.length).join(separator)])
}

function replace(text: string, from: string, to: string, limit = -1n): string {
  let remaining = limit < 0n ? Number.POSITIVE_INFINITY : Number(limit)
  const maxReplacements = limit < 0n ? text.length + 1 : Math.min(text.length + 1, Number(limit))
  if (text.length + maxReplacements * to.length > 64 * 1024 * 1024) throw new EvaluationError('string is too long')
  if (from !== '') return text.replaceAll(from, (part) => (remaining-- > 0 ? to : part))
  // The empty string occurs before each character and at the end.
  let result = ''
  for (const letter of Array.from(text)) result += (remaining-- > 0 ? to : '') + letter
  return remaining > 0 ? result + to : result
}

function join(list: CelList, separator = ''): string {
  const parts = list.values()
  if (!parts.every((part) => typeof part === 'string')) throw new EvaluationError('no such overload')
  return parts.join(separator)
}

const Escapes: { readonly [letter: string]: string } = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}
const quoted = (text: string): string =>
  `"${text.toWellFormed().replaceAll(/["\\\p{Cc}]/gu, (letter) => Escapes[letter] ?? letter)}"`

export const strings: Library = {
  'string.charAt(int): string': charAt,
  'string.indexOf(string): int': indexOf,
  'string.indexOf(string, int): int': indexOf,
  'string.lastIndexOf(string): int': lastIndexOf,
  'string.lastIndexOf(string, int): int': lastIndexOf,
  'string.lowerAscii(): string': (text: string) => text.replaceAll(/[A-Z]+/g, (part) => part.toLowerCase()),
  'string.upperAscii(): string': (text: string) => text.replaceAll(/[a-z]+/g, (part) => part.toUpperCase()),
  'string.replace(string, string): string': replace,
  'string.replace(string, string, int): string': replace,
  'string.split(string): list<string>': split,
  'string.split(string, int): list<string>': split,
  'string.substring(int): string': substring,
  'string.substring(int, int): string': substring,
  'string.trim(): string': trim,
  'list<string>.join(): string': join,
  'list<string>.join(string): string': join,
  'strings.quote(string): string': quoted,
  'string.format(list<dyn>): string': (pattern: string, values: CelList) =>
    formatted(pattern, values.values() as readonly Value[]),
}
