/** Tests of `listen` with misbehaving clients on real sockets, of `BodyBudget`, and of closing a listener under load. */
import { connect as connectHTTP2, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { once } from 'node:events'
import { connect as connectTCP } from 'node:net'
import { connect as connectTLS, type TLSSocket } from 'node:tls'
import { type Clock, seconds, systemClock, VirtualClock } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { endHeaders, endStream, frame } from '@capstan/testing/http2-frame'
import fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { authenticator } from './auth/authenticate.ts'
import type { HttpHandler } from './http/exchange.ts'
import { listen, type Listener, type Timeouts } from './listen.ts'
import { BodyBudget } from './body-budget.ts'

let ca: string
let serving: CertifiedKey
beforeAll(async () => {
  const authority = await makeAuthority(systemClock, { commonName: 'kubernetes' })
  ca = authority.certificate
  serving = await issueCertificate(authority, systemClock, { commonName: 's', usages: ['server'], ipAddresses: ['127.0.0.1'] })
})

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanUp) => cleanUp()))
})

const okHandler: HttpHandler = async (request) => {
  const body = request.method === 'POST' ? await request.body(1000) : ''
  return { status: 200, headers: {}, body: `fine ${body.length}` }
}

async function start(
  handler: HttpHandler = okHandler,
  { clock = systemClock, timeouts = {} }: { clock?: Clock; timeouts?: Partial<Timeouts> } = {},
) {
  const endpoint = { handler, authenticate: authenticator(), serving }
  const listener = await listen({ port: 0, endpointFor: () => endpoint, clock, timeouts })
  cleanups.push(() => listener.close(0))
  return listener
}

async function open({ port }: Listener, protocol: 'h2' | 'http/1.1' = 'http/1.1'): Promise<TLSSocket> {
  const socket = connectTLS({ host: '127.0.0.1', port, ca, ALPNProtocols: [protocol] })
  socket.on('error', () => {})
  cleanups.push(() => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

/** Reads until the server closes the connection. */
async function readToEnd(socket: TLSSocket): Promise<string> {
  let text = ''
  socket.on('data', (part: Buffer) => {
    text += part.toString('latin1')
  })
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
  return text
}

async function session({ url }: Listener, options: object = {}): Promise<ClientHttp2Session> {
  const session = connectHTTP2(url, { ca, ...options })
  session.on('error', () => {})
  cleanups.push(() => session.destroy())
  await once(session, 'connect')
  return session
}

const get = (session: ClientHttp2Session, path = '/') =>
  new Promise<number>((resolve, reject) => {
    const stream = session.request({ ':path': path })
    stream
      .on('response', (headers) => resolve(headers[':status'] ?? 0))
      .on('error', reject)
      .resume()
  })

/** Reports whether another client is served. */
const serves = async (listener: Listener): Promise<boolean> => (await get(await session(listener))) === 200

const settled = async () => {
  for (let turn = 0; turn < 300; turn++) await new Promise(setImmediate)
}

describe('a slow client is disconnected', () => {
  const timeouts = { handshake: 100, headers: 200, reading: 200 }

  test('when it does not begin the TLS handshake', async () => {
    const { port } = await start(okHandler, { timeouts })
    const socket = connectTCP(port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'close')
  })

  test.each([
    ['when its headers do not end', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: '],
    [
      'when it does not send its body, and the handler does not read the body',
      'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n',
    ],
  ])('%s', async (_, text) => {
    const socket = await open(await start(okHandler, { timeouts }))
    socket.write(text)
    await readToEnd(socket)
  })

  test('when it has sent only part of its body by the end of the response; over HTTP/2, its stream is closed without an error', async () => {
    const listener = await start(async () => ({ status: 504, headers: {}, body: 'too slow' }))
    const socket = await open(listener)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1')
    expect(await readToEnd(socket)).toMatch(/^HTTP\/1.1 504 [^]*connection: close[^]*too slow$/i)

    const stream = (await session(listener)).request({ ':method': 'POST', ':path': '/' })
    stream.write('1')
    stream.resume()
    await once(stream, 'close')
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR)
  })
})

describe.each(['HTTP/1.1', 'HTTP/2'])('over %s, when a client does not read,', (protocol) => {
  const large = Buffer.alloc(64 * 1024 * 1024)
  const largeResponses: [string, HttpHandler][] = [
    ['a large response', async () => ({ status: 200, headers: {}, body: large })],
    [
      'a stream',
      async ({ streamSignal }) => ({
        status: 200,
        headers: {},
        body: (async function* () {
          while (!streamSignal.aborted) yield large.subarray(0, 64 * 1024)
        })(),
      }),
    ],
  ]
  test.each(largeResponses)('%s is aborted by a timeout', async (_, handler) => {
    const clock = new VirtualClock()
    const listener = await start(handler, { clock })
    let ended = false
    if (protocol === 'HTTP/1.1') {
      const socket = await open(listener)
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      socket.on('close', () => {
        ended = true
      })
      await settled()
      clock.step(clock.now() + seconds(30))
      while (clock.step(clock.now() + seconds(30)));
      // The client notices the end of the connection only while it reads.
      socket.resume()
      await once(socket, 'close')
    } else {
      const stream = (await session(listener)).request({ ':path': '/' })
      stream.on('error', () => {})
      stream.on('close', () => {
        ended = true
      })
      await once(stream, 'response')
      await settled()
      expect(ended).toBe(false)
      while (clock.step(clock.now() + seconds(15)));
      for (let count = 0; count < 5; count++) {
        await settled()
        while (clock.step(clock.now() + seconds(15)));
      }
      stream.resume()
      if (!ended) await once(stream, 'close')
    }
    expect(ended).toBe(true)
  })

  test('other requests are not blocked', async () => {
    const listener = await start(async (request, identity) =>
      request.url === '/stream' ? largeResponses[1]![1](request, identity) : okHandler(request, identity),
    )
    if (protocol === 'HTTP/1.1') {
      const socket = await open(listener)
      socket.pause()
      socket.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n')
    } else {
      const shared = await session(listener)
      for (let count = 0; count < 20; count++)
        shared
          .request({ ':path': '/stream' })
          .on('error', () => {})
          .pause()
      await settled()
      // Requests on the same connection are not blocked either.
      expect(await get(shared)).toBe(200)
    }
    await settled()
    expect(await serves(listener)).toBe(true)
  })
})

describe('headers that are too large are rejected', () => {
  const long = 'a'.repeat(1024 * 1024 + 2000)

  test('over HTTP/1.1, where the URL counts as part of the headers', async () => {
    const socket = await open(await start())
    socket.write(`GET /${long} HTTP/1.1\r\nHost: a\r\n\r\n`)
    expect(await readToEnd(socket)).toMatch(/^HTTP\/1.1 431 Request Header Fields Too Large\r\n/)
  })

  test('over HTTP/2, while long selectors are accepted', async () => {
    const listener = await start()
    expect(await get(await session(listener), `/?labelSelector=${long.slice(0, 60_000)}`)).toBe(200)
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`x-${index}`, long.slice(0, 12_000)]))
    const carelessClient = await session(listener, { maxSendHeaderBlockLength: 10_000_000 })
    const outcome = await new Promise((resolve) => {
      const stream = carelessClient.request({ ':path': '/', ...many }).resume()
      stream.on('response', (headers) => resolve(headers[':status']))
      stream.on('error', () => {})
      stream.on('close', () => resolve('refused'))
    })
    expect(outcome).not.toBe(200)
    expect(await serves(listener)).toBe(true)
  })
})

describe('the budget for bodies', () => {
  const requester = (flow: string, level = 'global-default') => ({ level, flow, isExempt: flow === 'admin' })
  /** Takes bytes for a user one by one, at most 10,000, and returns how many the budget allows. */
  const takeAll = (budget: BodyBudget, user: ReturnType<typeof requester>): number => {
    const share = budget.share()
    let bytes = 0
    while (bytes < 10_000 && share.take(1, user)) bytes++
    return bytes
  }

  test('allows one user a third, so that another user can take bytes, too', () => {
    const budget = new BodyBudget(3000)
    expect(takeAll(budget, requester('mallory'))).toBe(1000)
    expect(takeAll(budget, requester('mallory'))).toBe(0)
    expect(takeAll(budget, requester('alice'))).toBeGreaterThan(400)
  })

  test('leaves bytes to other priority levels when the users of one level take all that they can', () => {
    const budget = new BodyBudget(3000)
    for (let user = 0; user < 100; user++) takeAll(budget, requester(`mallory-${user}`))
    expect(takeAll(budget, requester('alice', 'leader-election'))).toBeGreaterThan(400)
  })

  test('never rejects superusers', () => {
    const budget = new BodyBudget(3000)
    for (let user = 0; user < 100; user++) takeAll(budget, requester(`mallory-${user}`))
    expect(takeAll(budget, requester('admin'))).toBe(10_000)
  })

  test('gets back the bytes of an ended request, and only once', () => {
    const budget = new BodyBudget(30)
    const share = budget.share()
    expect([share.take(10, requester('alice')), share.take(1, requester('alice'))]).toEqual([true, false])
    share.free()
    share.free()
    expect(takeAll(budget, requester('alice'))).toBe(10)
  })
})

const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame('settings', 0, 0)])
/** `GET https /` with an authority, in HPACK. */
const request = Buffer.from([0x82, 0x87, 0x84, 0x41, 1, 0x61])
const repeated = (count: number, makeFrame: (index: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, index) => makeFrame(index)))

test.each<[string, () => Buffer]>([
  ['pings', () => repeated(100_000, () => frame('ping', 0, 0, Buffer.alloc(8)))],
  ['settings', () => repeated(100_000, () => frame('settings', 0, 0, Buffer.from([0, 3, 0, 0, 0, 100])))],
  [
    'requests that are reset',
    () =>
      repeated(20_000, (index) =>
        Buffer.concat([
          frame('headers', endStream | endHeaders, 2 * index + 1, request),
          frame('reset', 0, 2 * index + 1, Buffer.from([0, 0, 0, 8])),
        ]),
      ),
  ],
  [
    'endless headers',
    () =>
      Buffer.concat([
        frame('headers', endStream, 1, request),
        repeated(10_000, () => frame('continuation', 0, 1, Buffer.alloc(1000, 0x82))),
      ]),
  ],
  ['empty data', () => Buffer.concat([frame('headers', endHeaders, 1, request), repeated(100_000, () => frame('data', 0, 1))])],
  ['priorities', () => repeated(100_000, (index) => frame('priority', 0, 2 * index + 1, Buffer.from([0, 0, 0, 0, 16])))],
  ['window updates', () => repeated(100_000, () => frame('windowUpdate', 0, 0, Buffer.from([0, 0, 0, 1])))],
  ['unknown frames', () => repeated(100_000, () => frame(77, 0, 0, Buffer.alloc(10)))],
  ['streams above the limit', () => repeated(5000, (index) => frame('headers', endHeaders, 2 * index + 1, request))],
])('other clients are served during a flood of HTTP/2 %s', async (_, flood) => {
  const listener = await start()
  const socket = await open(listener, 'h2')
  // The client does not read responses either.
  socket.pause()
  socket.write(preface)
  socket.write(flood())
  expect(await serves(listener)).toBe(true)
  await settled()
  expect(await serves(listener)).toBe(true)
})

/** Factor for the number of runs: CAPSTAN_FUZZ=100 runs a hundred times as many. */
const runFactor = Number(process.env.CAPSTAN_FUZZ ?? 1)

test('the server survives arbitrary bytes', async () => {
  const listener = await start()
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom(
        'GET ',
        'POST ',
        '/',
        ' HTTP/1.1\r\n',
        'Host: a\r\n',
        '\r\n',
        'Content-Length: 5\r\n',
        'Content-Length: -1\r\n',
        'Transfer-Encoding: chunked\r\n',
        '5\r\nhello\r\n',
        '0\r\n\r\n',
        'ffffffffffffffff\r\n',
        '\0',
        'Expect: 100-continue\r\n',
        'Upgrade: h2c\r\nConnection: upgrade\r\n',
      )
      .map((text) => Buffer.from(text)),
  )
  const h2 = fc.oneof(
    fc
      .record({ type: fc.nat(12), flags: fc.nat(255), stream: fc.nat(6), payload: fc.uint8Array({ maxLength: 40 }) })
      .map(({ type, flags, stream, payload }) => frame(type, flags, stream, Buffer.from(payload))),
    fc.constantFrom(
      preface,
      frame('headers', endStream | endHeaders, 1, request),
      frame('headers', endHeaders, 3, request),
      frame('data', endStream, 3, Buffer.from('{}')),
    ),
  )
  const conversation = fc.oneof(
    fc.array(piece, { maxLength: 8 }).map((pieces) => ({ protocol: 'http/1.1' as const, bytes: Buffer.concat(pieces) })),
    fc.array(h2, { maxLength: 8 }).map((frames) => ({ protocol: 'h2' as const, bytes: Buffer.concat([preface, ...frames]) })),
  )
  await fc.assert(
    fc.asyncProperty(conversation, async ({ protocol, bytes }) => {
      const socket = await open(listener, protocol)
      const ended = readToEnd(socket)
      socket.end(bytes)
      expect(await ended).not.toMatch(/^HTTP\/1.1 5/)
      // Keeps only the cleanup of the listener.
      cleanups.length = 1
    }),
    { seed: 1, numRuns: 100 * runFactor },
  )
  expect(await serves(listener)).toBe(true)
})

test('a listener under load can be closed: accepted requests are completed, watches end, and clients are disconnected', async () => {
  let working = 0
  const listener = await start(async ({ url, streamSignal }) => {
    if (url === '/watch') {
      const body = (async function* () {
        while (!streamSignal.aborted) {
          yield Buffer.from('event\n')
          await new Promise(setImmediate)
        }
      })()
      return { status: 200, headers: {}, body }
    }
    working++
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    return { status: 200, headers: {}, body: 'done' }
  })
  const watching = await session(listener)
  const watches: ClientHttp2Stream[] = Array.from({ length: 50 }, () => watching.request({ ':path': '/watch' }))
  const ends = watches.map((stream) => once(stream.resume(), 'end'))
  let disconnected = 0
  let succeeded = 0
  const clients = Array.from({ length: 20 }, async () => {
    const client = await session(listener)
    try {
      for (;;) {
        if ((await get(client)) === 200) succeeded++
        if (client.closed || client.destroyed) return
      }
    } catch {
      disconnected++
    }
  })
  while (succeeded < 100) await new Promise(setImmediate)
  await listener.close(seconds(5))
  await Promise.all(ends)
  await Promise.all(clients)
  expect(succeeded).toBe(working)
  expect(disconnected).toBeLessThanOrEqual(20)
})
