/** A watch as lines of JSON. */
import type { WatchEvent } from '@capstan/kube'
import { StatusError } from '@capstan/kube'
import type { WatchStream } from '../engine.ts'
import { errorEventBytes, eventBytes } from './encode.ts'
import type { Representation } from './negotiate.ts'
import { partialMetadata } from './partial-metadata.ts'
import type { TableOptions } from './table.ts'
import { tableOf } from './table.ts'

/** A line for each event, those that come together in parts of some size; what breaks the watch off is the last line. */
export async function* watchBody(
  stream: WatchStream,
  representation: Representation,
  tableOptions: () => TableOptions,
  shared: JoinedLines,
): AsyncGenerator<Buffer> {
  const line = lineOf(stream, representation, tableOptions)
  try {
    for await (const batch of stream.batches()) {
      let part: Buffer[] = []
      let size = 0
      for (const event of batch) {
        const bytes = line(event)
        part.push(bytes)
        if ((size += bytes.length) < PartSize) continue
        yield shared.of(part)
        part = []
        size = 0
      }
      if (size > 0) yield shared.of(part)
    }
  } catch (err) {
    yield errorEventBytes(errorOf(err).status)
  }
}

/** Large enough that the cost of writing is not felt, small enough to be held for each of many readers. */
const PartSize = 64 * 1024

/** Lines put together: watchers who are told of the same changes share the bytes. */
export class JoinedLines {
  #lines: readonly Buffer[] = []
  #bytes: Buffer = Buffer.alloc(0)

  of(lines: readonly Buffer[]): Buffer {
    if (lines.length === 1) return lines[0]!
    if (lines.length !== this.#lines.length || lines.some((line, at) => line !== this.#lines[at])) {
      this.#lines = lines
      this.#bytes = Buffer.concat(lines)
    }
    return this.#bytes
  }
}

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
): (event: WatchEvent) => Buffer {
  if (as === undefined) return ({ type, object }) => eventBytes(type, object)
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
