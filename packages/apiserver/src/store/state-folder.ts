/**
 * Reads a state folder, which contains:
 *
 *   checkpoint-<n>  all stores at the time when log n began
 *   log-<n>         a header frame, then a frame for each group of later writes; log 1 begins with empty stores
 *   acknowledged    the commit marker: position up to which writes have been acknowledged
 *
 * Content before the acknowledged position must be complete and without gaps; only content after it may be torn.
 */
import { crc32 } from 'node:zlib'
import { largest, messageOf, readJSON } from '@capstan/kube'
import { readCheckpoint, rejectOtherFormats } from './checkpoint.ts'
import { DamagedData } from './damage.ts'
import type { Files } from './files.ts'
import { type Ending, firstNumber, readFrames } from './frame.ts'
import { type Entry, type Snapshots, replay } from './snapshot.ts'
import { type ObjectEncoding, plainObjects } from './packed.ts'

/** A position in the logs: the number in the name of a log, and an offset in bytes. */
export interface Position {
  readonly generation: number
  readonly offset: number
}

export interface State {
  readonly snapshots: Snapshots
  /** Position that the commit marker contains. */
  readonly acknowledged: Position
  /** End of the last frame that was read; bytes after it are torn or were not requested. */
  readonly end: Position
  /** Number of the next frame. */
  readonly next: number
  /** Frames between `acknowledged` and `end`, if both are in the same log; otherwise empty. */
  readonly unacknowledged: Buffer
  /** Size in bytes of the checkpoint that was read; 0 if none was read. */
  readonly checkpointSize: number
  /** Whether both lines of the commit marker can be read. If only one can be read, writes after its position may have been acknowledged. */
  readonly isMarkerIntact: boolean
  /** Damage without loss: a newer checkpoint contains the data of the damaged file. */
  readonly skipped: readonly Error[]
}

/** First frame of a log. */
export interface LogHeader {
  readonly capstan: 'log'
  readonly format: number
  readonly generation: number
  /** End of the previous log: bytes after it were never acknowledged. Absent in the first log of a folder. */
  readonly previousEnd?: number
}

/** Which writes to read. `acknowledged` is for a folder that a server is writing to. */
export type Extent = 'everything' | 'acknowledged'

export const logName = (generation: number): string => `log-${padded(generation)}`
export const checkpointName = (generation: number): string => `checkpoint-${padded(generation)}`
export const MarkerName = 'acknowledged'

/** Returns the generations (the numbers in the names) of existing logs and checkpoints, in ascending order. */
export async function generationsIn(files: Files, folder: string): Promise<{ logs: number[]; checkpoints: number[] }> {
  const names = (await files.list(folder)).sort()
  const numbersIn = (pattern: RegExp) => names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number)
  return { logs: numbersIn(/^log-(\d{10})$/), checkpoints: numbersIn(/^checkpoint-(\d{10})$/) }
}

/**
 * Reads the newest state.
 *
 * @throws DamagedData when an acknowledged write or the commit marker cannot be read, or a later frame is damaged rather than torn; Error when
 *   a file has another format
 */
export async function readState(
  files: Files,
  folder: string,
  extent: Extent = 'everything',
  encode: ObjectEncoding = plainObjects,
): Promise<State> {
  // The commit marker is read first: a log that is read later contains at least the writes that the marker acknowledges.
  const { isIntact: isMarkerIntact, ...acknowledged } = await readCommitMarker(files, folder)
  const { logs, checkpoints } = await generationsIn(files, folder)
  const isInExtent = (generation: number) => extent === 'everything' || generation <= acknowledged.generation
  const last = Math.max(acknowledged.generation, largest(logs.filter(isInExtent)))
  // A base is a checkpoint, or the empty state before log 1. The oldest base comes first, because it gives the longest history of changes.
  // If the base or a log after it is damaged, the next base is used.
  const bases = [...(logs[0] === 1 || checkpoints.length === 0 ? [1] : []), ...checkpoints.filter(isInExtent)]
  const skipped: Error[] = []
  for (const base of bases) {
    try {
      return { ...(await readSince(base)), skipped }
    } catch (err) {
      if (!(err instanceof DamagedData)) throw err
      skipped.push(err)
    }
  }
  throw skipped[0]!

  async function readSince(base: number): Promise<Omit<State, 'skipped'>> {
    const checkpoint =
      base === 1 ? undefined : await readCheckpoint(files, `${folder}/${checkpointName(base)}`, 'checkpoint', encode)
    const snapshots: Snapshots = checkpoint?.snapshots ?? new Map()
    const logsSinceBase: Log[] = []
    for (let generation = base; generation <= last; generation++)
      logsSinceBase.push(await readLog(files, `${folder}/${logName(generation)}`, generation))
    let next = logsSinceBase[0]!.first
    let end = 0
    for (const [index, log] of logsSinceBase.entries()) {
      // The header of the next log contains the end of this log. This end takes precedence over the commit marker.
      const previousEnd = logsSinceBase[index + 1]?.header.previousEnd
      const requiredEnd = previousEnd ?? (last === acknowledged.generation ? acknowledged.offset : 0)
      const until = previousEnd ?? (extent === 'acknowledged' ? requiredEnd : undefined)
      const { ending, number } = replayLog(snapshots, log, next, until, encode)
      if (ending.kind === 'damaged') throw new DamagedData(log.path, ending.at, ending.problem)
      if (ending.at < requiredEnd)
        throw new DamagedData(log.path, ending.at, `it ends there, and writes up to byte ${requiredEnd} have been acknowledged`)
      next = number
      end = ending.at
    }
    const unacknowledged =
      last === acknowledged.generation ? logsSinceBase.at(-1)!.bytes.subarray(acknowledged.offset, end) : Buffer.alloc(0)
    return {
      snapshots,
      acknowledged,
      isMarkerIntact,
      end: { generation: last, offset: end },
      next,
      unacknowledged,
      checkpointSize: checkpoint?.size ?? 0,
    }
  }
}

export interface Log {
  readonly path: string
  readonly bytes: Buffer
  readonly header: LogHeader
  /** Number of its first frame. */
  readonly first: number
}

/** Reads a log. @throws DamagedData when it is missing or does not begin with its header, and Error when it has another format */
export async function readLog(files: Files, path: string, generation: number): Promise<Log> {
  const bytes = await readOrMissing(path, (file) => files.read(file))
  const first = firstNumber(bytes)
  const { value } = readFrames(bytes, first).next()
  // A log is renamed to its final name only when its first frame is durable, so the first frame cannot be torn.
  if (!value || !('content' in value)) throw new DamagedData(path, 0, 'its header cannot be read')
  const header = JSON.parse(value.content) as LogHeader
  if (header.capstan !== 'log' || header.generation !== generation)
    throw new DamagedData(path, 0, 'its header is not that of this log')
  rejectOtherFormats(path, header.format)
  return { path, bytes, header, first }
}

/**
 * Replays a log into `snapshots`, up to its end or to the offset `until`, in bytes. `first` is the number of its first frame. Returns why
 * reading ended, and the number of the next frame.
 * @throws DamagedData when the content of a frame cannot be applied to the state before it
 */
export function replayLog(
  snapshots: Snapshots,
  { path, bytes }: Log,
  first: number,
  until: number | undefined,
  encode: ObjectEncoding = plainObjects,
): { ending: Ending; number: number } {
  const frames = readFrames(until === undefined ? bytes : bytes.subarray(0, until), first)
  let number = first
  for (let isHeader = true; ; number++, isHeader = false) {
    const { value, done } = frames.next()
    if (done) return { ending: value, number }
    if (isHeader) continue
    try {
      for (const line of value.content.split('\n')) replay(snapshots, readJSON(line) as Entry, encode)
    } catch (cause) {
      throw new DamagedData(path, value.end, messageOf(cause))
    }
  }
}

async function readOrMissing<T>(path: string, read: (path: string) => Promise<T>): Promise<T> {
  try {
    return await read(path)
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'ENOENT') throw err
    throw new DamagedData(path, undefined, 'it is missing')
  }
}

// The commit marker has two lines, one in each of two disk sectors. Each line contains a position. Writes alternate between the lines: when a
// crash interrupts the write of one line, the other line is intact.

const MarkerPattern = /^(\d{10}) (\d{16}) ([0-9a-f]{8})\n/
const SlotSize = 512

/** Returns a line of the commit marker, and its offset in bytes. `turn` is the number of the write; even and odd writes use different lines. */
export function markerLine({ generation, offset }: Position, turn: number): { bytes: Buffer; at: number } {
  const text = `${padded(generation)} ${String(offset).padStart(16, '0')}`
  return { bytes: Buffer.from(`${text} ${checksum(text)}\n`), at: (turn % 2) * SlotSize }
}

/**
 * Reads the newest position from the commit marker. `isIntact`: whether both lines can be read. @throws DamagedData when the file is missing
 * or neither line can be read
 */
export async function readCommitMarker(files: Files, folder: string): Promise<Position & { readonly isIntact: boolean }> {
  const path = `${folder}/${MarkerName}`
  const bytes = await readOrMissing(path, (file) => files.read(file))
  const lines = [0, SlotSize].flatMap((start) => positionIn(bytes.toString('latin1', start, start + SlotSize)) ?? [])
  const newest = lines.sort((a, b) => b.generation - a.generation || b.offset - a.offset)[0]
  if (!newest) throw new DamagedData(path, 0, 'its checksum does not match')
  return { ...newest, isIntact: lines.length === 2 }
}

function positionIn(slot: string): Position | undefined {
  const [, generation, offset, sum] = MarkerPattern.exec(slot) ?? []
  if (generation === undefined || sum !== checksum(`${generation} ${offset}`)) return undefined
  return { generation: Number(generation), offset: Number(offset) }
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0')
const padded = (generation: number): string => String(generation).padStart(10, '0')
