/** A body, read no further than allowed. */

export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/** There is no room for it beside all that is being read. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom'
}

/**
 * @param hasRoom asked for each piece, with its length
 * @throws TooLong as soon as more than `maxBytes` have come, NoRoom as soon as there is none
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
