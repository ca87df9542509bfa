import { seconds, StatusError, VirtualClock } from '@capstan/kube'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { builtins } from '../../../../kubernetes-kinds/src/builtin-resources.ts'
import type { Attributes } from '../../auth/authorizer.ts'
import type { HttpResponse, HttpRequest } from '../exchange.ts'
import { TooManyRequests } from '../exchange.ts'
import { FairSeats, type Release } from './fair-seats.ts'
import { type Limits, requestLimiter, tooManyRequests } from './limits.ts'

interface TestRequest {
  readonly user?: string
  readonly groups?: readonly string[]
  readonly verb?: string
  readonly resource?: string
  readonly path?: string
}

const attributesOf = ({ user = 'alice', groups = [], verb = 'get', resource = 'configmaps', path }: TestRequest): Attributes =>
  path === undefined
    ? {
        kind: 'resource',
        user: { name: user, groups },
        verb,
        group: resource === 'leases' ? 'coordination.k8s.io' : '',
        resource,
      }
    : { kind: 'path', user: { name: user, groups }, verb, path }

const okResponse: HttpResponse = { status: 200, headers: {}, body: '' }

/** Creates a request limiter whose requests run until the test finishes them. */
function newLimiter(limits: Partial<Limits> = {}, isMemoryFull = () => false) {
  const clock = new VirtualClock()
  const admit = requestLimiter(clock, builtins.flowTable, limits, isMemoryFull)
  const started: { readonly user: string; readonly query: URLSearchParams; readonly request: HttpRequest; finish(): void }[] = []
  const settled = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  }
  return {
    clock,
    started,
    settled,
    send(
      testRequest: TestRequest,
      { query = '', body = () => Promise.resolve(Buffer.alloc(0)) }: { query?: string; body?: () => Promise<Buffer> } = {},
    ) {
      const abort = new AbortController()
      const request: HttpRequest = {
        method: testRequest.verb === 'create' ? 'POST' : 'GET',
        url: '/',
        headers: {},
        signal: abort.signal,
        streamSignal: abort.signal,
        body,
      }
      const attributes = attributesOf(testRequest)
      const parameters = new URLSearchParams(query)
      const response = admit(attributes, request, parameters, (received) => {
        const { promise, resolve } = Promise.withResolvers<HttpResponse>()
        started.push({ user: attributes.user.name, query: parameters, request: received, finish: () => resolve(okResponse) })
        return promise
      })
      response.catch(() => {})
      return { response, leave: () => abort.abort() }
    },
  }
}

describe('without priority and fairness', () => {
  const few = { priorityAndFairness: false, maxRequestsInflight: 2, maxMutatingRequestsInflight: 1 }

  test('reads and writes have separate limits, and requests beyond them get 429', async () => {
    const { send, settled, started } = newLimiter(few)
    const sent = [send({}), send({}), send({ verb: 'create' })]
    await settled()
    expect(started).toHaveLength(3)
    expect(await send({}).response).toBe(tooManyRequests)
    expect(await send({ verb: 'create' }).response).toBe(tooManyRequests)
    for (const { finish } of started) finish()
    expect(await Promise.all(sent.map(({ response }) => response))).toEqual([okResponse, okResponse, okResponse])
    send({})
    await settled()
    expect(started).toHaveLength(4)
  })

  test('0 disables the limit', async () => {
    const { send, settled, started } = newLimiter({ ...few, maxRequestsInflight: 0 })
    for (let count = 0; count < 50; count++) send({})
    await settled()
    expect(started).toHaveLength(50)
  })
})

test('while memory is nearly used up, requests get 429 before their body is read, but health checks, requests for Leases and requests of superusers are accepted', async () => {
  const { send, settled, started } = newLimiter({}, () => true)
  const body = () => Promise.reject(new Error('must not be read'))
  expect(await send({ verb: 'create' }, { body }).response).toBe(tooManyRequests)
  expect(await send({}).response).toBe(tooManyRequests)
  send({ groups: ['system:masters'] })
  send({ path: '/readyz' })
  send({ resource: 'leases', verb: 'update' })
  await settled()
  expect(started).toHaveLength(3)
})

test('the 429 response is plain text with Retry-After', () => {
  expect(tooManyRequests).toEqual({
    status: 429,
    headers: {
      'cache-control': 'no-cache, private',
      'content-type': 'text/plain; charset=utf-8',
      'retry-after': '1',
      'x-content-type-options': 'nosniff',
    },
    body: 'Too many requests, please try again later.\n',
  })
})

describe.each([[true], [false]])(
  'with priority and fairness %s, while one user has the maximum of concurrent requests,',
  (priorityAndFairness) => {
    const busy = async () => {
      const server = newLimiter({ priorityAndFairness, maxRequestsInflight: 20, maxMutatingRequestsInflight: 10 })
      for (let count = 0; count < 100; count++) server.send({ user: 'greedy', verb: count % 2 === 0 ? 'get' : 'create' })
      await server.settled()
      server.started.splice(0)
      return server
    }

    test.each<[string, TestRequest]>([
      ['readiness checks', { path: '/readyz' }],
      ['liveness checks', { path: '/livez/ping' }],
      ['superusers', { user: 'greedy', groups: ['system:masters'], verb: 'create' }],
      ['watches', { user: 'greedy', verb: 'watch' }],
    ])('%s are accepted', async (_, request) => {
      const { send, settled, started } = await busy()
      send(request)
      await settled()
      expect(started).toHaveLength(1)
    })

    const expected = priorityAndFairness ? 'are accepted' : 'are rejected'
    test.each<[string, TestRequest]>([
      ['requests of other users', { user: 'modest' }],
      ['requests for Leases by the same user', { user: 'greedy', verb: 'create', resource: 'leases' }],
      ['requests of nodes', { user: 'system:node:a', groups: ['system:nodes'] }],
      [
        'requests of controllers of the control plane',
        { user: 'system:serviceaccount:kube-system:garbage-collector', groups: ['system:serviceaccounts'] },
      ],
    ])(`%s ${expected}`, async (_, request) => {
      const { send, settled, started } = await busy()
      const { response } = send(request)
      await settled()
      expect(started).toHaveLength(priorityAndFairness ? 1 : 0)
      if (!priorityAndFairness) expect(await response).toBe(tooManyRequests)
    })
  },
)

describe('a request without a seat', () => {
  const fewSeats = { maxRequestsInflight: 1, maxMutatingRequestsInflight: 0 }

  test('waits a quarter of the request timeout, and then gets 429', async () => {
    const { send, settled, started, clock } = newLimiter(fewSeats)
    const sent = Array.from({ length: 20 }, () => send({}))
    await settled()
    const before = started.length
    expect(before).toBeLessThan(20)
    while (clock.step(clock.now() + seconds(14)));
    const last = sent.at(-1)!.response
    expect(await Promise.race([last, Promise.resolve('still waiting')])).toBe('still waiting')
    while (clock.step(clock.now() + seconds(1)));
    expect(await last).toBe(tooManyRequests)
    expect(started).toHaveLength(before)
  })

  test('is rejected at once when too many requests are waiting', async () => {
    const { send, settled } = newLimiter(fewSeats)
    for (let count = 0; count < 320; count++) send({})
    await settled()
    expect(await send({}).response).toBe(tooManyRequests)
  })

  test('leaves the queue when its client disconnects', async () => {
    const { send, settled, started } = newLimiter(fewSeats)
    const sent = Array.from({ length: 20 }, () => send({}))
    await settled()
    const before = started.length
    for (const { leave } of sent.slice(before, -1)) leave()
    for (const { finish } of started) finish()
    await settled()
    expect(started).toHaveLength(before + 1)
  })
})

test("a request that takes too long gets upstream's timeout error", async () => {
  const { send, clock, settled } = newLimiter({ requestTimeout: seconds(10) })
  const { response } = send({})
  await settled()
  while (clock.step(clock.now() + seconds(10)));
  expect(await response).toMatchObject({
    status: 504,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: '{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}\n',
  })
})

test.each([
  ['timeout=2s', 2],
  ['timeout=1h', 60],
  ['timeout=-1s', 60],
  ['', 60],
])('a request with the query %j times out after %d seconds', async (query, allowed) => {
  const { send, clock, settled } = newLimiter()
  const { response } = send({}, { query })
  await settled()
  while (clock.step(clock.now() + seconds(allowed) - 1));
  expect(await Promise.race([response, Promise.resolve('at work')])).toBe('at work')
  while (clock.step(clock.now() + 1));
  expect(await response).toMatchObject({ status: 504 })
})

test('the signal of `HttpRequest.ended` aborts when the request times out or its client disconnects', async () => {
  const { send, clock, settled, started } = newLimiter()
  send({ verb: 'create' })
  const second = send({ verb: 'create' })
  await settled()
  const [timedOut, disconnected] = started.map(({ request }) => request.ended!())
  second.leave()
  expect([timedOut!.aborted, disconnected!.aborted]).toEqual([false, true])
  while (clock.step(clock.now() + seconds(60)));
  expect(timedOut!.aborted).toBe(true)
})

test('a request that times out while it waits for a seat or for its body is not processed later', async () => {
  const { send, clock, settled, started } = newLimiter({ maxRequestsInflight: 7, maxMutatingRequestsInflight: 0 })
  for (let count = 0; count < 7; count++) send({})
  await settled()
  const query = 'timeout=1s'
  const waiting = Array.from({ length: 20 }, (_, index) => send({ user: `user-${index}` }, { query }))
  const body = Promise.withResolvers<Buffer>()
  const slow = send({ user: 'slow', verb: 'create', groups: ['system:masters'] }, { query, body: () => body.promise })
  await settled()
  const startedInTime = started.length
  while (clock.step(clock.now() + seconds(1)));
  await settled()
  const responses = await Promise.all([slow, ...waiting].map(({ response }) => Promise.race([response, Promise.resolve()])))
  expect(responses.filter((response) => response?.status === 504).length).toBeGreaterThan(1)
  body.resolve(Buffer.alloc(0))
  for (const { finish } of started) finish()
  await settled()
  // Requests of alice have the default timeout, which has not passed.
  expect(started.slice(startedInTime).filter(({ user }) => user !== 'alice')).toEqual([])
})

test('an invalid timeout is rejected', async () => {
  const rejection = new StatusError('BadRequest', 'invalid timeout specified in the request URL - time: invalid duration "abc"')
  await expect(newLimiter().send({}, { query: 'timeout=abc' }).response).rejects.toEqual(rejection)
})

test('a request occupies no seat while its body is received, but times out as usual', async () => {
  const { send, clock, settled, started } = newLimiter({ maxRequestsInflight: 7, maxMutatingRequestsInflight: 0 })
  const slow = Array.from({ length: 100 }, () => send({ verb: 'create' }, { body: () => new Promise(() => {}) }))
  send({})
  await settled()
  expect(started).toHaveLength(1)
  while (clock.step(clock.now() + seconds(60)));
  expect(await slow[0]!.response).toMatchObject({ status: 504 })
})

test('a watch without timeoutSeconds gets a timeout of one to two times minRequestTimeout; a timeout in the query is kept', async () => {
  const { send, started, settled } = newLimiter({ minRequestTimeout: seconds(100) })
  for (let count = 0; count < 20; count++) send({ verb: 'watch' })
  send({ verb: 'watch' }, { query: 'timeoutSeconds=5' })
  send({ verb: 'watch' }, { query: 'timeoutSeconds=abc' })
  await settled()
  const times = started.map(({ query }) => query.get('timeoutSeconds'))
  expect(times.slice(20)).toEqual(['5', 'abc'])
  expect(new Set(times.slice(0, 20)).size).toBe(20)
  for (const time of times.slice(0, 20)) expect(Number(time) >= 100 && Number(time) < 200).toBe(true)
})

test('requests never take more seats than exist, each waiting request gets a seat when others end, and no released seat is lost', async () => {
  const levels = { high: { shares: 3, lendable: 0.5 }, low: { shares: 5, lendable: 1 }, strict: { shares: 2, lendable: 0 } }
  const total = 10
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('take' as const),
      level: fc.constantFrom('high', 'low', 'strict'),
      flow: fc.constantFrom('a', 'b', 'c'),
    }),
    fc.record({ kind: fc.constant('release' as const), index: fc.nat(50) }),
    fc.record({ kind: fc.constant('leave' as const), index: fc.nat(50) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
      const seats = new FairSeats(levels, total, new VirtualClock(), 1000)
      const heldSeats: Release[] = []
      const waiting = new Set<AbortController>()
      const take = (level: keyof typeof levels, flow: string) => {
        const abort = new AbortController()
        const seat = seats.take(level, flow, () => abort.signal)
        if (typeof seat === 'function') return void heldSeats.push(seat)
        waiting.add(abort)
        seat.then(
          (release) => {
            waiting.delete(abort)
            heldSeats.push(release)
          },
          (err) => {
            waiting.delete(abort)
            expect(err).toBeInstanceOf(TooManyRequests)
          },
        )
      }
      for (const step of steps) {
        if (step.kind === 'take') take(step.level as keyof typeof levels, step.flow)
        else if (step.kind === 'release') heldSeats.splice(step.index % (heldSeats.length || 1), 1)[0]?.()
        else [...waiting][step.index % (waiting.size || 1)]?.abort()
        await Promise.resolve()
        await Promise.resolve()
        expect(heldSeats.length).toBeLessThanOrEqual(total)
      }
      // Waiting requests get seats as other requests end.
      while (heldSeats.length > 0) {
        heldSeats.pop()!()
        await Promise.resolve()
        await Promise.resolve()
      }
      expect(waiting.size).toBe(0)
      for (const flow of 'abcdefghij'.split('')) take('low', flow)
      // `low` can use its five seats, and the one that `high` lends.
      expect(heldSeats).toHaveLength(6)
    }),
    { seed: 1, numRuns: 200 },
  )
})

test('a request that ends before it waits for a seat is rejected, and does not enter the queue', async () => {
  const clock = new VirtualClock()
  const seats = new FairSeats({ only: { shares: 1, lendable: 0 } }, 1, clock, 1000)
  const first = seats.take('only', 'a', () => new AbortController().signal) as Release
  await expect(seats.take('only', 'b', () => AbortSignal.abort())).rejects.toThrow(TooManyRequests)
  expect(clock.nextDue).toBeUndefined()
  first()
  expect(seats.take('only', 'c', () => new AbortController().signal)).toBeTypeOf('function')
})

test('waiting flows with the same number of seats take turns', async () => {
  const seats = new FairSeats({ only: { shares: 1, lendable: 0 } }, 1, new VirtualClock(), 1000)
  const { signal } = new AbortController()
  const order: string[] = []
  const first = seats.take('only', 'a', () => signal) as Release
  const served = ['b', 'c', 'b', 'd'].map(async (flow) => {
    const release = await seats.take('only', flow, () => signal)
    order.push(flow)
    release()
  })
  first()
  await Promise.all(served)
  expect(order).toEqual(['b', 'c', 'd', 'b'])
})
