/**
 * Finds the end of a JSON value in bytes and reports syntax errors with Go's texts, which name a byte. Upstream: encoding/json, scanner,
 * Go 1.26.
 */
import { WireError } from './wire-error.ts'

/** Deepest nesting of a value, as in Go. */
export const maxDepth = 10_000

/** Error texts for truncated input: Go's stream decoder and whole-text decoder differ. */
export interface EndingWords {
  readonly nothing: string
  readonly early: string
}

/**
 * Returns the index after the first JSON value in `bytes`.
 *
 * @throws WireError
 */
export function endOfValue(bytes: Uint8Array, ending: EndingWords): number {
  const open: number[] = []
  let at = 0
  const unexpected = (where: string): WireError => {
    if (at < bytes.length) return new WireError(`invalid character ${quoteByte(bytes[at]!)} ${where}`)
    return new WireError(bytes.every(isSpace) ? ending.nothing : ending.early)
  }
  const space = () => {
    while (isSpace(bytes[at])) at++
  }
  const digits = (where: string) => {
    if (!isDigit(bytes[at])) throw unexpected(where)
    while (isDigit(bytes[at])) at++
  }
  const number = () => {
    if (bytes[at] === Byte.minus) at++
    if (bytes[at] === Byte.zero) at++
    else digits('in numeric literal')
    if (bytes[at] === Byte.dot) {
      at++
      digits('after decimal point in numeric literal')
    }
    if (bytes[at] === Byte.e || bytes[at] === Byte.E) {
      at++
      if (bytes[at] === Byte.plus || bytes[at] === Byte.minus) at++
      digits('in exponent of numeric literal')
    }
  }
  const string = () => {
    const end = endOfPlainString(bytes, at)
    if (end !== undefined) {
      at = end
      return
    }
    for (at++; bytes[at] !== Byte.quote; at++) {
      const byte = bytes[at]
      if (byte === undefined || byte < 0x20) throw unexpected('in string literal')
      if (byte !== Byte.backslash) continue
      at++
      if (bytes[at] === Byte.u) {
        for (let i = 0; i < 4; i++) {
          at++
          if (!isHex(bytes[at])) throw unexpected('in \\u hexadecimal character escape')
        }
      } else if (!isEscape(bytes[at])) throw unexpected('in string escape code')
    }
    at++
  }
  const word = (text: string) => {
    for (let i = 0; i < text.length; i++, at++) {
      if (bytes[at] !== text.charCodeAt(i)) throw unexpected(`in literal ${text} (expecting '${text[i]}')`)
    }
  }
  const key = () => {
    space()
    if (bytes[at] !== Byte.quote) throw unexpected('looking for beginning of object key string')
    string()
    space()
    if (bytes[at] !== Byte.colon) throw unexpected('after object key')
    at++
  }

  for (;;) {
    space()
    const byte = bytes[at]
    if (byte === Byte.openObject || byte === Byte.openArray) {
      if (open.length === maxDepth) throw unexpected('exceeded max depth')
      at++
      space()
      const isEmpty = bytes[at] === closing(byte)
      if (!isEmpty) {
        open.push(byte)
        if (byte === Byte.openObject) key()
        continue
      }
      at++
    } else if (byte === Byte.quote) string()
    else if (byte === Byte.minus || isDigit(byte)) number()
    else if (byte === Byte.t) word('true')
    else if (byte === Byte.f) word('false')
    else if (byte === Byte.n) word('null')
    else throw unexpected('looking for beginning of value')

    // The value is complete; the enclosing ones may be as well.
    for (;;) {
      const holder = open.at(-1)
      if (holder === undefined) return at
      space()
      if (bytes[at] === Byte.comma) {
        at++
        if (holder === Byte.openObject) key()
        break
      }
      if (bytes[at] !== closing(holder)) {
        throw unexpected(holder === Byte.openObject ? 'after object key:value pair' : 'after array element')
      }
      at++
      open.pop()
    }
  }
}

/** Returns the index after a long string without escapes at `at`; `undefined` for others, which are scanned byte by byte. */
export function endOfPlainString(bytes: Uint8Array, at: number): number | undefined {
  const quote = bytes.indexOf(Byte.quote, at + 1)
  if (quote - at < 32) return undefined
  return notPlain.test(Buffer.from(bytes.buffer, bytes.byteOffset + at, quote - at).toString('latin1')) ? undefined : quote + 1
}

// eslint-disable-next-line no-control-regex
const notPlain = /[\\\u0000-\u001f]/

/** @throws WireError when anything but white space follows */
export function assertNothingAfter(bytes: Uint8Array, end: number): void {
  const more = bytes.subarray(end).find((byte) => !isSpace(byte))
  if (more !== undefined) throw new WireError(`invalid character ${quoteByte(more)} after top-level value`)
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
