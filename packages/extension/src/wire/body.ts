/** Reads a body up to a limit. */

export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/** Error for a body that exceeds the memory budget of all bodies. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom'
}

/**
 * @param hasRoom called with the length of each chunk; returns whether it fits the budget
 * @throws TooLong after more than `maxBytes`, NoRoom when a chunk does not fit the budget
 */
export async function readBytes(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
  hasRoom: (bytes: number) => boolean = () => true,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new TooLong(`body is longer than ${maxBytes} bytes`)
    if (!hasRoom(chunk.byteLength)) throw new NoRoom('too much is being read')
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
