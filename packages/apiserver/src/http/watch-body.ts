/** A watch as lines of JSON. */
import type { WatchEvent } from '@capstan/kube'
import { StatusError } from '@capstan/kube'
import type { WatchStream } from '../engine.ts'
import { isPacked } from '../store/packed.ts'
import { errorEventBytes, eventBytes } from './encode.ts'
import type { Representation } from './negotiate.ts'
import { partialMetadata } from './partial-metadata.ts'
import type { Rounds } from './rounds.ts'
import type { TableOptions } from './table.ts'
import { tableOf } from './table.ts'

/** A line for each event, those that come together in parts of some size; what breaks the watch off is the last line. */
export async function* watchBody(
  stream: WatchStream,
  representation: Representation,
  tableOptions: () => TableOptions,
  { lines, rounds }: Watched,
): AsyncGenerator<Buffer> {
  const line = lineOf(stream, representation, tableOptions, lines)
  lines.enter()
  try {
    for await (const batch of stream.batches(() => rounds.turn())) {
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

/** Large enough that the cost of writing is not felt, small enough to be held for each of many readers. */
const PartSize = 64 * 1024

/** What all watchers of a server have together. */
export interface Watched {
  readonly lines: SharedLines
  readonly rounds: Rounds
}

type Lines = { readonly [type in WatchEvent['type']]?: Buffer }

/** What watchers who are told of the same changes share: lines, and lines put together. */
export class SharedLines {
  /** Of what is held as JSON, which keeps no bytes beside it: those made last. */
  readonly #recent = new Map<object, Lines>()
  #size = 0
  #parts: readonly Buffer[] = []
  #whole: Buffer = Buffer.alloc(0)
  #watchers = 0

  /** One more watches; `leave` has to follow. */
  enter(): void {
    this.#watchers++
  }

  /** The last one leaves nothing behind: a megabyte is not much, but keeps what lies below it from being given back. */
  leave(): void {
    if (--this.#watchers > 0) return
    this.#recent.clear()
    this.#size = 0
    this.#parts = []
    this.#whole = Buffer.alloc(0)
  }

  line({ type, object }: WatchEvent): Buffer {
    if (!isPacked(object)) return eventBytes(type, object)
    const known = this.#recent.get(object)?.[type]
    if (known) return known
    const line = eventBytes(type, object)
    if (line.length < RecentSize) this.#keep(type, object, line)
    return line
  }

  joined(parts: readonly Buffer[]): Buffer {
    if (parts.length === 1) return parts[0]!
    if (parts.length !== this.#parts.length || parts.some((part, at) => part !== this.#parts[at])) {
      this.#parts = parts
      this.#whole = Buffer.concat(parts)
    }
    return this.#whole
  }

  #keep(type: WatchEvent['type'], object: object, line: Buffer): void {
    this.#size += line.length
    for (const [oldest, lines] of this.#recent) {
      if (this.#size <= RecentSize) break
      this.#recent.delete(oldest)
      for (const old of Object.values(lines)) this.#size -= old.length
    }
    this.#recent.set(object, { ...this.#recent.get(object), [type]: line })
  }
}

/** Bytes: enough for what happens in a moment. */
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
    // Upstream sends the columns once; kubectl keeps them.
    const shown = isFirst ? table : { ...table, columnDefinitions: null }
    isFirst = false
    return eventBytes(type, shown)
  }
}
