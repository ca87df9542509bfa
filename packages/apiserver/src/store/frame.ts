/**
 * Frames: how the log, checkpoints and backups are written. Each carries its length, its number and checksums of both its head
 * and its content, so that a reader can tell a frame that was never completely written from one that has been damaged since.
 *
 * Head, 20 bytes, little endian: length of the content (4), CRC-32 of the content (4), number (8), CRC-32 of the 16 bytes before (4).
 */
import { crc32 } from 'node:zlib'

const HeadSize = 20
/** What a disk writes at once: of a frame that was being written when power went, some sectors may never have come. */
const Sector = 512

export interface Frame {
  readonly number: number
  readonly content: string
  /** Where it ends, and the next begins. */
  readonly end: number
}

export function encodeFrame(number: number, content: string): Buffer {
  const length = Buffer.byteLength(content)
  const bytes = Buffer.allocUnsafe(HeadSize + length)
  bytes.write(content, HeadSize)
  bytes.writeUInt32LE(length, 0)
  bytes.writeUInt32LE(crc32(bytes.subarray(HeadSize)), 4)
  bytes.writeBigUInt64LE(BigInt(number), 8)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 16)), 16)
  return bytes
}

/** How a run of frames ends. */
export type Ending =
  | { readonly kind: 'whole'; readonly at: number }
  /** The frame at `at` was not completely written: nobody was ever told that it is there. */
  | { readonly kind: 'torn'; readonly at: number }
  /** Something stood there, and is no longer what it was. */
  | { readonly kind: 'damaged'; readonly at: number; readonly why: string }

/** Reads frames numbered from `first` on; what it returns tells why it stopped. */
export function* readFrames(bytes: Buffer, first: number): Generator<Frame, Ending> {
  let at = 0
  for (let number = first; at < bytes.length; number++) {
    const frame = frameAt(bytes, at)
    if (frame?.number !== number) return endingAt(bytes, at, number, frame)
    yield frame
    at = frame.end
  }
  return { kind: 'whole', at }
}

/** The number that the first frame claims to have. */
export const firstNumber = (bytes: Buffer): number => (bytes.length < HeadSize ? 0 : Number(bytes.readBigUInt64LE(8)))

/** The frame that begins there; `undefined` when none does, or not in one piece. */
function frameAt(bytes: Buffer, at: number): Frame | undefined {
  const length = contentLength(bytes, at)
  if (length === undefined) return undefined
  const [start, end] = [at + HeadSize, at + HeadSize + length]
  if (end > bytes.length || crc32(bytes.subarray(start, end)) !== bytes.readUInt32LE(at + 4)) return undefined
  return { number: Number(bytes.readBigUInt64LE(at + 8)), content: bytes.toString('utf8', start, end), end }
}

/** What the head that begins there says; `undefined` when it is not a whole one. */
function contentLength(bytes: Buffer, at: number): number | undefined {
  if (at + HeadSize > bytes.length || crc32(bytes.subarray(at, at + 16)) !== bytes.readUInt32LE(at + 16)) return undefined
  return bytes.readUInt32LE(at)
}

/**
 * A frame is torn when it is the last one, and either the file ends before it does or a whole sector of it holds nothing but
 * zeros. Everything else that cannot be read has been written once, and is damage.
 */
function endingAt(bytes: Buffer, at: number, number: number, found: Frame | undefined): Ending {
  if (found) return { kind: 'damaged', at, why: `frame ${found.number} is where frame ${number} belongs` }
  const later = laterFrame(bytes, at, number)
  if (later !== undefined) return { kind: 'damaged', at, why: `frame ${number} cannot be read, but frame ${later} after it can` }
  const length = contentLength(bytes, at)
  const end = length === undefined ? bytes.length : at + HeadSize + length
  if (bytes.length < at + HeadSize || end > bytes.length) return { kind: 'torn', at }
  if (hasEmptySector(bytes, at, end)) return { kind: 'torn', at }
  return { kind: 'damaged', at, why: `the checksum of frame ${number} does not match` }
}

/** The number of some frame beyond `at` that can be read and is numbered higher. Two checksums make chance no explanation. */
function laterFrame(bytes: Buffer, at: number, number: number): number | undefined {
  for (let start = at + 1; start + HeadSize <= bytes.length; start++) {
    const higher = bytes.readUInt32LE(start + 8) + bytes.readUInt32LE(start + 12) * 2 ** 32
    if (higher <= number || higher > number + bytes.length) continue
    if (frameAt(bytes, start)) return higher
  }
  return undefined
}

function hasEmptySector(bytes: Buffer, from: number, to: number): boolean {
  for (let start = from; start < to; ) {
    const end = Math.min(to, (Math.floor(start / Sector) + 1) * Sector)
    if (bytes.subarray(start, end).every((byte) => byte === 0)) return true
    start = end
  }
  return false
}
