/**
 * Frames: the encoding of the log, of checkpoints and of backups. Each frame has its length, its number and checksums of both its header and
 * its content, so that a reader can distinguish a frame that was never completely written from a frame that was damaged later.
 *
 * Header, 20 bytes, little endian: length of the content (4), CRC-32 of the content (4), number (8), CRC-32 of the 16 bytes before (4).
 */
import { crc32 } from 'node:zlib'

const HeaderSize = 20
/** Unit that a disk writes atomically: after a loss of power, some sectors of a frame may be missing. */
const Sector = 512

export interface Frame {
  readonly number: number
  readonly content: string
  /** Offset of its end, where the next frame begins. */
  readonly end: number
}

export function encodeFrame(number: number, content: string): Buffer {
  const length = Buffer.byteLength(content)
  const bytes = Buffer.allocUnsafe(HeaderSize + length)
  bytes.write(content, HeaderSize)
  bytes.writeUInt32LE(length, 0)
  bytes.writeUInt32LE(crc32(bytes.subarray(HeaderSize)), 4)
  bytes.writeBigUInt64LE(BigInt(number), 8)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 16)), 16)
  return bytes
}

/** Reason why reading a sequence of frames ended. */
export type Ending =
  /** All frames were read; the last one ends at `at`. */
  | { readonly kind: 'whole'; readonly at: number }
  /** The frame at `at` is incomplete, as after an interrupted write. Only the caller knows whether it was acknowledged. */
  | { readonly kind: 'torn'; readonly at: number }
  /** The frame at `at` was completely written, but is damaged or has the wrong number. */
  | { readonly kind: 'damaged'; readonly at: number; readonly problem: string }

/** Yields the frames, which are numbered from `first` on; returns the reason why reading ended. */
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

/** Returns the number in the header of the first frame, without verifying the header. 0 if there is no complete header. */
export const firstNumber = (bytes: Buffer): number => (bytes.length < HeaderSize ? 0 : Number(bytes.readBigUInt64LE(8)))

/** Returns the frame that begins at `at`; `undefined` when there is none, or it is damaged. */
function frameAt(bytes: Buffer, at: number): Frame | undefined {
  const length = contentLength(bytes, at)
  if (length === undefined) return undefined
  const [start, end] = [at + HeaderSize, at + HeaderSize + length]
  if (end > bytes.length || crc32(bytes.subarray(start, end)) !== bytes.readUInt32LE(at + 4)) return undefined
  return { number: Number(bytes.readBigUInt64LE(at + 8)), content: bytes.toString('utf8', start, end), end }
}

/** Returns the length in the header at `at`; `undefined` when the header is incomplete or damaged. */
function contentLength(bytes: Buffer, at: number): number | undefined {
  if (at + HeaderSize > bytes.length || crc32(bytes.subarray(at, at + 16)) !== bytes.readUInt32LE(at + 16)) return undefined
  return bytes.readUInt32LE(at)
}

/**
 * Classifies a frame that cannot be read or has the wrong number. A frame that cannot be read is torn when no readable frame with a higher
 * number follows it, and either the file ends before the frame does or a sector of the frame contains only zeros. Every other frame counts as
 * completely written and damaged. A frame with a damaged header counts as extending to the end of the file.
 */
function endingAt(bytes: Buffer, at: number, number: number, misplaced: Frame | undefined): Ending {
  if (misplaced) return { kind: 'damaged', at, problem: `frame ${misplaced.number} is where frame ${number} belongs` }
  const later = laterFrame(bytes, at, number)
  if (later !== undefined)
    return { kind: 'damaged', at, problem: `frame ${number} cannot be read, but frame ${later} after it can` }
  const length = contentLength(bytes, at)
  const end = length === undefined ? bytes.length : at + HeaderSize + length
  if (bytes.length < at + HeaderSize || end > bytes.length) return { kind: 'torn', at }
  if (hasEmptySector(bytes, at, end)) return { kind: 'torn', at }
  return { kind: 'damaged', at, problem: `the checksum of frame ${number} does not match` }
}

/**
 * Returns the number of the first readable frame after `at` whose number is higher than `number`; `undefined` if there is none. Searches at
 * every byte: other bytes practically never match both checksums of a frame by coincidence.
 */
function laterFrame(bytes: Buffer, at: number, number: number): number | undefined {
  for (let start = at + 1; start + HeaderSize <= bytes.length; start++) {
    const higher = bytes.readUInt32LE(start + 8) + bytes.readUInt32LE(start + 12) * 2 ** 32
    // Every frame takes at least one byte, so the numbers in a file increase by at most its length.
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
