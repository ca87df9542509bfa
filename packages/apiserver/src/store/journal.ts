/**
 * Writes the logs and checkpoints of a state folder (`state-folder.ts`). Pending changes are written in groups, one frame for each group; a
 * group is acknowledged once its frame is written and, with `sync`, synced. Checkpoints allow older logs to be removed.
 *
 * After a failed write or sync, the content of the log file is unknown, so this process does not write the file again. Pending and new writes
 * are rejected until a new log has begun, which records the position up to which the previous log is valid.
 */
import { type Clock, type Logger, messageOf, seconds, type Timer } from '@capstan/kube'
import { type CheckpointHeader, Format, storeSnapshots, writeCheckpoint } from './checkpoint.ts'
import { type Files, type OpenFile, writeAtomically } from './files.ts'
import { encodeFrame } from './frame.ts'
import { applyTo, changeLine, emptySnapshot, type Snapshots, removalLine } from './snapshot.ts'
import type { ObjectEncoding } from './packed.ts'
import {
  checkpointName,
  generationsIn,
  type LogHeader,
  logName,
  MarkerName,
  markerLine,
  type Position,
  readState,
} from './state-folder.ts'
import type { Change } from './store.ts'

export interface JournalOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly files: Files
  /** Whether a write waits for fsync. */
  readonly sync: boolean
  /** Size of a log in bytes after which the next log begins. If the last checkpoint is larger, its size applies instead. */
  readonly checkpointAfter: number
  /** Encoding of stored objects. Default: plain objects. */
  readonly encode?: ObjectEncoding
}

/** A write that waits to be stored: its lines in a frame, and the update of the snapshots once the lines are durable. */
interface Waiting {
  readonly lines: string
  apply(): void
  resolve(): void
  reject(reason: Error): void
}

/** Delay before each attempt to begin a new log after a failed write. */
const RetryAfter = seconds(1)
/** Maximum number of characters in a group. A single larger write is a group of its own. */
const LargestFrame = 32 * 1024 * 1024

export class Journal {
  readonly #options: JournalOptions
  readonly #folder: string
  readonly #snapshots: Snapshots
  #log: OpenFile
  #marker: OpenFile
  /** Position up to which all writes have been acknowledged. */
  #end: Position
  /** Number of the next frame. */
  #next: number
  #checkpointSize: number
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined
  #checkpointing: Promise<void> | undefined
  #failure: Error | undefined
  #retry: Timer | undefined
  #closed = false

  private constructor(folder: string, options: JournalOptions, state: OpenedState) {
    this.#folder = folder
    this.#options = options
    this.#snapshots = state.snapshots
    this.#log = state.log
    this.#marker = state.marker
    this.#end = state.end
    this.#next = state.next
    this.#checkpointSize = state.checkpointSize
  }

  /**
   * Reads the state of `folder`, and continues its newest log.
   * @throws DamagedData when an acknowledged change or the commit marker cannot be read
   */
  static async open(folder: string, options: JournalOptions): Promise<Journal> {
    const { files, encode } = options
    const state = await readState(files, folder, 'everything', encode)
    const { snapshots, acknowledged, end, next, unacknowledged, checkpointSize, skipped } = state
    for (const err of skipped) options.log.warn('A damaged file was not needed', { err: err.message })
    // Temporary files of writes that a crash interrupted.
    for (const name of await files.list(folder)) if (name.endsWith('.new')) await files.remove(`${folder}/${name}`)
    const log = await files.open(`${folder}/${logName(end.generation)}`, 'existing')
    let marker: OpenFile | undefined
    try {
      // These bytes may have been read from the page cache without being on the disk, so they are written again and synced.
      await log.write(unacknowledged, acknowledged.offset)
      await log.truncate(end.offset)
      await log.sync()
      marker = await createCommitMarker(files, folder, end)
    } catch (err) {
      await log.close().catch(() => {})
      await marker?.close().catch(() => {})
      throw err
    }
    return new Journal(folder, options, { snapshots, log, marker, end, next, checkpointSize })
  }

  /** Acknowledged state of each store, by the name of the store. */
  get snapshots(): Snapshots {
    return this.#snapshots
  }

  /** Reason why writes are rejected at present; undefined while they are accepted. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /**
   * Resolves once the changes survive a loss of power (without `sync`, a crash of the process). Changes that arrive while a
   * group is being written share the next group. `time`: time of the changes, milliseconds since the epoch.
   */
  append(store: string, changes: readonly Change[], time: number): Promise<void> {
    const lines = changes.map((change) => changeLine(store, change, time)).join('\n')
    return this.#write(lines, () => {
      let snapshot = this.#snapshots.get(store)
      if (!snapshot) this.#snapshots.set(store, (snapshot = emptySnapshot()))
      for (const change of changes) applyTo(snapshot, change)
    })
  }

  /** Removes a store with all its objects. Resolves as `append` does. */
  remove(store: string): Promise<void> {
    return this.#write(removalLine(store), () => this.#snapshots.delete(store))
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#writing
    this.#retry?.cancel()
    await this.#checkpointing
    await this.#closeFiles()
  }

  #write(lines: string, apply: () => void): Promise<void> {
    if (this.#closed) return Promise.reject(new Error(`data folder ${this.#folder} is closed`))
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lines, apply, resolve, reject })
      // Deferred to a microtask, so that changes of the same synchronous code share a group.
      this.#writing ??= Promise.resolve().then(() => this.#writeAll())
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup()
      try {
        if (this.#end.offset > Math.max(this.#options.checkpointAfter, this.#checkpointSize)) await this.#beginLog()
        await this.#writeFrame(group.map(({ lines }) => lines).join('\n'))
      } catch (err) {
        this.#fail(err, [...group, ...this.#waiting.splice(0)])
        break
      }
      for (const { apply, resolve } of group) {
        apply()
        resolve()
      }
    }
    this.#writing = undefined
  }

  /** Removes the next group from the queue: all waiting writes, up to `LargestFrame`. */
  #takeGroup(): Waiting[] {
    let size = 0
    const end = this.#waiting.findIndex(({ lines }) => (size += lines.length) > LargestFrame)
    return this.#waiting.splice(0, end < 0 ? Infinity : Math.max(1, end))
  }

  async #writeFrame(content: string): Promise<void> {
    const bytes = encodeFrame(this.#next, content)
    const { generation, offset } = this.#end
    await this.#log.write(bytes, offset)
    if (this.#options.sync) await this.#log.sync()
    const end = { generation, offset: offset + bytes.length }
    await writeCommitMarker(this.#marker, end, this.#next + 1)
    this.#end = end
    this.#next++
  }

  /** Begins a new log at the acknowledged position, and starts a checkpoint of the state before it. */
  async #beginLog(): Promise<void> {
    const { files, clock } = this.#options
    const generation = this.#end.generation + 1
    const newLog = await beginLog(files, this.#folder, {
      generation,
      previousEnd: this.#end.offset,
      number: this.#next,
    })
    const previousLog = this.#log
    this.#log = newLog.file
    this.#end = { generation, offset: newLog.size }
    this.#next++
    await previousLog.close().catch(() => {})
    // A failed checkpoint is harmless: without it, the earlier logs are kept.
    const snapshots = storeSnapshots(this.#snapshots)
    const header: CheckpointHeader = { capstan: 'checkpoint', format: Format, time: clock.now() }
    const earlierCheckpoint = this.#checkpointing
    this.#checkpointing = (async () => {
      await earlierCheckpoint
      let size = 0
      const path = `${this.#folder}/${checkpointName(generation)}`
      await writeAtomically(files, path, async (file) => {
        size = await writeCheckpoint(file, header, snapshots)
      })
      this.#checkpointSize = size
      await this.#removeOldFiles(generation)
    })().catch((err: unknown) =>
      this.#options.log.warn('A checkpoint could not be written', { folder: this.#folder, err: messageOf(err) }),
    )
  }

  /** Removes files from before the previous checkpoint. That checkpoint and the logs after it are kept for the history of changes. */
  async #removeOldFiles(newest: number): Promise<void> {
    const { files } = this.#options
    // After a loss of power, the commit marker must not point to a log that was removed.
    await this.#marker.sync()
    const { logs, checkpoints } = await generationsIn(files, this.#folder)
    const oldestKept = checkpoints.findLast((generation) => generation < newest) ?? 1
    for (const generation of checkpoints)
      if (generation < oldestKept) await files.remove(`${this.#folder}/${checkpointName(generation)}`)
    for (const generation of logs) if (generation < oldestKept) await files.remove(`${this.#folder}/${logName(generation)}`)
  }

  #fail(cause: unknown, rejected: readonly Waiting[]): void {
    const err = new Error(messageOf(cause), { cause })
    this.#failure = err
    for (const { reject } of rejected) reject(err)
    this.#options.log.error('The data folder takes no writes', { folder: this.#folder, err })
    this.#recoverLater()
  }

  #recoverLater(): void {
    if (this.#closed) return
    this.#retry = this.#options.clock.schedule(RetryAfter, () => {
      this.#writing = this.#recover().then(() => this.#writeAll())
    })
  }

  /** Begins a new log and a new commit marker, in files that no failed write has touched. */
  async #recover(): Promise<void> {
    try {
      await this.#closeFiles()
      await this.#beginLog()
      this.#marker = await createCommitMarker(this.#options.files, this.#folder, this.#end)
    } catch (err) {
      this.#failure = new Error(messageOf(err), { cause: err })
      this.#recoverLater()
      return
    }
    this.#failure = undefined
    this.#options.log.info('The data folder takes writes again', { folder: this.#folder })
  }

  async #closeFiles(): Promise<void> {
    await this.#log.close().catch(() => {})
    await this.#marker.close().catch(() => {})
  }
}

interface OpenedState {
  readonly snapshots: Snapshots
  readonly log: OpenFile
  readonly marker: OpenFile
  readonly end: Position
  readonly next: number
  readonly checkpointSize: number
}

/**
 * Creates the first files of a state folder: an empty log, the commit marker and, if there are `snapshots`, the checkpoint from
 * which the log continues.
 */
export async function makeState(files: Files, folder: string, snapshots: Snapshots, time: number): Promise<void> {
  await files.makeFolder(folder)
  // Log 1 begins with empty stores; a log that continues a checkpoint has a higher number.
  const generation = snapshots.size === 0 ? 1 : 2
  if (snapshots.size > 0) {
    const header: CheckpointHeader = { capstan: 'checkpoint', format: Format, time }
    await writeAtomically(files, `${folder}/${checkpointName(generation)}`, async (file) => {
      await writeCheckpoint(file, header, storeSnapshots(snapshots))
    })
  }
  const { file, size } = await beginLog(files, folder, { generation, previousEnd: undefined, number: 1 })
  await file.close()
  await (await createCommitMarker(files, folder, { generation, offset: size })).close()
}

/** Begins a log. The file gets its name only when its first frame is durable. */
async function beginLog(
  files: Files,
  folder: string,
  { generation, previousEnd, number }: { generation: number; previousEnd: number | undefined; number: number },
): Promise<{ file: OpenFile; size: number }> {
  const header: LogHeader = { capstan: 'log', format: Format, generation, ...(previousEnd === undefined ? {} : { previousEnd }) }
  const bytes = encodeFrame(number, JSON.stringify(header))
  const path = `${folder}/${logName(generation)}`
  await writeAtomically(files, path, (file) => file.write(bytes, 0))
  return { file: await files.open(path, 'existing'), size: bytes.length }
}

async function createCommitMarker(files: Files, folder: string, position: Position): Promise<OpenFile> {
  const path = `${folder}/${MarkerName}`
  await writeAtomically(files, path, async (file) => {
    for (const turn of [0, 1]) await writeCommitMarker(file, position, turn)
  })
  return files.open(path, 'existing')
}

function writeCommitMarker(file: OpenFile, position: Position, turn: number): Promise<void> {
  const { bytes, at } = markerLine(position, turn)
  return file.write(bytes, at)
}
