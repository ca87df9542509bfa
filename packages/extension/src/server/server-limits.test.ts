import { BeforeClusterCreate, hookPath } from '@capstan/api'
import { type LogFields, type Logger, messageOf, seconds, silent, VirtualClock } from '@capstan/kube'
import { Registry } from 'prom-client'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Answer } from '../author/answer.ts'
import { fail, holdFor, proceedNow } from '../author/answer.ts'
import { defineExtension, type HandlerCall, on } from '../author/define-extension.ts'
import { extensionServer, type ServedCall, type ServerLimits } from './server.ts'
import { servedCallMetrics } from './server-metrics.ts'

const cluster = { metadata: { name: 'demo', namespace: 'default' }, spec: {} }

let clock: VirtualClock
let lines: [string, LogFields][]
let served: ServedCall[]
beforeEach(() => {
  clock = new VirtualClock()
  lines = []
  served = []
})

const recording = (bound: LogFields): Logger => {
  const take = (message: string, fields: LogFields = {}) => void lines.push([message, { ...bound, ...fields }])
  return { ...silent, info: take, warn: take, error: take, child: (fields) => recording({ ...bound, ...fields }) }
}

type Call = HandlerCall<typeof BeforeClusterCreate>
function serverOf(handle: (call: Call) => Answer | Promise<Answer>, limits: Partial<ServerLimits> = {}) {
  const extension = defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, handle as never)] })
  const server = extensionServer(extension, { clock, log: recording({}), observe: (call) => served.push(call), limits })
  const url = `https://x${hookPath(BeforeClusterCreate, 'gate')}`
  return (query = '', init: RequestInit = {}) =>
    server(new Request(`${url}${query}`, { method: 'POST', body: JSON.stringify({ cluster }), ...init }))
}
const untilCalls = async (count: () => number, expected: number) => {
  while (count() < expected) await new Promise((resolve) => setImmediate(resolve))
}

describe("the caller's timeout", () => {
  it.each([
    ['?timeout=10s', seconds(10)],
    ['?timeout=1m30s', seconds(90)],
    ['?timeout=250ms', 250],
    ['', seconds(30)],
    ['?timeout=soon', seconds(30)],
    ['?timeout=-5s', seconds(30)],
  ])('with query %j aborts the handler and returns 504 after %i ms', async (query, limit) => {
    const signals: AbortSignal[] = []
    const call = serverOf(({ signal }) => {
      signals.push(signal)
      // This handler ignores its signal.
      return new Promise<never>(() => {})
    })
    const answer = call(query)
    await untilCalls(() => signals.length, 1)
    clock.step(clock.now() + limit - 1)
    expect(signals[0]!.aborted).toBe(false)
    clock.step(clock.now() + 1)
    expect(signals[0]!.reason).toMatchObject({ name: 'TimeoutError' })
    const response = await answer
    expect([response.status, await response.text()]).toEqual([504, 'handler "gate" did not respond in time\n'])
    expect(served).toEqual([{ hook: 'BeforeClusterCreate', handler: 'gate', status: 'Timeout', took: limit }])
  })

  it('does not matter after the caller disconnects: the handler is aborted at once', async () => {
    const caller = new AbortController()
    let reason: unknown
    const call = serverOf(
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            reason = signal.reason
            reject(signal.reason)
          }),
        ),
    )
    const answer = call('?timeout=10s', { signal: caller.signal })
    await new Promise((resolve) => setImmediate(resolve))
    caller.abort(new Error('gone'))
    await answer
    expect(messageOf(reason)).toBe('gone')
    expect(served).toMatchObject([{ status: 'Gone' }])
    // A disconnect of the caller does not count as a failure of the handler.
    expect(lines.map(([message]) => message)).toEqual(['Hook not answered'])
  })

  it('includes the time in which the body arrives', async () => {
    const call = serverOf(() => proceedNow())
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{')) })
    const answer = call('?timeout=5s', { body, duplex: 'half' } as RequestInit)
    clock.step(clock.now() + seconds(5))
    expect((await answer).status).toBe(504)
  })

  it('has no pending timer after the call', async () => {
    const call = serverOf(() => proceedNow())
    await call('?timeout=10s')
    expect(clock.nextDue).toBeUndefined()
  })
})

describe('concurrent calls', () => {
  it("over the limit wait, at most until their caller's timeout", async () => {
    const ends: (() => void)[] = []
    const call = serverOf(() => new Promise((resolve) => ends.push(() => resolve(proceedNow()))), { inFlight: 1 })
    const first = call('?timeout=1m')
    await untilCalls(() => ends.length, 1)
    const impatient = call('?timeout=5s')
    const patient = call('?timeout=1m')
    await new Promise((resolve) => setImmediate(resolve))
    clock.step(clock.now() + seconds(5))
    expect((await impatient).status).toBe(504)
    expect(ends).toHaveLength(1)
    ends[0]!()
    await untilCalls(() => ends.length, 2)
    ends[1]!()
    expect([(await first).status, (await patient).status]).toEqual([200, 200])
  })

  it('over the limit wait for handlers that continue after their timeout', async () => {
    const ends: (() => void)[] = []
    const call = serverOf(() => new Promise((resolve) => ends.push(() => resolve(proceedNow()))), { inFlight: 1 })
    const first = call('?timeout=5s')
    await untilCalls(() => ends.length, 1)
    clock.step(clock.now() + seconds(5))
    expect((await first).status).toBe(504)
    const second = call('?timeout=5s')
    await new Promise((resolve) => setImmediate(resolve))
    expect(ends).toHaveLength(1)
    ends[0]!()
    await untilCalls(() => ends.length, 2)
    ends[1]!()
    expect((await second).status).toBe(200)
  })

  it('are rejected while the request bodies would together exceed the memory budget', async () => {
    const ends: (() => void)[] = []
    const call = serverOf(() => new Promise((resolve) => ends.push(() => resolve(proceedNow()))), { bytes: 100 })
    const first = call()
    await untilCalls(() => ends.length, 1)
    const second = await call()
    expect([second.status, await second.text()]).toEqual([
      503,
      'handler "gate" was not called: the request bodies in progress exceed the memory budget\n',
    ])
    ends[0]!()
    expect((await first).status).toBe(200)
    const third = call()
    await untilCalls(() => ends.length, 2)
    ends[1]!()
    expect((await third).status).toBe(200)
  })
})

describe('each call', () => {
  const answers: [string, () => Answer, object][] = [
    ['that proceeds', () => proceedNow(), { status: 'Success' }],
    ['that blocks', () => holdFor(7, 'quota'), { status: 'Success', retryAfterSeconds: 7, reason: 'quota' }],
    ['that fails', () => fail('not today'), { status: 'Failure', reason: 'not today' }],
  ]
  it.each(answers)('%s is logged in one line', async (_, handle, fields) => {
    await serverOf(handle)()
    const always = { hook: 'BeforeClusterCreate', handler: 'gate', ms: 0, Cluster: 'default/demo' }
    expect(lines).toEqual([['Hook answered', { ...always, ...fields }]])
  })

  it('is logged without its query and request body', async () => {
    const call = serverOf(() => {
      throw new Error('broken')
    })
    const secret = { settings: { token: 'hunter2' }, cluster: { ...cluster, spec: { canary: 'hunter2' } } }
    await call('?token=hunter2', { body: JSON.stringify(secret) })
    await call('', { body: '{"cluster": hunter2}' })
    expect(lines).toHaveLength(3)
    expect(JSON.stringify(lines)).not.toContain('hunter2')
  })

  it('whose response cannot be encoded as JSON fails with 500', async () => {
    const answer = { kind: 'proceed', response: { items: 1n } } as unknown as Answer
    expect((await serverOf(() => answer)()).status).toBe(500)
    expect(served).toMatchObject([{ status: 'Error' }])
  })

  it('is counted in the metrics by status, with its duration', async () => {
    const registry = new Registry()
    const observe = servedCallMetrics(registry)
    const answers = [proceedNow(), holdFor(1, ''), fail('no')]
    const call = serverOf(() => {
      clock.step(clock.now() + seconds(2))
      const answer = answers.shift()
      if (!answer) throw new Error('broken')
      return answer
    })
    for (let i = 0; i < 4; i++) await call('?timeout=1m')
    for (const one of served) observe(one)
    const labels = 'hook="BeforeClusterCreate",handler="gate"'
    expect((await registry.metrics()).split('\n').filter((line) => /(_total|_sum)\{/.test(line))).toEqual([
      `capstan_extension_requests_total{${labels},status="Success"} 2`,
      `capstan_extension_requests_total{${labels},status="Failure"} 1`,
      `capstan_extension_requests_total{${labels},status="Error"} 1`,
      `capstan_extension_request_duration_seconds_sum{${labels}} 8`,
    ])
  })
})
