/**
 * Sprig's functions that encode, decode, decrypt and compute checksums. Upstream: sprig v3, strings.go and crypto.go; Go's encoding/base32 and
 * base64.
 */
import { createDecipheriv, createHash } from 'node:crypto'
import type { TemplateFunction, Value } from '../value.ts'
import { byteLength, goFunction } from '../value.ts'

const onString = (change: (text: string) => Value): TemplateFunction => goFunction(['string'], change)
const hash = (algorithm: string) => onString((value) => createHash(algorithm).update(value).digest('hex'))

export const encodingFunctions: Readonly<Record<string, TemplateFunction>> = {
  // As upstream, `b64dec` and `b32dec` return the error message of an invalid text as their result.
  b64enc: onString((value) => Buffer.from(value).toString('base64')),
  b64dec: onString((value) => base64Error(value) ?? Buffer.from(value, 'base64').toString()),
  b32enc: onString(encodeBase32),
  b32dec: onString((value) => {
    const text = value.replace(/[\r\n]/g, '')
    const position = base32Error(text)
    return position === undefined ? decodeBase32(text) : `illegal base32 data at input byte ${position}`
  }),
  sha1sum: hash('sha1'),
  sha256sum: hash('sha256'),
  sha512sum: hash('sha512'),
  adler32sum: onString(adler32),
  decryptAES: goFunction(['string', 'string'], decrypt),
}

/** Returns Go's message for invalid base64; `undefined` for valid base64, in which line breaks are allowed. */
function base64Error(text: string): string | undefined {
  const position = base64ErrorPosition(text)
  return position === undefined ? undefined : `illegal base64 data at input byte ${position}`
}

function base64ErrorPosition(text: string): number | undefined {
  const [data] = /^[A-Za-z0-9+/\r\n]*/.exec(text)!
  const inGroup = data.replace(/[\r\n]/g, '').length % 4
  if (data.length === text.length) return inGroup === 0 ? undefined : text.length - inGroup
  const [padding, second] = /^=[\r\n]*(=[\r\n]*)?/.exec(text.slice(data.length)) ?? []
  if (padding === undefined || inGroup < 2) return data.length
  const end = data.length + padding.length
  if (inGroup === 2 && second === undefined) return end === text.length ? end : end - 1
  if (inGroup === 3 && second !== undefined) return end - second.length
  return end === text.length ? undefined : end
}

const Base32Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Regroups numbers of `from` bits as numbers of `to` bits. Returns the complete ones, and the remaining bits. */
function regroup(numbers: Iterable<number>, from: number, to: number): { complete: number[]; remainder: number; bits: number } {
  const complete: number[] = []
  let remainder = 0
  let bits = 0
  for (const number of numbers) {
    remainder = (remainder << from) | number
    for (bits += from; bits >= to; bits -= to) complete.push((remainder >> (bits - to)) & ((1 << to) - 1))
    remainder &= (1 << bits) - 1
  }
  return { complete, remainder, bits }
}

function encodeBase32(value: string): string {
  const { complete, remainder, bits } = regroup(Buffer.from(value), 8, 5)
  if (bits > 0) complete.push(remainder << (5 - bits))
  const text = complete.map((index) => Base32Alphabet[index]).join('')
  return text.padEnd(Math.ceil(text.length / 8) * 8, '=')
}

function decodeBase32(text: string): string {
  const [data] = /^[A-Z2-7]*/.exec(text)!
  const indexes = Array.from(data, (char) => Base32Alphabet.indexOf(char))
  return Buffer.from(regroup(indexes, 5, 8).complete).toString()
}

/** Returns the position that Go reports for invalid base32, in bytes; `undefined` for valid texts. */
function base32Error(text: string): number | undefined {
  const length = byteLength(text)
  const data = /^[A-Z2-7]*/.exec(text)![0].length
  const inGroup = data % 8
  if (data === length) return inGroup === 0 ? undefined : data - inGroup
  if (text[data] !== '=' || inGroup < 2 || length - data > 8) return data
  if (length - data < 8 - inGroup) return length
  const padding = /^=*/.exec(text.slice(data))![0].length
  if (padding < 8 - inGroup) return data + padding - 1
  // No number of bytes is encoded as three or six characters.
  return inGroup === 3 || inGroup === 6 ? data : undefined
}

/** Returns the Adler-32 checksum (RFC 1950) as a decimal number. */
function adler32(value: string): string {
  const Modulus = 65_521
  let sum = 1
  let sumOfSums = 0
  for (const byte of Buffer.from(value)) {
    sum = (sum + byte) % Modulus
    sumOfSums = (sumOfSums + sum) % Modulus
  }
  return String(sumOfSums * 0x10000 + sum)
}

const BlockSize = 16

/** Decrypts the base64 text that sprig's `encryptAES` returns: an initialization vector, then blocks of AES-256 in CBC mode, padded. */
function decrypt(password: string, encrypted: string): string {
  if (encrypted === '') return ''
  const problem = base64Error(encrypted)
  if (problem !== undefined) throw new Error(problem)
  const bytes = Buffer.from(encrypted, 'base64')
  if (bytes.length < BlockSize) {
    throw new Error(
      `runtime error: slice bounds out of range [:${BlockSize}] with capacity ${Math.floor(encrypted.length / 4) * 3}`,
    )
  }
  if (bytes.length === BlockSize) throw new Error('runtime error: index out of range [-1]')
  if (bytes.length % BlockSize !== 0) throw new Error('crypto/cipher: input not full blocks')
  const key = Buffer.alloc(32)
  Buffer.from(password).copy(key)
  const decipher = createDecipheriv('aes-256-cbc', key, bytes.subarray(0, BlockSize)).setAutoPadding(false)
  const decrypted = Buffer.concat([decipher.update(bytes.subarray(BlockSize)), decipher.final()])
  const length = decrypted.length - decrypted.at(-1)!
  if (length < 0) throw new Error(`runtime error: slice bounds out of range [:${length}]`)
  return decrypted.subarray(0, length).toString()
}
