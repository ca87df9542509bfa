import { once } from 'node:events'
import { request as httpsRequest } from 'node:https'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect as connectTCP } from 'node:net'
import { connect as connectTLS, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { seconds, silent, systemClock, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Listening, listen, type ListenOptions } from './listen.ts'
import type { FetchHandler } from './server.ts'

let authority: CertifiedKey
let certified: CertifiedKey
let client: CertifiedKey
beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'test' })
  certified = await issueCertificate(authority, systemClock, { commonName: 'x', usages: ['server'], ipAddresses: ['127.0.0.1'] })
  client = await issueCertificate(authority, systemClock, { commonName: 'core', usages: ['client'] })
})

const open: { close(grace?: number): Promise<void> }[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close(0)
})
const serve = async (handle: FetchHandler, options: Partial<ListenOptions> = {}): Promise<Listening> => {
  const server = await listen(handle, { ...certified, ...options })
  open.push(server)
  return server
}
const echo: FetchHandler = async (request) => new Response(`${new URL(request.url).pathname} ${await request.text()}`)

interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: { readonly [name: string]: unknown }
}
const post = (port: number, path: string, body: string, requestOptions: object = {}): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      ca: authority.certificate,
      agent: false as const,
      ...requestOptions,
    }
    const outgoing = httpsRequest(options, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text, headers: incoming.headers }))
      incoming.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })

async function postHttp2(port: number, path: string, body: string): Promise<Reply> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate })
  const stream = session.request({ ':method': 'POST', ':path': path })
  stream.end(body)
  const [headers] = (await once(stream, 'response')) as [{ [name: string]: unknown }]
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk as string
  session.close()
  return { status: Number(headers[':status']), text, headers }
}

describe('a listening server', () => {
  it('serves HTTP/1.1 and HTTP/2', async () => {
    const { port } = await serve(echo)
    expect(await post(port, '/a', 'one')).toMatchObject({ status: 200, text: '/a one' })
    expect(await postHttp2(port, '/b', 'two')).toMatchObject({ status: 200, text: '/b two' })
  })

  it("serves HTTP/2 clients that cancel each stream after the last byte of the response, like upstream's client", async () => {
    const { port } = await serve(echo)
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate })
    const ended = new Promise<never>((_, reject) =>
      session.on('error', reject).on('goaway', (code) => reject(new Error(`${code}`))),
    )
    const call = async () => {
      const stream = session.request({ ':method': 'POST', ':path': '/a' })
      stream.on('data', () => stream.close(constants.NGHTTP2_CANCEL)).on('error', () => {})
      stream.end('one')
      await once(stream, 'close')
    }
    // Node's server treats 1,000 resets of open streams as an attack, and would send GOAWAY.
    for (let calls = 0; calls < 1200; calls += 50) await Promise.race([Promise.all(Array.from({ length: 50 }, call)), ended])
    session.close()
  })

  it('responds to HEAD without a body', async () => {
    const { port } = await serve(echo)
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate })
    const stream = session.request({ ':method': 'HEAD', ':path': '/a' })
    const [headers] = (await once(stream, 'response')) as [{ [name: string]: unknown }]
    expect(headers).toMatchObject({ ':status': 200, 'content-length': '3' })
    expect(await stream.setEncoding('utf8').toArray()).toEqual([])
    session.close()
  })

  it('does not read a host from a path that begins with two slashes', async () => {
    const { port } = await serve(echo)
    expect((await post(port, '//evil.test/a', '')).text).toBe('//evil.test/a ')
  })

  it('can respond before the whole request is read', async () => {
    const { port } = await serve(async (request) => {
      for await (const _ of request.body ?? []) break
      return new Response('enough', { status: 413 })
    })
    const large = 'x'.repeat(4 * 1024 * 1024)
    // If an HTTP/1.1 client continues to send, its connection may be closed before it has read the response.
    const first = await post(port, '/', large).then(
      ({ status }) => status,
      (err: NodeJS.ErrnoException) => err.code,
    )
    expect(first).toBeOneOf([413, 'EPIPE', 'ECONNRESET'])
    expect(await postHttp2(port, '/', large)).toMatchObject({ status: 413, text: 'enough' })
    expect(await post(port, '/', '')).toMatchObject({ status: 413 })
  })

  it("aborts the handler's signal when the caller disconnects or cancels its HTTP/2 stream", async () => {
    const aborted: Promise<unknown>[] = []
    const begun = async (calls: number) => {
      while (aborted.length < calls) await new Promise((resolve) => setImmediate(resolve))
    }
    const { port } = await serve(async ({ signal }) => {
      const one = once(signal, 'abort')
      aborted.push(one)
      await one
      return new Response()
    })
    const abort = new AbortController()
    const call = post(port, '/', '', { signal: abort.signal }).catch((err: Error) => err.name)
    await begun(1)
    abort.abort()
    expect(await call).toBe('AbortError')
    await aborted[0]

    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate })
    const stream = session.request({ ':method': 'POST', ':path': '/' }).end()
    await begun(2)
    stream.close(constants.NGHTTP2_CANCEL)
    await aborted[1]
    session.close()
  })

  it('resets only the HTTP/2 stream, and closes the HTTP/1.1 connection, of a call whose handler throws', async () => {
    const { port } = await serve(async (request) => {
      if (request.url.endsWith('/broken')) throw new Error('broken')
      return new Response('fine')
    })
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate })
    const broken = session.request({ ':method': 'POST', ':path': '/broken' }).end()
    await expect(once(broken, 'response')).rejects.toThrow(/closed with error code/)
    let text = ''
    for await (const chunk of session.request({ ':path': '/' }).setEncoding('utf8')) text += chunk as string
    expect(text).toBe('fine')
    session.close()
    await expect(post(port, '/broken', '')).rejects.toThrow('socket hang up')
  })

  it('rejects headers that are too long', async () => {
    const { port } = await serve(echo)
    expect((await post(port, '/', '', { headers: { long: 'x'.repeat(70_000) } })).status).toBe(431)
  })

  it('rejects TLS versions below minVersion', async () => {
    const { port } = await serve(echo, { minVersion: 'TLSv1.3' })
    await expect(post(port, '/', '', { maxVersion: 'TLSv1.2' })).rejects.toThrow(/alert protocol version/)
    expect((await post(port, '/a', '')).status).toBe(200)
  })

  it('rejects callers without a client certificate if clientCA is set, over HTTP/1.1 and HTTP/2', async () => {
    const { port } = await serve(echo, { clientCA: authority.certificate })
    await expect(post(port, '/', '')).rejects.toThrow(/certificate required|ECONNRESET/)
    await expect(postHttp2(port, '/', '')).rejects.toThrow()
    expect((await post(port, '/a', '', { cert: client.certificate, key: client.key })).status).toBe(200)
  })

  it('accepts client certificates of the new authority after clientCA is renewed, and rejects certificates of the old authority', async () => {
    const other = await makeAuthority(systemClock, { commonName: 'other' })
    const newClient = await issueCertificate(other, systemClock, { commonName: 'newClient', usages: ['client'] })
    const server = await serve(echo, { clientCA: authority.certificate })
    const callAs = ({ certificate: cert, key }: CertifiedKey) => post(server.port, '/', '', { cert, key })
    await expect(callAs(newClient)).rejects.toThrow()
    server.renew({ ...certified, clientCA: other.certificate })
    expect((await callAs(newClient)).status).toBe(200)
    await expect(callAs(client)).rejects.toThrow()
  })

  it('keeps its certificate if the new certificate and key do not match', async () => {
    const server = await serve(echo)
    expect(() => server.renew({ certificate: certified.certificate, key: client.key })).toThrow(/key values mismatch/)
    expect((await post(server.port, '/a', '')).status).toBe(200)
  })

  it('closes idle HTTP/2 connections', async () => {
    const clock = new VirtualClock()
    const { port } = await serve(echo, { clock })
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate })
    const stream = session.request({ ':path': '/' })
    stream.resume()
    await once(stream, 'close')
    const closed = once(session, 'close')
    await untilDue(clock)
    clock.step(clock.now() + seconds(90))
    await closed
  })

  it('closes the connection of a client that sends invalid HTTP and does not disconnect', async () => {
    const clock = new VirtualClock()
    const { port } = await serve(echo, { clock })
    const socket = connectTLS({ host: '127.0.0.1', port, ca: authority.certificate, allowHalfOpen: true } as ConnectionOptions)
    await once(socket, 'secureConnect')
    socket.on('error', () => {})
    socket.write('what?\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1.1 400 Bad Request/)
    await untilDue(clock)
    clock.step(clock.now() + seconds(1))
    while (!socket.destroyed) {
      socket.write('more')
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(clock.nextDue).toBeUndefined()
  })

  it('does not wait for a TLS handshake when it stops', async () => {
    const failures: unknown[] = []
    const server = await serve(echo, { log: { ...silent, debug: (_, fields) => void failures.push(fields?.err) } })
    const socket = connectTCP({ host: '127.0.0.1', port: server.port })
    const closed = once(socket, 'close')
    await once(socket, 'connect')
    // Connections are accepted in order: after this response, the server has accepted the first one.
    await post(server.port, '/', '')
    await server.close(0)
    await closed
    expect(failures).not.toContainEqual(expect.objectContaining({ code: 'ERR_TLS_HANDSHAKE_TIMEOUT' }))
  })

  it('closes the connection of a client that does not read the response', async () => {
    const clock = new VirtualClock()
    const { port } = await serve(async () => new Response('x'.repeat(16 * 1024 * 1024)), { clock })
    const socket: TLSSocket = connectTLS({ host: '127.0.0.1', port, ca: authority.certificate })
    await once(socket, 'secureConnect')
    socket.pause()
    const closed = once(socket, 'close')
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await untilDue(clock)
    clock.step(clock.now() + seconds(30))
    socket.resume()
    await closed
  })
})

describe('a stopping server', () => {
  async function slowServer(clock = new VirtualClock()) {
    let answer!: () => void
    const answers = new Promise<void>((resolve) => {
      answer = resolve
    })
    let called!: () => void
    const begun = new Promise<void>((resolve) => {
      called = resolve
    })
    const server = await serve(
      async () => {
        called()
        await answers
        return new Response('done')
      },
      { clock },
    )
    return { server, clock, begun, answer }
  }

  it('completes running calls, sends GOAWAY, and refuses new connections', async () => {
    const { server, begun, answer } = await slowServer()
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca: authority.certificate })
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.end()
    const goaway = once(session, 'goaway')
    const call = post(server.port, '/', '', { headers: { connection: 'keep-alive' } })
    await begun
    const closed = server.close()
    const [code] = (await goaway) as [number]
    expect(code).toBe(constants.NGHTTP2_NO_ERROR)
    // A process that another test starts inherits the listening socket until its program is loaded, and so keeps the port open
    // for a moment.
    await vi.waitFor(() => expect(post(server.port, '/', '')).rejects.toThrow('ECONNREFUSED'))
    answer()
    expect((await call).text).toBe('done')
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) text += chunk as string
    expect(text).toBe('done')
    await closed
  })

  it('closes connections whose calls do not end within the grace period', async () => {
    const { server, clock, begun } = await slowServer()
    const call = post(server.port, '/', '').catch((err: NodeJS.ErrnoException) => err.code)
    await begun
    const closed = server.close(seconds(5))
    clock.step(clock.now() + seconds(5))
    await closed
    expect(await call).toBe('ECONNRESET')
  })
})

/** Waits until a timer is pending on the clock. */
async function untilDue(clock: VirtualClock): Promise<void> {
  while (clock.nextDue === undefined) await new Promise((resolve) => setImmediate(resolve))
}
