/** One HTTP exchange on Node's sockets, HTTP/1.1 or HTTP/2: reads the body, and writes the response with a timeout. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Clock } from '@capstan/kube'
import type { BodyShare } from './body-budget.ts'
import type { HttpResponse, Requester } from './http/exchange.ts'
import { BodyTooLarge, TooManyRequests } from './http/exchange.ts'

export type Req = Http2ServerRequest | IncomingMessage
/** Response of Node. HTTP/2 responses are cast to this HTTP/1.1 type: they have the same methods, but a union of the types is not callable. */
export type Res = ServerResponse

/** A body that is too long is read up to this many times its limit, so that clients that send it all before they read get the response. */
const DrainFactor = 8

/**
 * Reads the whole body. Closes a request whose body exceeds `DrainFactor` times `limit`.
 *
 * @throws BodyTooLarge when the body is longer than `limit` bytes; TooManyRequests when the budget is used up; when the request is closed
 * before the end of the body, the error of its stream or, if there is none, `clientDisconnected`
 */
export function readBody(req: Req, limit: number, budget: Pick<BodyShare, 'take'>, requester?: Requester): Promise<Buffer> {
  const declared = Number(req.headers['content-length'] ?? 0)
  // An HTTP/2 stream can be closed without its connection, so its input need not be drained.
  if (declared > ('stream' in req ? limit : DrainFactor * limit)) return Promise.reject(new BodyTooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let isWithinBudget = true
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      isWithinBudget &&= size > limit || declared > limit || budget.take(chunk.length, requester)
      if (size <= limit && declared <= limit && isWithinBudget) chunks.push(chunk)
      else {
        chunks.length = 0
        if (size > DrainFactor * limit) req.destroy()
      }
    })
    req.on('end', () => {
      if (size > limit) reject(new BodyTooLarge())
      else if (!isWithinBudget) reject(new TooManyRequests())
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    })
    req.on('error', reject)
    req.on('close', () => reject(clientDisconnected))
  })
}

/** One shared error, because each new Error costs a stack trace. */
export const clientDisconnected = new Error('the client has disconnected')

/** Limits for sending one response. */
export interface Delivery {
  readonly clock: Clock
  /** Milliseconds after which the connection (HTTP/1.1) or the stream (HTTP/2) of a client that does not read is closed. */
  readonly timeout: number
  /** Aborted when the client disconnects, or resets the stream, before the response is complete. */
  readonly closed: AbortSignal
}

/** Sends the response. Resolves when the socket has taken the whole response, or when the client has disconnected. */
export async function respond({ status, headers, body }: HttpResponse, req: Req, res: Res, delivery: Delivery): Promise<void> {
  const isStream = typeof body !== 'string' && !Buffer.isBuffer(body)
  const isEmpty = req.method === 'HEAD' || status === 304 || status === 204
  const length = isStream || isEmpty ? undefined : Buffer.byteLength(body)
  const isUnread = hasUnreadBody(req)
  res.writeHead(status, {
    ...headers,
    ...(length === undefined ? {} : { 'content-length': String(length) }),
    ...(isUnread && req.httpVersionMajor === 1 ? { connection: 'close' } : {}),
  } as Record<string, string | string[]>)
  if (isEmpty) res.end()
  else if (!isStream) {
    // With the encoding of the head, Latin-1, Node joins an ASCII body with the head and encodes both at once.
    const isASCII = typeof body === 'string' && body.length === length
    const isLong = req.httpVersionMajor === 1 && length! >= (res.socket?.writableHighWaterMark ?? 0) / 2
    const remainder = isLong
      ? await sendFirstPart(typeof body === 'string' && !isASCII ? Buffer.from(body) : body, res, delivery)
      : body
    if (isASCII) res.end(remainder, 'latin1')
    else res.end(remainder)
  } else {
    // Clients wait for the head before they treat a watch as started.
    res.flushHeaders()
    for await (const part of body) {
      if (delivery.closed.aborted) break
      if (res.writableLength + part.length < MaxBuffered) res.write(part)
      else await send(part, res, delivery)
    }
    res.end()
  }
  if (!res.writableFinished && !delivery.closed.aborted) await withinTimeout(res, delivery, (done) => res.once('finish', done))
  // The client need not send the rest of a body that the handler did not read.
  if (isUnread && 'stream' in req) (res as unknown as Http2ServerResponse).stream.close(constants.NGHTTP2_NO_ERROR)
}

/** Number of bytes at the end of a long response that are sent separately. */
const LastPartSize = 1024

/**
 * Sends a long HTTP/1.1 response except its last 1024 bytes, waits until the socket has taken the sent part, and returns the rest. Otherwise
 * the client could have the whole response, and send its next request, while Node still waits for the socket: Node then pauses the parser,
 * and fails when the next body arrives (HPE_PAUSED). A response is long when its body fills half
 * of the socket's buffer or more: the head needs space in the buffer, too.
 */
async function sendFirstPart(bytes: string | Buffer, res: Res, delivery: Delivery): Promise<string | Buffer> {
  const end = bytes.length - LastPartSize
  if (end <= 0) return bytes
  const firstPart = bytes.slice(0, end)
  if (!delivery.closed.aborted) await withinTimeout(res, delivery, (done) => res.write(firstPart, 'latin1', done))
  return bytes.slice(end)
}

/** Reports whether part of the request body has not been read (HTTP/2) or has not arrived (HTTP/1.1). */
const hasUnreadBody = (req: Req): boolean =>
  'stream' in req ? !req.stream.endAfterHeaders && !req.stream.readableEnded : !req.complete

/**
 * Bytes of a stream that may wait for the socket. Node buffers them encrypted, outside of the JavaScript heap, for each of hundreds of
 * readers, and does not shrink the buffer. Therefore the limit is lower than Node's default.
 */
const MaxBuffered = 32 * 1024

/** Sends a part. If the write fails, waits until the connection closes: a loop of failing writes would block other requests. */
const send = (part: Buffer, res: Res, delivery: Delivery): Promise<void> =>
  withinTimeout(res, delivery, (done) => res.write(part, (err) => err || done()))

/** Resolves when `begin` has called `done` or the client has disconnected. Closes the connection or HTTP/2 stream after the timeout. */
const withinTimeout = (res: Res, { clock, timeout, closed }: Delivery, begin: (done: () => void) => void): Promise<void> =>
  new Promise((resolve) => {
    const timer = clock.schedule(timeout, () => res.destroy())
    const done = () => {
      timer.cancel()
      closed.removeEventListener('abort', done)
      resolve()
    }
    closed.addEventListener('abort', done, { once: true })
    begin(done)
  })
