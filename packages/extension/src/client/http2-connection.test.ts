/** Tests calls over HTTP/2 connections, also to servers that fail, or violate the protocol. */
import { createSecureServer, constants as http2, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTLSServer } from 'node:tls'
import { seconds, systemClock, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { endHeaders, frame } from '@capstan/testing/http2-frame'
import { afterEach, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { readBytes } from '../wire/body.ts'
import { NoAnswer } from './hook-failed.ts'
import { httpsHookTransport, type HttpsHookTransport } from './https-transport.ts'
import { flood, memory, serving as servingUntil, turn } from './test-sockets.ts'

let authority: CertifiedKey
let certified: { cert: string; key: string }
beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'test' })
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 'x',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  certified = { cert: certificate, key }
})

let clock: VirtualClock
let transport: HttpsHookTransport
let closing: (() => void)[]
beforeEach(() => {
  clock = new VirtualClock()
  transport = httpsHookTransport({ clock })
  closing = []
})
afterEach(() => {
  transport.close()
  for (const close of closing) close()
})

const serving = (server: Server) => servingUntil(server, closing)
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await turn()
}

interface TestServer {
  url: string
  /** Number of open connections. */
  open: number
  /** Number of connections opened so far. */
  opened: number
  /** Number of received calls. */
  calls: number
  session: ServerHttp2Session
}

/** Starts a server. `answer` receives the number of the call, starting with 1. */
async function server(
  answer: (stream: ServerHttp2Stream, call: number, body: Buffer) => void = ok,
  settings: { maxConcurrentStreams?: number } = {},
): Promise<TestServer> {
  const testServer = { open: 0, opened: 0, calls: 0 } as TestServer
  const http2Server = createSecureServer({ ...certified, settings })
  http2Server.on('session', (session) => {
    testServer.session = session
    testServer.open++
    testServer.opened++
    session.on('error', () => {})
    session.on('close', () => testServer.open--)
  })
  http2Server.on('stream', (stream) => {
    const call = ++testServer.calls
    stream.on('error', () => {})
    const read: Buffer[] = []
    stream.on('data', (chunk: Buffer) => read.push(chunk))
    stream.on('end', () => answer(stream, call, Buffer.concat(read)))
  })
  testServer.url = await serving(http2Server)
  return testServer
}

const ok = (stream: ServerHttp2Stream): void => {
  stream.respond({ ':status': 200 })
  stream.end('fine')
}

const post = async (url: string, signal: AbortSignal = new AbortController().signal, body = '{}') => {
  const { status, body: answer } = await transport.post({ url: new URL(url), ca: authority.certificate }, body, signal)
  return `${status} ${Buffer.from(await readBytes(answer, 2 ** 20)).toString()}`
}
/** Makes a call, and describes its result. */
const outcome = (url: string) =>
  post(url).catch((err: Error) => (err instanceof NoAnswer ? `${err.problem}: ${err.message}` : String(err)))

describe('calls share a connection', () => {
  it('that is still being opened', async () => {
    const testServer = await server()
    expect(new Set(await Promise.all(Array.from({ length: 8 }, () => post(testServer.url))))).toEqual(new Set(['200 fine']))
    expect(await post(testServer.url)).toBe('200 fine')
    expect(testServer).toMatchObject({ opened: 1, calls: 9 })
  })

  it('and open another connection in the background when each connection has eight calls in progress', async () => {
    const pendingResponses: (() => void)[] = []
    const testServer = await server((stream) => pendingResponses.push(() => ok(stream)))
    const responses: Promise<string>[] = []
    const calls = async (count: number) => {
      for (let i = 0; i < count; i++) responses.push(post(testServer.url))
      await until(() => pendingResponses.length === responses.length)
    }
    await calls(20)
    await until(() => testServer.opened === 2)
    await calls(7)
    for (let i = 0; i < 10; i++) await turn()
    expect(testServer.opened).toBe(2)
    while (testServer.opened === 2 && pendingResponses.length < 50) await calls(1)
    expect(testServer.opened).toBe(3)
    for (const respond of pendingResponses) respond()
    expect(new Set(await Promise.all(responses))).toEqual(new Set(['200 fine']))
  })

  it('if no other connection can be opened; the next attempt to open one follows after ten seconds', async () => {
    let connections = 0
    const testServer = await server()
    const only = (socket: Socket) =>
      connections++ === 0 ? relay(socket, Number(new URL(testServer.url).port)) : void socket.destroy()
    const relayed = await serving(createServer(only))
    const calls = async () => {
      expect(new Set(await Promise.all(Array.from({ length: 20 }, () => post(relayed))))).toEqual(new Set(['200 fine']))
    }
    await calls()
    await until(() => connections === 2)
    for (let i = 0; i < 3; i++) await calls()
    expect(connections).toBe(2)
    clock.step(clock.now() + seconds(10))
    await calls()
    await until(() => connections === 3)
  })

  it("up to the server's limit of streams, and open another connection for more calls", async () => {
    let atOnce = 0
    const pendingResponses: (() => void)[] = []
    const testServer = await server(
      (stream) => {
        atOnce++
        pendingResponses.push(() => ok(stream))
      },
      { maxConcurrentStreams: 2 },
    )
    const responses = Promise.all(Array.from({ length: 5 }, () => post(testServer.url)))
    await until(() => atOnce === 5)
    expect(testServer.opened).toBe(3)
    for (const respond of pendingResponses) respond()
    expect(await responses).toEqual(Array.from({ length: 5 }, () => '200 fine'))
  })

  it('also when each request has 1 MiB', async () => {
    const testServer = await server((stream, _, body) => {
      stream.respond({ ':status': 200 })
      stream.end(String(body.length))
    })
    const long = ' '.repeat(2 ** 20)
    const signal = new AbortController().signal
    const responses = await Promise.all(Array.from({ length: 40 }, () => post(testServer.url, signal, long)))
    expect(new Set(responses)).toEqual(new Set([`200 ${2 ** 20}`]))
    expect(testServer.opened).toBeLessThanOrEqual(2)
  })

  it('and an aborted call does not affect the others', async () => {
    const codes: number[] = []
    const testServer = await server((stream, call) => {
      if (call > 1) return ok(stream)
      stream.on('close', () => codes.push(stream.rstCode))
    })
    const caller = new AbortController()
    const first = post(testServer.url, caller.signal)
    await until(() => testServer.calls === 1)
    caller.abort(new Error('over'))
    await expect(first).rejects.toThrow('over')
    expect(await post(testServer.url)).toBe('200 fine')
    await until(() => codes.length === 1)
    expect(codes).toEqual([http2.NGHTTP2_CANCEL])
    expect(testServer.opened).toBe(1)
  })

  it('and a call with a response that is too long does not affect the others', async () => {
    const testServer = await server((stream, call) => {
      if (call > 1) return ok(stream)
      stream.respond({ ':status': 200 })
      flood(stream)
    })
    await expect(post(testServer.url)).rejects.toThrow('longer than')
    expect(await post(testServer.url)).toBe('200 fine')
    expect(testServer.opened).toBe(1)
  })

  it('and the memory of responses that are too long is released', async () => {
    const testServer = await server((stream) => {
      stream.respond({ ':status': 200 })
      flood(stream)
    })
    await expect(post(testServer.url)).rejects.toThrow('longer than')
    const memoryBefore = await memory()
    for (let i = 0; i < 20; i++) await expect(post(testServer.url)).rejects.toThrow('longer than')
    expect((await memory()) - memoryBefore).toBeLessThan(10 * 2 ** 20)
    expect(testServer.opened).toBe(1)
  })

  it('until it has been idle for 90 seconds', async () => {
    const testServer = await server()
    const start = clock.now()
    await post(testServer.url)
    // The next timer is a check, at a multiple of 30 seconds, or the timeout of a ping, 15 seconds after a check.
    const isPingAnswered = () => (clock.nextDue! - start) % seconds(30) === 0
    while (testServer.open === 1) {
      clock.step(clock.nextDue!)
      await until(() => testServer.open === 0 || isPingAnswered())
      if (clock.now() - start < seconds(90)) expect(testServer.open).toBe(1)
      for (let i = 0; i < 5; i++) await turn()
    }
    expect(clock.nextDue).toBeUndefined()
    expect(await post(testServer.url)).toBe('200 fine')
    expect(testServer.opened).toBe(2)
  })
})

describe('a call is repeated when the server did not start to process it', () => {
  it('because the server refused the stream', async () => {
    const testServer = await server((stream, call) => (call < 3 ? stream.close(http2.NGHTTP2_REFUSED_STREAM) : ok(stream)))
    expect(await outcome(testServer.url)).toBe('200 fine')
    expect(testServer).toMatchObject({ opened: 1, calls: 3 })
  })

  it('because the GOAWAY of the server names an earlier stream as the last one', async () => {
    const testServer = await server((stream, call) => {
      if (call === 2) stream.session!.goaway(http2.NGHTTP2_NO_ERROR, stream.id! - 2)
      else ok(stream)
    })
    expect(await outcome(testServer.url)).toBe('200 fine')
    expect(await outcome(testServer.url)).toBe('200 fine')
    expect(testServer).toMatchObject({ opened: 2, calls: 3 })
  })

  it('because the connection was closed before the call', async () => {
    const testServer = await server()
    for (let i = 0; i < 5; i++) {
      expect(await outcome(testServer.url)).toBe('200 fine')
      testServer.session.close()
    }
  })

  it('at most five times', async () => {
    const testServer = await server((stream) => stream.close(http2.NGHTTP2_REFUSED_STREAM))
    expect(await outcome(testServer.url)).toBe('ConnectionReset: stream error: REFUSED_STREAM; received from peer')
    expect(testServer.calls).toBe(6)
  })
})

describe('a call fails without repetition', () => {
  /** Starts a TLS server that negotiates HTTP/2, and leaves each connection to `connected`. */
  const serveTLS = (connected: (socket: Socket) => void) =>
    serving(createTLSServer({ ...certified, ALPNProtocols: ['h2'] }, connected) as Server)

  const goaway = (code: number) => frame('goaway', 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, code]))
  const reset = (code: number) => frame('reset', 0, 1, Buffer.from([0, 0, 0, code]))
  const incompleteResponse = Buffer.concat([
    frame('headers', endHeaders, 1, Buffer.from([status200])),
    frame('data', 0, 1, Buffer.from('{')),
  ])
  const longHeader = Buffer.concat([Buffer.from([0, 1, 120, 0x7f, 0xa1, 0x7e]), Buffer.alloc(16288 - 0x60, 120)])

  it.each<[string, Buffer[], string]>([
    [
      'when its stream is reset with INTERNAL_ERROR',
      [reset(2)],
      'ConnectionReset: stream error: INTERNAL_ERROR; received from peer',
    ],
    [
      'when its stream is reset within the body of the response',
      [incompleteResponse, reset(2)],
      'ConnectionReset: stream error: INTERNAL_ERROR; received from peer',
    ],
    [
      'when the server sends GOAWAY with ENHANCE_YOUR_CALM',
      [goaway(11)],
      'ConnectionReset: http2: server sent GOAWAY and closed the connection; ErrCode=ENHANCE_YOUR_CALM',
    ],
    [
      'when the server sends GOAWAY with NO_ERROR',
      [goaway(0)],
      'ConnectionReset: http2: server sent GOAWAY and closed the connection; ErrCode=NO_ERROR',
    ],
    ['when the connection is closed', [], 'ConnectionReset: unexpected EOF'],
    ['when the connection is closed within the body of the response', [incompleteResponse], 'ConnectionReset: unexpected EOF'],
    [
      'when the server stops sending HTTP/2',
      [Buffer.alloc(100, 'HTTP/1.1 200 OK\r\n')],
      'Garbage: connection error: PROTOCOL_ERROR',
    ],
    [
      'when the response headers are too long',
      [
        frame('headers', 0, 1, Buffer.concat([Buffer.from([status200])])),
        ...Array.from({ length: 5 }, (_, i) => frame('continuation', i === 4 ? endHeaders : 0, 1, longHeader)),
      ],
      'ConnectionReset: stream error: ENHANCE_YOUR_CALM',
    ],
    [
      'when the response headers do not end',
      [
        frame('headers', 0, 1, Buffer.from([status200])),
        ...Array.from({ length: 100 }, () => frame('continuation', 0, 1, Buffer.alloc(0))),
      ],
      'Garbage: connection error: PROTOCOL_ERROR',
    ],
  ])('%s', async (_, answer, error) => {
    let calls = 0
    const url = await serveTLS((socket) => {
      socket.on('error', () => {})
      socket.write(frame('settings', 0, 0))
      let read = Buffer.alloc(0)
      socket.on('data', (chunk) => {
        read = Buffer.concat([read, chunk])
        if (!read.includes('{}')) return
        calls++
        socket.end(Buffer.concat(answer))
      })
    })
    expect(await outcome(url)).toBe(error)
    expect(calls).toBe(1)
  })

  it('when the response is not HTTP/2, although HTTP/2 was negotiated', async () => {
    let connections = 0
    const url = await serveTLS((socket) => {
      connections++
      socket.write('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n'.repeat(10))
    })
    expect(await outcome(url)).toBe('Garbage: connection error: PROTOCOL_ERROR')
    expect(connections).toBe(1)
  })

  it('when all callers abort while the connection is being opened; the attempt ends, too', async () => {
    const connected = Promise.withResolvers<void>()
    let isClosed = false
    const url = await serveTLS((socket) => {
      socket.on('error', () => {})
      socket.on('close', () => (isClosed = true))
      socket.resume()
      connected.resolve()
    })
    const caller = new AbortController()
    const calls = [post(url, caller.signal), post(url, caller.signal)]
    await connected.promise
    caller.abort(new Error('over'))
    for (const call of calls) await expect(call).rejects.toThrow('over')
    await until(() => isClosed)
  })
})

test('calls do not join a connection attempt that began ten seconds ago', async () => {
  let connections = 0
  const testServer = await server()
  const relayed = await serving(
    createServer((socket) => void (connections++ === 0 || relay(socket, Number(new URL(testServer.url).port)))),
  )
  const caller = new AbortController()
  const hung = post(relayed, caller.signal)
  clock.step(clock.now() + seconds(9))
  const alsoHung = post(relayed, caller.signal)
  await until(() => connections === 1)
  clock.step(clock.now() + seconds(1))
  expect(await post(relayed)).toBe('200 fine')
  caller.abort(new Error('over'))
  await expect(hung).rejects.toThrow('over')
  await expect(alsoHung).rejects.toThrow('over')
})

test('an unresponsive connection is detected: its calls fail, and the next call succeeds', async () => {
  const testServer = await server((stream, call) => (call === 1 || call > 2 ? ok(stream) : undefined))
  const cut = { isCut: false }
  const relayed = await serving(createServer((socket) => relay(socket, Number(new URL(testServer.url).port), cut)))
  expect(await outcome(relayed)).toBe('200 fine')
  const pendingCall = outcome(relayed)
  await until(() => testServer.calls === 2)
  cut.isCut = true
  let isOver = false
  void pendingCall.then(() => (isOver = true))
  // The first check finds that data has arrived; only the second one sends a ping.
  for (const passed of [30, 30, 14]) {
    clock.step(clock.now() + seconds(passed))
    await turn()
  }
  expect(isOver).toBe(false)
  clock.step(clock.now() + seconds(1))
  expect(await pendingCall).toBe('ConnectionReset: http2: client connection lost')
  cut.isCut = false
  expect(await outcome(relayed)).toBe('200 fine')
})

test('a connection to a slow server is kept while the server responds to pings', async () => {
  const release = Promise.withResolvers<void>()
  const testServer = await server((stream) => void release.promise.then(() => ok(stream)))
  const answer = outcome(testServer.url)
  await until(() => testServer.calls === 1)
  let pings = 0
  testServer.session.on('ping', () => pings++)
  for (let i = 0; i < 10; i++) {
    clock.step(clock.now() + seconds(30))
    const next = clock.now() + seconds(30)
    await until(() => clock.nextDue === next)
  }
  expect(pings).toBeGreaterThan(5)
  release.resolve()
  expect(await answer).toBe('200 fine')
})

test('HTTP/2 is not used when DISABLE_HTTP2 is set', async () => {
  const versions: string[] = []
  const httpServer = createSecureServer({ ...certified, allowHTTP1: true }, ({ httpVersion }, response) => {
    versions.push(httpVersion)
    response.end('fine')
  })
  const url = await serving(httpServer)
  expect(await post(url)).toBe('200 fine')
  transport.close()
  transport = httpsHookTransport({ env: { DISABLE_HTTP2: 'yes' } })
  expect(await post(url)).toBe('200 fine')
  expect(versions).toEqual(['2.0', '1.1'])
})

test('the protocol is negotiated again after the last HTTP/1.1 connection was closed', async () => {
  const testServer = await server()
  let port = 0
  let isClosed = false
  const old = createTLSServer(certified, (socket) => {
    socket.on('error', () => {})
    socket.on('close', () => (isClosed = true))
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nold'))
  }) as Server
  port = Number(new URL(await serving(old)).port)
  const url = await serving(createServer((socket) => relay(socket, port)))
  expect(await post(url)).toBe('200 old')
  port = Number(new URL(testServer.url).port)
  await until(() => isClosed)
  await turn()
  expect(await post(url)).toBe('200 fine')
  expect(testServer.calls).toBe(1)
})

/** Entry 8 of HPACK's static table: `:status: 200`. */
const status200 = 0x88

/** Forwards bytes in both directions while both sides are open. Discards bytes while `line.isCut`. */
function relay(socket: Socket, port: number, line = { isCut: false }): void {
  const clientSocket = connect(port, '127.0.0.1')
  clientSocket.on('error', () => {})
  socket.on('data', (chunk) => line.isCut || clientSocket.write(chunk))
  clientSocket.on('data', (chunk) => line.isCut || socket.write(chunk))
  socket.on('close', () => clientSocket.destroy())
  clientSocket.on('close', () => socket.destroy())
}
