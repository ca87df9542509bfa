/**
 * Finds the end of a JSON value in bytes, and reports syntax errors with Go's texts. Except for an empty or truncated input, these texts
 * name the unexpected byte. Upstream: encoding/json, scanner, Go 1.26.
 */
import { WireError } from './wire-error.ts'

/** Maximum nesting of a value, as in Go. */
export const maxDepth = 10_000

/** Error texts for empty and truncated input: those of Go's stream decoder differ from those of its whole-text decoder. */
export interface EndErrors {
  readonly empty: string
  readonly truncated: string
}

/**
 * Returns the index after the first JSON value in `bytes`.
 *
 * @throws WireError for a syntax error in this value, for too deep nesting, and if there is no complete value
 */
export function endOfValue(bytes: Uint8Array, ending: EndErrors): number {
  const open: number[] = []
  let position = 0
  const unexpected = (where: string): WireError => {
    if (position < bytes.length) return new WireError(`invalid character ${quoteByte(bytes[position]!)} ${where}`)
    return new WireError(bytes.every(isSpace) ? ending.empty : ending.truncated)
  }
  const space = () => {
    while (isSpace(bytes[position])) position++
  }
  const digits = (where: string) => {
    if (!isDigit(bytes[position])) throw unexpected(where)
    while (isDigit(bytes[position])) position++
  }
  const number = () => {
    if (bytes[position] === Byte.minus) position++
    if (bytes[position] === Byte.zero) position++
    else digits('in numeric literal')
    if (bytes[position] === Byte.dot) {
      position++
      digits('after decimal point in numeric literal')
    }
    if (bytes[position] === Byte.e || bytes[position] === Byte.E) {
      position++
      if (bytes[position] === Byte.plus || bytes[position] === Byte.minus) position++
      digits('in exponent of numeric literal')
    }
  }
  const string = () => {
    const end = endOfPlainString(bytes, position)
    if (end !== undefined) {
      position = end
      return
    }
    for (position++; bytes[position] !== Byte.quote; position++) {
      const byte = bytes[position]
      if (byte === undefined || byte < 0x20) throw unexpected('in string literal')
      if (byte !== Byte.backslash) continue
      position++
      if (bytes[position] === Byte.u) {
        for (let i = 0; i < 4; i++) {
          position++
          if (!isHex(bytes[position])) throw unexpected('in \\u hexadecimal character escape')
        }
      } else if (!isEscape(bytes[position])) throw unexpected('in string escape code')
    }
    position++
  }
  const word = (text: string) => {
    for (let i = 0; i < text.length; i++, position++) {
      if (bytes[position] !== text.charCodeAt(i)) throw unexpected(`in literal ${text} (expecting '${text[i]}')`)
    }
  }
  const key = () => {
    space()
    if (bytes[position] !== Byte.quote) throw unexpected('looking for beginning of object key string')
    string()
    space()
    if (bytes[position] !== Byte.colon) throw unexpected('after object key')
    position++
  }

  for (;;) {
    space()
    const byte = bytes[position]
    if (byte === Byte.openObject || byte === Byte.openArray) {
      if (open.length === maxDepth) throw unexpected('exceeded max depth')
      position++
      space()
      const isEmpty = bytes[position] === closing(byte)
      if (!isEmpty) {
        open.push(byte)
        if (byte === Byte.openObject) key()
        continue
      }
      position++
    } else if (byte === Byte.quote) string()
    else if (byte === Byte.minus || isDigit(byte)) number()
    else if (byte === Byte.t) word('true')
    else if (byte === Byte.f) word('false')
    else if (byte === Byte.n) word('null')
    else throw unexpected('looking for beginning of value')

    // The value is complete; the enclosing values may also be complete.
    for (;;) {
      const holder = open.at(-1)
      if (holder === undefined) return position
      space()
      if (bytes[position] === Byte.comma) {
        position++
        if (holder === Byte.openObject) key()
        break
      }
      if (bytes[position] !== closing(holder)) {
        throw unexpected(holder === Byte.openObject ? 'after object key:value pair' : 'after array element')
      }
      position++
      open.pop()
    }
  }
}

/**
 * Returns the index after the string at `start` if the string is long (at least 32 bytes with the opening quote, without the closing
 * quote) and has no escapes or control characters; `undefined` for other strings, which are scanned byte by byte.
 */
export function endOfPlainString(bytes: Uint8Array, start: number): number | undefined {
  const quote = bytes.indexOf(Byte.quote, start + 1)
  if (quote - start < 32) return undefined
  return notPlain.test(Buffer.from(bytes.buffer, bytes.byteOffset + start, quote - start).toString('latin1'))
    ? undefined
    : quote + 1
}

// eslint-disable-next-line no-control-regex
const notPlain = /[\\\u0000-\u001f]/

/** Checks that only white space follows the value that ends at `end`. @throws WireError otherwise */
export function assertNothingAfter(bytes: Uint8Array, end: number): void {
  const trailing = bytes.subarray(end).find((byte) => !isSpace(byte))
  if (trailing !== undefined) throw new WireError(`invalid character ${quoteByte(trailing)} after top-level value`)
}

export const Byte = {
  quote: 0x22,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  zero: 0x30,
  colon: 0x3a,
  E: 0x45,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  e: 0x65,
  f: 0x66,
  n: 0x6e,
  t: 0x74,
  u: 0x75,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const

export const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39
const isHex = (byte: number | undefined): boolean =>
  byte !== undefined && (isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66))
const isEscape = (byte: number | undefined): boolean => byte !== undefined && '"\\/bfnrt'.includes(String.fromCharCode(byte))
const closing = (open: number): number => (open === Byte.openObject ? Byte.closeObject : Byte.closeArray)

/** Quotes a byte as Go does, as the character with that code point. */
function quoteByte(byte: number): string {
  const known = quoted[byte]
  if (known !== undefined) return `'${known}'`
  if (byte < 0x20 || byte === 0x7f) return `'\\x${byte.toString(16).padStart(2, '0')}'`
  const isPrinted = byte < 0x7f || (byte > 0xa0 && byte !== 0xad)
  return isPrinted ? `'${String.fromCharCode(byte)}'` : `'\\u00${byte.toString(16)}'`
}

const quoted: { readonly [byte: number]: string } = {
  0x07: '\\a',
  0x08: '\\b',
  0x09: '\\t',
  0x0a: '\\n',
  0x0b: '\\v',
  0x0c: '\\f',
  0x0d: '\\r',
  0x22: '"',
  0x27: "\\'",
  0x5c: '\\\\',
}
