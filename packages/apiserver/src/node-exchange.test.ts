import { EventEmitter } from 'node:events'
import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { respond } from './node-exchange.ts'

/** A response over HTTP/1.1 whose socket accepts a part when the test calls `take`. */
class SlowResponse extends EventEmitter {
  readonly socket = { writableHighWaterMark: 16_384 }
  readonly parts: (string | Buffer)[] = []
  isEnded = false
  writableFinished = false
  take = () => {}

  writeHead(): void {}

  write(part: string | Buffer, _encoding: BufferEncoding, taken: () => void): boolean {
    this.parts.push(part)
    this.take = taken
    return false
  }

  end(part: string | Buffer): void {
    this.parts.push(part)
    this.isEnded = true
    this.writableFinished = true
  }
}

test.each([
  ['long, ASCII', 'ASCII'.repeat(10_000)],
  ['long, not only ASCII', 'é'.repeat(10_000)],
  ['almost as long as the socket buffer', 'x'.repeat(16_384 - 100)],
  ['almost as long as the socket buffer in bytes, half as long in characters', 'é'.repeat(8000)],
])('the end of a response is sent only after the socket has accepted the first part (%s)', async (_, body) => {
  const res = new SlowResponse()
  const delivery = { clock: new VirtualClock(), timeout: 60_000, closed: AbortSignal.any([]) }
  const req = { method: 'GET', httpVersionMajor: 1, complete: true }
  const responded = respond({ status: 200, headers: {}, body }, req as never, res as never, delivery)
  await Promise.resolve()
  expect([res.parts.length, res.isEnded]).toEqual([1, false])
  res.take()
  await responded
  expect(res.isEnded).toBe(true)
  expect(Buffer.concat(res.parts.map((part) => Buffer.from(part as string))).toString()).toBe(body)
})
