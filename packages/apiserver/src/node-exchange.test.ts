import { EventEmitter } from 'node:events'
import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { respond } from './node-exchange.ts'

/** A response over HTTP/1.1 whose socket has taken a part when `drain` is emitted. */
class SlowResponse extends EventEmitter {
  readonly socket = { writableHighWaterMark: 16_384 }
  readonly parts: (string | Buffer)[] = []
  isEnded = false
  writableFinished = false

  writeHead(): void {}

  write(part: string | Buffer): boolean {
    this.parts.push(part)
    return false
  }

  end(part: string | Buffer): void {
    this.parts.push(part)
    this.isEnded = true
    this.writableFinished = true
  }
}

test.each([['ASCII'], ['not only ASCII: é']])(
  'ends a long response only after the socket has taken the rest, so that no request follows before (%s)',
  async (text) => {
    const body = text.repeat(10_000)
    const res = new SlowResponse()
    const delivery = { clock: new VirtualClock(), timeout: 60_000, gone: AbortSignal.any([]) }
    const req = { method: 'GET', httpVersionMajor: 1, complete: true }
    const responded = respond({ status: 200, headers: {}, body }, req as never, res as never, delivery)
    await Promise.resolve()
    expect([res.parts.length, res.isEnded]).toEqual([1, false])
    res.emit('drain')
    await responded
    expect(res.isEnded).toBe(true)
    expect(Buffer.concat(res.parts.map((part) => Buffer.from(part as string))).toString()).toBe(body)
  },
)
