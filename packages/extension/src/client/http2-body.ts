/** Reads the body of a response over HTTP/2. */
import { type ClientHttp2Stream, constants as http2 } from 'node:http2'

/**
 * Returns the body of a stream. A reader that stops early closes only this stream. Node's iterator is not used, because it fails for a
 * closed stream with unread data; nor is flowing mode, which does not report an incomplete stream.
 *
 * @param errorOf returns the error for an incomplete body
 */
export async function* http2Body(stream: ClientHttp2Stream, errorOf: () => Error): AsyncGenerator<Uint8Array> {
  let wake = () => {}
  const woken = () => wake()
  for (const event of ['readable', 'end', 'close']) stream.on(event, woken)
  try {
    while (!stream.readableEnded) {
      const chunk = stream.read() as Uint8Array | null
      if (chunk !== null) yield chunk
      else if (stream.destroyed) throw errorOf()
      else if (!stream.readableEnded) await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    if (!stream.readableEnded) stream.close(http2.NGHTTP2_CANCEL)
  }
}
