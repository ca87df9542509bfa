/** Sends one request over HTTP/1.1, which is used if the server does not support HTTP/2, or HTTP/2 is disabled. */
import type { IncomingMessage } from 'node:http'
import { type Agent, request } from 'node:https'
import type { Socket } from 'node:net'
import { goError, NotHandled, unexpectedEnd } from './connection-errors.ts'
import type { Exchange } from './host-connections.ts'
import type { HttpResponse } from './transport.ts'

/** Bytes that were written to each keep-alive connection before its current request. */
const sentBefore = new WeakMap<Socket, number>()

/**
 * Sends a request. Calls `onClose` when the request is closed, with or without a response.
 * @throws NotHandled if a reused connection fails before any byte of the request is written to it
 */
export const exchangeHttp1 = (
  agent: Agent,
  { url, payload, headers, signal }: Exchange,
  onClose: () => void,
): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: 'POST',
      agent,
      headers: { ...headers, 'content-type': 'application/json', 'content-length': payload.length },
    })
    // The `signal` option of `request` would make each call 5 % slower.
    const abort = () => outgoing.destroy(signal.reason as Error)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
    outgoing.once('close', () => {
      if (outgoing.socket) sentBefore.set(outgoing.socket, outgoing.socket.bytesWritten)
      signal.removeEventListener('abort', abort)
      onClose()
    })
    outgoing.on('response', (incoming: IncomingMessage) => {
      resolve({ status: incoming.statusCode ?? 0, body: bodyOf(incoming, url) })
    })
    outgoing.on('error', (err: NodeJS.ErrnoException) => {
      if (signal.aborted) return reject(signal.reason)
      const translated = goError(err, url)
      // Once a byte was written, the server may have processed the request. Go's net/http decides in the same way for requests that are not
      // idempotent (shouldRetryRequest).
      const { socket } = outgoing
      const isUnsent = outgoing.reusedSocket && (!socket || sentBefore.get(socket) === socket.bytesWritten)
      reject(isUnsent ? new NotHandled(translated, 2) : translated)
    })
    outgoing.end(payload)
  })

/** Returns the body of a response. A reader that stops early closes the connection. */
async function* bodyOf(incoming: IncomingMessage, url: URL): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of incoming) yield chunk as Uint8Array
  } catch (err) {
    throw prematureCloseCodes.has((err as NodeJS.ErrnoException).code ?? '') ? unexpectedEnd(err) : goError(err as Error, url)
  }
}

const prematureCloseCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'])
