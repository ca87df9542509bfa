/** A watch as lines of JSON. */
import type { WatchEvent } from '@capstan/kube'
import { StatusError } from '@capstan/kube'
import type { WatchStream } from '../engine.ts'
import { errorEventBytes, eventBytes } from './encode.ts'
import type { Representation } from './negotiate.ts'
import { partialMetadata } from './partial-metadata.ts'
import type { TableOptions } from './table.ts'
import { tableOf } from './table.ts'

/** Lines for each event; what breaks the watch off is its last line. */
export async function* watchBody(
  stream: WatchStream,
  representation: Representation,
  tableOptions: () => TableOptions,
): AsyncGenerator<Buffer> {
  const line = lineOf(stream, representation, tableOptions)
  try {
    for await (const event of stream) yield line(event)
  } catch (err) {
    yield errorEventBytes(errorOf(err).status)
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
