/** Encodes a watch as lines of JSON. */
import type { WatchEvent } from '@capstan/kube'
import { StatusError } from '@capstan/kube'
import type { WatchStream } from '../../verbs/engine.ts'
import { isPacked } from '../../store/packed.ts'
import { errorEventBytes, eventBytes } from '../encode.ts'
import type { Representation } from '../negotiate.ts'
import { partialMetadata } from '../table/partial-metadata.ts'
import type { WatchScheduler } from './watch-scheduler.ts'
import type { TableOptions } from '../table/table.ts'
import { tableOf } from '../table/table.ts'

/** Encodes each event as a line, and yields the lines of a batch joined into parts. An error that ends the watch is the last line. */
export async function* watchBody(
  stream: WatchStream,
  representation: Representation,
  tableOptions: () => TableOptions,
  { lines, scheduler }: WatchState,
): AsyncGenerator<Buffer> {
  const line = lineOf(stream, representation, tableOptions, lines)
  lines.enter()
  try {
    for await (const batch of stream.batches(() => scheduler.turn())) {
      let part: Buffer[] = []
      let size = 0
      for (const event of batch) {
        const bytes = line(event)
        part.push(bytes)
        if ((size += bytes.length) < PartSize) continue
        yield lines.joined(part)
        part = []
        size = 0
      }
      if (size > 0) yield lines.joined(part)
    }
  } catch (err) {
    yield errorEventBytes(errorOf(err).status)
  } finally {
    lines.leave()
  }
}

/** Number of bytes at which a part ends: large enough that few writes are needed, small enough to be buffered for each of many watchers. */
const PartSize = 64 * 1024

/** State that all watchers of a server share. */
export interface WatchState {
  readonly lines: SharedLines
  readonly scheduler: WatchScheduler
}

type Lines = { readonly [type in WatchEvent['type']]?: Buffer }

/** Caches lines, and joined lines, so that watchers of the same changes share them. */
export class SharedLines {
  /** The latest lines of packed objects, whose bytes have no other cache. */
  readonly #recent = new Map<object, Lines>()
  #size = 0
  #parts: readonly Buffer[] = []
  #joined: Buffer = Buffer.alloc(0)
  #watchers = 0

  /** Registers a watcher. When it ends, `leave` must be called. */
  enter(): void {
    this.#watchers++
  }

  /**
   * Unregisters a watcher. When the last watcher leaves, the buffers are released: they are only about a megabyte, but because of their
   * place in memory, the memory below them could not be returned to the operating system.
   */
  leave(): void {
    if (--this.#watchers > 0) return
    this.#recent.clear()
    this.#size = 0
    this.#parts = []
    this.#joined = Buffer.alloc(0)
  }

  line({ type, object }: WatchEvent): Buffer {
    if (!isPacked(object)) return eventBytes(type, object)
    const cached = this.#recent.get(object)?.[type]
    if (cached) return cached
    const line = eventBytes(type, object)
    if (line.length < RecentSize) this.#keep(type, object, line)
    return line
  }

  /** Joins lines. Returns the buffer of the last call if it joined the same lines, as for another watcher of the same changes. */
  joined(parts: readonly Buffer[]): Buffer {
    if (parts.length === 1) return parts[0]!
    if (parts.length !== this.#parts.length || parts.some((part, index) => part !== this.#parts[index])) {
      this.#parts = parts
      this.#joined = Buffer.concat(parts)
    }
    return this.#joined
  }

  #keep(type: WatchEvent['type'], object: object, line: Buffer): void {
    this.#size += line.length
    for (const [oldest, lines] of this.#recent) {
      if (this.#size <= RecentSize) break
      this.#recent.delete(oldest)
      for (const oldLine of Object.values(lines)) this.#size -= oldLine.length
    }
    this.#recent.set(object, { ...this.#recent.get(object), [type]: line })
  }
}

/** Size limit of the cached lines in bytes: a change is sent to all watchers at nearly the same time, so few lines are needed. */
const RecentSize = 1024 * 1024

export const errorOf = (err: unknown): StatusError =>
  err instanceof StatusError
    ? err
    : new StatusError('InternalError', `Internal error occurred: ${err instanceof Error ? err.message : 'unknown'}`, {
        cause: err,
      })

function lineOf(
  { resource }: WatchStream,
  { as, version }: Representation,
  tableOptions: () => TableOptions,
  shared: SharedLines,
): (event: WatchEvent) => Buffer {
  if (as === undefined) return (event) => shared.line(event)
  if (as !== 'Table') return ({ type, object }) => eventBytes(type, partialMetadata(object, version))
  let isFirst = true
  return ({ type, object }) => {
    const table = tableOf(resource, object, tableOptions())
    // Upstream sends the columns only with the first event; kubectl keeps them.
    const sent = isFirst ? table : { ...table, columnDefinitions: null }
    isFirst = false
    return eventBytes(type, sent)
  }
}
