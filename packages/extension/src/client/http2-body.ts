/** The body of an answer over HTTP/2. */
import { type ClientHttp2Stream, constants as http2 } from 'node:http2'

/**
 * A reader that stops early ends the stream with it, and nothing else. Not by the iterator of Node, to which a stream that HTTP/2 is
 * done with has been broken off, even if something is left to read; nor by letting it flow, which ends well however it ended.
 *
 * @param why says why there is no more, when there should be
 */
export async function* http2Body(stream: ClientHttp2Stream, why: () => Error): AsyncGenerator<Uint8Array> {
  let wake = () => {}
  const woken = () => wake()
  for (const event of ['readable', 'end', 'close']) stream.on(event, woken)
  try {
    while (!stream.readableEnded) {
      const chunk = stream.read() as Uint8Array | null
      if (chunk !== null) yield chunk
      else if (stream.destroyed) throw why()
      else if (!stream.readableEnded) await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    if (!stream.readableEnded) stream.close(http2.NGHTTP2_CANCEL)
  }
}
