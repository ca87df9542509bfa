/** Writes and reads the elements of DER (X.690) that certificates consist of. */
import { appendAll } from '../lists.ts'

/** Encodes one element from its tag and content. */
export const element = (tag: number, ...contents: readonly Uint8Array[]): Buffer => elementOf(tag, contents)

function elementOf(tag: number, contents: readonly Uint8Array[]): Buffer {
  const length = contents.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Buffer.from([tag, ...lengthOf(length)]), ...contents])
}

/** Encodes a length: below 128 in one byte; otherwise one byte with the number of length bytes, then the length bytes. */
function lengthOf(length: number): number[] {
  if (length < 0x80) return [length]
  const bytes: number[] = []
  for (let remaining = length; remaining > 0; remaining = Math.floor(remaining / 256)) bytes.unshift(remaining % 256)
  return [0x80 | bytes.length, ...bytes]
}

/** Encodes a SEQUENCE from its encoded elements. */
export const sequence = (...parts: readonly Uint8Array[]): Buffer => element(0x30, ...parts)
/** Like `sequence`, but takes the elements as an array. */
export const sequenceOf = (parts: readonly Uint8Array[]): Buffer => elementOf(0x30, parts)
export const set = (...parts: readonly Uint8Array[]): Buffer => element(0x31, ...parts)
export const octets = (content: Uint8Array): Buffer => element(0x04, content)
export const boolean = (value: boolean): Buffer => element(0x01, Buffer.from([value ? 0xff : 0]))
export const utf8 = (text: string): Buffer => element(0x0c, Buffer.from(text, 'utf8'))
export const nullElement: Buffer = element(0x05)

/** Encodes a BIT STRING. The last `unused` bits of `content` do not belong to it. */
export const bits = (content: Uint8Array, unused = 0): Buffer => element(0x03, Buffer.from([unused]), content)

/** Encodes a non-negative integer of any size from its bytes, most significant first. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const digits = bytes.subarray(start)
  return digits[0]! >= 0x80 ? element(0x02, Buffer.from([0]), digits) : element(0x02, digits)
}

/** Encodes an object identifier, such as 2.5.4.3. */
export function identifier(text: string): Buffer {
  const [first = 0, second = 0, ...furtherArcs] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const arc of furtherArcs) {
    const groups = [arc & 0x7f]
    for (let remaining = arc >>> 7; remaining > 0; remaining >>>= 7) groups.unshift(0x80 | (remaining & 0x7f))
    appendAll(bytes, groups)
  }
  return element(0x06, Buffer.from(bytes))
}

/** Encodes a time in whole seconds. Years from 1950 to 2049 have two digits, others four (RFC 5280, 4.1.2.5). */
export function time(milliseconds: number): Buffer {
  const text = `${new Date(milliseconds).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  const isShort = text.slice(0, 4) >= '1950' && text.slice(0, 4) < '2050'
  return isShort ? element(0x17, Buffer.from(text.slice(2), 'latin1')) : element(0x18, Buffer.from(text, 'latin1'))
}

export interface Element {
  readonly tag: number
  readonly content: Buffer
  /** The encoded element, with tag and length. */
  readonly encoded: Buffer
}

/**
 * Decodes consecutive elements, but not their contents: a SEQUENCE becomes one element, whose `content` is still encoded.
 * @throws Error when the bytes do not consist of complete elements
 */
export function elements(bytes: Buffer): Element[] {
  const decoded: Element[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at]!
    const head = bytes[at + 1] ?? 0
    const count = head < 0x80 ? 0 : head & 0x7f
    const start = at + 2 + count
    // DER has no indefinite length, whose head is 0x80.
    if (head === 0x80 || count > 4 || start > bytes.length) throw new Error('malformed DER: invalid length')
    const end = start + (count === 0 ? head : bytes.readUIntBE(at + 2, count))
    if (end > bytes.length) throw new Error('malformed DER: an element is longer than the bytes')
    decoded.push({ tag, content: bytes.subarray(start, end), encoded: bytes.subarray(at, end) })
    at = end
  }
  return decoded
}
