/**
 * The log of a state folder: groups of writes, each synced before anybody is told; checkpoints, so that it does not grow for ever;
 * and a new log whenever the old one cannot be trusted any more.
 *
 * A write that fails, or a sync that does, leaves a file of which nobody knows what it holds: it is never written to again. All
 * that waits is refused, and so is what comes, until a new log has been begun, which says up to where the old one counts.
 */
import { type Clock, type Logger, messageOf, seconds, type Timer } from '@capstan/kube'
import { type CheckpointHeader, Format, stillsOf, writeCheckpoint } from './checkpoint.ts'
import { type Files, type OpenFile, writeWhole } from './files.ts'
import { encodeFrame } from './frame.ts'
import { applyTo, changeLine, emptyImage, type Images, removalLine } from './image.ts'
import type { Hold } from './packed.ts'
import {
  checkpointName,
  generationsIn,
  type LogHeader,
  logName,
  MarkName,
  markLine,
  type Position,
  readState,
} from './state-folder.ts'
import type { Change } from './store.ts'

export interface JournalOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly files: Files
  /** Whether a write waits for the disk. */
  readonly sync: boolean
  /** Bytes that a log may have before the next is begun; never less than what a checkpoint takes. */
  readonly checkpointAfter: number
  /** How what is stored is held. Absent: as objects. */
  readonly hold?: Hold
}

/** Writes of one store, as lines of a frame, and what becomes of the images once they are durable. */
interface Waiting {
  readonly line: string
  apply(): void
  resolve(): void
  reject(reason: Error): void
}

const RetryAfter = seconds(1)
/** Characters that go into one frame together, when they come from more than one store. */
const LargestFrame = 32 * 1024 * 1024

export class Journal {
  readonly #options: JournalOptions
  readonly #folder: string
  readonly #images: Images
  #log: OpenFile
  #mark: OpenFile
  /** Up to where everything has been acknowledged. */
  #end: Position
  #next: number
  #checkpointSize: number
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined
  #checkpointing: Promise<void> | undefined
  #failure: Error | undefined
  #retry: Timer | undefined
  #closed = false

  private constructor(folder: string, options: JournalOptions, state: Started) {
    this.#folder = folder
    this.#options = options
    this.#images = state.images
    this.#log = state.log
    this.#mark = state.mark
    this.#end = state.end
    this.#next = state.next
    this.#checkpointSize = state.checkpointSize
  }

  /** @throws DamagedData when something that was acknowledged cannot be read */
  static async open(folder: string, options: JournalOptions): Promise<Journal> {
    const { files, hold } = options
    const state = await readState(files, folder, 'everything', hold)
    const { images, acknowledged, end, next, unacknowledged, checkpointSize, skipped } = state
    for (const err of skipped) options.log.warn('A damaged file was not needed', { err: err.message })
    // What somebody had begun to write, and never came to its name.
    for (const name of await files.list(folder)) if (name.endsWith('.new')) await files.remove(`${folder}/${name}`)
    const log = await files.open(`${folder}/${logName(end.generation)}`, 'existing')
    let mark: OpenFile | undefined
    try {
      // What is read here may have come from memory, and never have reached the disk: it is written once more.
      if (unacknowledged.length > 0) await log.write(unacknowledged, acknowledged.offset)
      await log.truncate(end.offset)
      await log.sync()
      mark = await beginMark(files, folder, end)
    } catch (err) {
      await log.close().catch(() => {})
      await mark?.close().catch(() => {})
      throw err
    }
    return new Journal(folder, options, { images, log, mark, end, next, checkpointSize })
  }

  /** What is stored, up to date with what has been acknowledged. */
  get images(): Images {
    return this.#images
  }

  /** Why nothing can be written; undefined while it can. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Resolves once the changes survive a loss of power. What is asked for while a group is being written shares the next. */
  append(store: string, changes: readonly Change[], time: number): Promise<void> {
    const line = changes.map((change) => changeLine(store, change, time)).join('\n')
    return this.#write(line, () => {
      let image = this.#images.get(store)
      if (!image) this.#images.set(store, (image = emptyImage()))
      for (const change of changes) applyTo(image, change)
    })
  }

  remove(store: string): Promise<void> {
    return this.#write(removalLine(store), () => this.#images.delete(store))
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#writing
    this.#retry?.cancel()
    await this.#checkpointing
    await this.#letGo()
  }

  #write(line: string, apply: () => void): Promise<void> {
    if (this.#closed) return Promise.reject(new Error(`data folder ${this.#folder} is closed`))
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line, apply, resolve, reject })
      // A moment later: what is asked for in the same turn goes together.
      this.#writing ??= Promise.resolve().then(() => this.#writeAll())
    })
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#take()
      try {
        if (this.#end.offset > Math.max(this.#options.checkpointAfter, this.#checkpointSize)) await this.#beginLog()
        await this.#writeFrame(group.map(({ line }) => line).join('\n'))
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

  /** The next group: all that waits, unless that is too much for one frame. */
  #take(): Waiting[] {
    let size = 0
    const end = this.#waiting.findIndex(({ line }) => (size += line.length) > LargestFrame)
    return this.#waiting.splice(0, end < 0 ? Infinity : Math.max(1, end))
  }

  async #writeFrame(content: string): Promise<void> {
    const bytes = encodeFrame(this.#next, content)
    const { generation, offset } = this.#end
    await this.#log.write(bytes, offset)
    if (this.#options.sync) await this.#log.sync()
    const end = { generation, offset: offset + bytes.length }
    await writeMark(this.#mark, end, this.#next + 1)
    this.#end = end
    this.#next++
  }

  /** Goes on in a new log, which begins where everything has been acknowledged, and has a checkpoint made of what there was. */
  async #beginLog(): Promise<void> {
    const { files, clock } = this.#options
    const generation = this.#end.generation + 1
    const begun = await beginLog(files, this.#folder, {
      generation,
      previousEnd: this.#end.offset,
      number: this.#next,
    })
    const before = this.#log
    this.#log = begun.file
    this.#end = { generation, offset: begun.size }
    this.#next++
    await before.close().catch(() => {})
    // Checkpoints are no part of any promise: without one, the logs before stay where they are.
    const stills = stillsOf(this.#images)
    const header: CheckpointHeader = { capstan: 'checkpoint', format: Format, time: clock.now() }
    const earlier = this.#checkpointing
    this.#checkpointing = (async () => {
      await earlier
      let size = 0
      const path = `${this.#folder}/${checkpointName(generation)}`
      await writeWhole(files, path, async (file) => {
        size = await writeCheckpoint(file, header, stills)
      })
      this.#checkpointSize = size
      await this.#forget(generation)
    })().catch((err: unknown) =>
      this.#options.log.warn('A checkpoint could not be written', { folder: this.#folder, err: messageOf(err) }),
    )
  }

  /** Removes what neither this checkpoint nor the one before it needs: the one before, for the history that lies between them. */
  async #forget(newest: number): Promise<void> {
    const { files } = this.#options
    // Never may the mark that is left after a loss of power be of a log that is gone.
    await this.#mark.sync()
    const { logs, checkpoints } = await generationsIn(files, this.#folder)
    const keep = checkpoints.findLast((generation) => generation < newest) ?? 1
    for (const generation of checkpoints)
      if (generation < keep) await files.remove(`${this.#folder}/${checkpointName(generation)}`)
    for (const generation of logs) if (generation < keep) await files.remove(`${this.#folder}/${logName(generation)}`)
  }

  #fail(cause: unknown, refused: readonly Waiting[]): void {
    const err = new Error(messageOf(cause), { cause })
    this.#failure = err
    for (const { reject } of refused) reject(err)
    this.#options.log.error('The data folder takes no writes', { folder: this.#folder, err })
    this.#recoverLater()
  }

  #recoverLater(): void {
    if (this.#closed) return
    this.#retry = this.#options.clock.schedule(RetryAfter, () => {
      this.#writing = this.#recover().then(() => this.#writeAll())
    })
  }

  /** A new log and a new mark, in files that no failure has touched. */
  async #recover(): Promise<void> {
    try {
      await this.#letGo()
      await this.#beginLog()
      this.#mark = await beginMark(this.#options.files, this.#folder, this.#end)
    } catch (err) {
      this.#failure = new Error(messageOf(err), { cause: err })
      this.#recoverLater()
      return
    }
    this.#failure = undefined
    this.#options.log.info('The data folder takes writes again', { folder: this.#folder })
  }

  async #letGo(): Promise<void> {
    await this.#log.close().catch(() => {})
    await this.#mark.close().catch(() => {})
  }
}

interface Started {
  readonly images: Images
  readonly log: OpenFile
  readonly mark: OpenFile
  readonly end: Position
  readonly next: number
  readonly checkpointSize: number
}

/** Makes a state folder's first files: a log that begins with nothing, or with a checkpoint of `images`. */
export async function makeState(files: Files, folder: string, images: Images, time: number): Promise<void> {
  await files.makeFolder(folder)
  const generation = images.size === 0 ? 1 : 2
  if (images.size > 0) {
    const header: CheckpointHeader = { capstan: 'checkpoint', format: Format, time }
    await writeWhole(files, `${folder}/${checkpointName(generation)}`, async (file) => {
      await writeCheckpoint(file, header, stillsOf(images))
    })
  }
  const { file, size } = await beginLog(files, folder, { generation, previousEnd: undefined, number: 1 })
  await file.close()
  await (await beginMark(files, folder, { generation, offset: size })).close()
}

/** The log has its name only when its first frame is durable. */
async function beginLog(
  files: Files,
  folder: string,
  { generation, previousEnd, number }: { generation: number; previousEnd: number | undefined; number: number },
): Promise<{ file: OpenFile; size: number }> {
  const header: LogHeader = { capstan: 'log', format: Format, generation, ...(previousEnd === undefined ? {} : { previousEnd }) }
  const bytes = encodeFrame(number, JSON.stringify(header))
  const path = `${folder}/${logName(generation)}`
  await writeWhole(files, path, (file) => file.write(bytes, 0))
  return { file: await files.open(path, 'existing'), size: bytes.length }
}

async function beginMark(files: Files, folder: string, position: Position): Promise<OpenFile> {
  const path = `${folder}/${MarkName}`
  await writeWhole(files, path, async (file) => {
    for (const turn of [0, 1]) await writeMark(file, position, turn)
  })
  return files.open(path, 'existing')
}

function writeMark(file: OpenFile, position: Position, turn: number): Promise<void> {
  const { bytes, at } = markLine(position, turn)
  return file.write(bytes, at)
}
