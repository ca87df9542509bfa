/** A body, read no further than allowed. */

export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/** @throws TooLong as soon as more than `maxBytes` have come */
export async function readBytes(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new TooLong(`body is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
