/** A body as text, read no further than allowed. */

export class TooLong extends Error {
  override readonly name = 'TooLong'
}

/** @throws TooLong as soon as more than `maxBytes` have come */
export async function readText(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let bytes = 0
  let text = ''
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new TooLong(`body is longer than ${maxBytes} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
