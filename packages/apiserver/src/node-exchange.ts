/** One exchange on Node's sockets, HTTP/1.1 or HTTP/2: its body is read and its answer written, with patience that ends. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Clock } from '@capstan/kube'
import type { HttpAnswer } from './http/exchange.ts'
import { BodyTooLarge, TooManyRequests } from './http/exchange.ts'

export type Req = Http2ServerRequest | IncomingMessage
/** Node's HTTP/2 responses have the same methods; their types only differ too much to be called as a union. */
export type Res = ServerResponse

/** Room for the bodies of all requests together: many that are large come one after the other, or not at all. */
export class BodyRoom {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** Room for one request, given back with `free`. */
  share(): { take(bytes: number): boolean; free(): void } {
    let taken = 0
    return {
      take: (bytes) => {
        if (bytes > this.#left) return false
        this.#left -= bytes
        taken += bytes
        return true
      },
      free: () => {
        this.#left += taken
        taken = 0
      },
    }
  }
}

/** The whole body. @throws BodyTooLarge, and TooManyRequests when there is no room for it */
export function readBody(req: Req, limit: number, room: { take(bytes: number): boolean }): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let hasRoom = true
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      hasRoom &&= size > limit || room.take(chunk.length)
      // What is too long is still read to its end, up to a point, so that the client gets to see the answer.
      if (size <= limit && hasRoom) chunks.push(chunk)
      else {
        chunks.length = 0
        if (size > 8 * limit) req.destroy()
      }
    })
    req.on('end', () => {
      if (size > limit) reject(new BodyTooLarge())
      else if (!hasRoom) reject(new TooManyRequests())
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    })
    req.on('error', reject)
    req.on('close', () => reject(clientGone))
  })
}

/** One reason for all, since each new one costs a stack trace. */
export const clientGone = new Error('the client went away')

export interface Delivery {
  readonly clock: Clock
  /** Milliseconds after which a reader that takes nothing is let go. */
  readonly patience: number
  readonly gone: AbortSignal
}

/** Sends the answer; resolves when all of it is on its way, or nobody takes it. */
export async function respond({ status, headers, body }: HttpAnswer, req: Req, res: Res, delivery: Delivery): Promise<void> {
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
    // ASCII is joined with the head, and both are encoded in one go: heads are Latin-1.
    if (typeof body === 'string' && body.length === length) res.end(body, 'latin1')
    else res.end(body)
  } else {
    // Clients wait for the head before they take a watch as started.
    res.flushHeaders()
    for await (const part of body) {
      if (delivery.gone.aborted) break
      if (res.writableLength + part.length < MaxUntaken) res.write(part)
      else await taken(part, res, delivery)
    }
    res.end()
  }
  if (!res.writableFinished && !delivery.gone.aborted) await patiently(res, delivery, (done) => res.once('finish', done))
  // Whoever is answered before having sent everything need not send the rest.
  if (isUnread && 'stream' in req) (res as unknown as Http2ServerResponse).stream.close(constants.NGHTTP2_NO_ERROR)
}

/** Whether the client has yet to send a part of the body. */
const hasUnreadBody = (req: Req): boolean =>
  'stream' in req ? !req.stream.endAfterHeaders && !req.stream.readableEnded : !req.complete

/**
 * Bytes of a stream that wait for the socket. Node holds them, encrypted, outside of the JavaScript heap, for each of hundreds of readers,
 * and what that has once taken it keeps: less than Node would let wait.
 */
const MaxUntaken = 32 * 1024

/** A part that cannot be sent any more is not done with before the connection is: others have their turn until then. */
const taken = (part: Buffer, res: Res, delivery: Delivery): Promise<void> =>
  patiently(res, delivery, (done) => res.write(part, (err) => err || done()))

/** Resolves when it is done or the client has gone; who makes us wait too long, goes. */
const patiently = (res: Res, { clock, patience, gone }: Delivery, begin: (done: () => void) => void): Promise<void> =>
  new Promise((resolve) => {
    const timer = clock.schedule(patience, () => res.destroy())
    const done = () => {
      timer.cancel()
      gone.removeEventListener('abort', done)
      resolve()
    }
    gone.addEventListener('abort', done, { once: true })
    begin(done)
  })
