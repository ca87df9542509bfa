import { once } from 'node:events'
import { connect as connectHTTP2, constants } from 'node:http2'
import { request } from 'node:https'
import { connect as connectTCP } from 'node:net'
import { connect } from 'node:tls'
import { silent, StatusError, systemClock } from '@capstan/kube'
import type { CertifiedKey } from '@capstan/kube/node'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { authenticator } from './auth/authenticate.ts'
import type { HttpHandler } from './http/exchange.ts'
import type { Endpoint } from './connections.ts'
import type { Listener } from './listen.ts'
import { listen } from './listen.ts'

interface Authority {
  ca: CertifiedKey
  server: CertifiedKey
  alice: CertifiedKey
}
let management: Authority
let workload: Authority
beforeAll(async () => {
  const make = async (name: string): Promise<Authority> => {
    const ca = await makeAuthority(systemClock, { commonName: 'kubernetes' })
    const issue = (commonName: string, options: object) =>
      issueCertificate(ca, systemClock, { commonName, usages: ['server', 'client'], ...options })
    const server = await issue('server', { dnsNames: [name, 'localhost'], ipAddresses: ['127.0.0.1'] })
    return { ca, server, alice: await issue('alice', { organizations: ['devs', 'ops'] }) }
  }
  management = await make('management')
  workload = await make('demo.test')
})

const listeners: Listener[] = []
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close(0)))
})

/** Responds with the name of the server, and the sender, method, URL and body of the request. */
const echo =
  (name: string): HttpHandler =>
  async (request, identity) => {
    const { method, url } = request
    const sender = identity.kind === 'user' ? `${identity.name}(${identity.groups.join(' ')})` : identity.kind
    return {
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: `${name}: ${sender} ${method} ${url} ${(await request.body(100)).toString()}`,
    }
  }

const endpoint = (authority: Authority, handler: HttpHandler): Endpoint => ({
  handler,
  authenticate: authenticator(new Map([['secret', { name: 'bob', groups: [] }]])),
  serving: authority.server,
  clientCA: authority.ca.certificate,
})

async function start(handler: HttpHandler = echo('management'), host = '127.0.0.1') {
  const main = endpoint(management, handler)
  const endpoints = new Map<string | undefined, Endpoint>([
    [undefined, main],
    ['localhost', main],
    ['demo.test', { ...endpoint(workload, echo('demo')), serving: () => Promise.resolve(workload.server) }],
  ])
  const listener = await listen({ host, port: 0, endpointFor: (name) => endpoints.get(name), clock: systemClock })
  listeners.push(listener)
  return { listener, endpoints }
}

interface Received {
  status: number | undefined
  text: string
}
const send = (listener: Listener, options: object, body?: string) =>
  new Promise<Received>((resolve, reject) => {
    const req = request(
      { host: '127.0.0.1', port: listener.port, path: '/x?y=1', ca: management.ca.certificate, agent: false, ...options },
      (res) => {
        let text = ''
        res.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        res.on('end', () => resolve({ status: res.statusCode, text }))
      },
    )
    req.on('error', reject).end(body)
  })
const withKey = ({ certificate: cert, key }: CertifiedKey) => ({ cert, key })

test('the handler receives the identity of the sender with each request', async () => {
  const { listener } = await start()
  const texts = await Promise.all([
    send(listener, {}),
    send(listener, withKey(management.alice)),
    send(listener, withKey(workload.alice)),
    send(listener, { headers: { authorization: 'Bearer secret' }, method: 'PUT' }, 'body'),
    send(listener, { headers: { authorization: 'Bearer wrong' } }),
  ])
  expect(texts.map(({ text }) => text)).toEqual([
    'management: anonymous GET /x?y=1 ',
    'management: alice(devs ops system:authenticated) GET /x?y=1 ',
    'management: anonymous GET /x?y=1 ',
    'management: bob(system:authenticated) PUT /x?y=1 body',
    'management: rejected GET /x?y=1 ',
  ])
})

test('a server that stops does not wait for a TLS handshake', async () => {
  const failures: unknown[] = []
  const main = endpoint(management, echo('management'))
  const log = { ...silent, debug: (_: string, fields?: { err?: unknown }) => void failures.push(fields?.err) }
  const listener = await listen({ port: 0, endpointFor: () => main, clock: systemClock, log })
  const socket = connectTCP({ host: '127.0.0.1', port: listener.port })
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  // Connections are accepted in order: after this request, the server has also accepted the connection of `socket`.
  await send(listener, {})
  await listener.close(0)
  await closed
  expect(failures).not.toContainEqual(expect.objectContaining({ code: 'ERR_TLS_HANDSHAKE_TIMEOUT' }))
})

test.each(['HTTP/1.1', 'HTTP/2'])('values of a repeated header may contain commas (%s)', async (protocol) => {
  const { listener } = await start(async ({ valuesOf }) => ({
    status: 200,
    headers: {},
    body: JSON.stringify(valuesOf?.('impersonate-group')),
  }))
  const groups = ['CN=ops,OU=people, DC=example', 'devs']
  const texts = {
    'HTTP/1.1': async () => (await send(listener, { headers: { 'Impersonate-Group': groups } })).text,
    'HTTP/2': async () => {
      const session = connectHTTP2(listener.url, { ca: management.ca.certificate })
      const stream = session.request({ ':path': '/', 'Impersonate-Group': groups }).setEncoding('utf8')
      let text = ''
      for await (const part of stream) text += part
      session.destroy()
      return text
    },
  }
  expect(await texts[protocol as keyof typeof texts]()).toBe(JSON.stringify(groups))
})

test.each([
  ['a Node client', {}],
  ['a client that prefers another cipher', { ciphers: 'TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256' }],
])('the server selects for %s the cipher that a Go server would select, with and without a server name', async (_, options) => {
  const { listener } = await start()
  for (const servername of ['', 'localhost']) {
    const socket = connect({ host: listener.host, port: listener.port, ca: management.ca.certificate, servername, ...options })
    await once(socket, 'secureConnect')
    expect(socket.getCipher().name).toBe('TLS_AES_128_GCM_SHA256')
    socket.destroy()
  }
})

test('servers on one port are selected by name, each with its own CA, and unknown names are rejected', async () => {
  const { listener } = await start()
  const demo = { servername: 'demo.test', ca: workload.ca.certificate }
  expect((await send(listener, demo)).text).toBe('demo: anonymous GET /x?y=1 ')
  expect((await send(listener, { ...demo, ...withKey(workload.alice) })).text).toMatch(/^demo: alice/)
  expect((await send(listener, { ...demo, ...withKey(management.alice) })).text).toMatch(/^demo: anonymous/)
  await expect(send(listener, { ...demo, servername: 'other.test' })).rejects.toThrow()
})

test('a request to a removed server on an open connection gets a 421 response', async () => {
  const { listener, endpoints } = await start()
  const session = connectHTTP2(listener.url, { servername: 'demo.test', ca: workload.ca.certificate })
  const get = () =>
    new Promise<number>((resolve, reject) => {
      session
        .request({ ':path': '/' })
        .on('response', (headers) => resolve(headers[':status'] ?? 0))
        .on('error', reject)
        .end()
    })
  try {
    expect(await get()).toBe(200)
    endpoints.delete('demo.test')
    expect(await get()).toBe(421)
  } finally {
    session.destroy()
  }
})

test('a StatusError of a handler becomes the response; another error becomes a response without its text', async () => {
  const { listener } = await start(({ url }) =>
    Promise.reject(url === '/starting' ? new StatusError('ServiceUnavailable', 'starting') : new TypeError('secret')),
  )
  expect(await send(listener, { path: '/starting' })).toMatchObject({
    status: 503,
    text: expect.stringContaining('"message":"starting"'),
  })
  expect(await send(listener, { path: '/' })).toEqual({ status: 500, text: '' })
})

test('over HTTP/1.1, a body twice as long as the limit is rejected with a response', async () => {
  const { listener } = await start(async (request) => {
    try {
      await request.body(100)
      return { status: 200, headers: {}, body: '' }
    } catch (err) {
      return { status: 413, headers: {}, body: (err as Error).name }
    }
  })
  expect(await send(listener, { method: 'POST' }, 'x'.repeat(200))).toEqual({ status: 413, text: 'BodyTooLarge' })
})

describe('a body whose declared length is too long is rejected before the client sends it', () => {
  const tooLong = async () => {
    const { listener } = await start(async (request) => ({
      status: 413,
      headers: {},
      body: await request.body(100).then(
        () => 'read',
        (err: Error) => err.name,
      ),
    }))
    return { listener, ca: management.ca.certificate }
  }

  test('over HTTP/1.1, if it is more than eight times the limit', async () => {
    const { listener, ca } = await tooLong()
    const headers = { 'content-length': '801' }
    const req = request({ host: '127.0.0.1', port: listener.port, ca, agent: false, method: 'POST', headers })
    req.on('error', () => {}).flushHeaders()
    const status = await new Promise((resolve) => req.on('response', (res) => resolve(res.statusCode)))
    req.destroy()
    expect(status).toBe(413)
  })

  test('over HTTP/2, and the connection stays open', async () => {
    const { listener, ca } = await tooLong()
    const session = connectHTTP2(listener.url, { ca })
    const post = async () => {
      const stream = session.request({ ':path': '/', ':method': 'POST', 'content-length': '101' }, { endStream: false })
      const headers = await new Promise<{ ':status'?: number }>((resolve) => stream.on('response', resolve))
      stream.close()
      return headers[':status']
    }
    expect([await post(), await post()]).toEqual([413, 413])
    session.destroy()
  })
})

test.each([['HTTP/1.1'], ['HTTP/2']])(
  'a stream over %s waits for a slow reader, and ends when the client cancels the request',
  async (protocol) => {
    let produced = 0
    let ended: () => void
    const end = new Promise<void>((resolve) => {
      ended = resolve
    })
    const { listener } = await start(async ({ streamSignal }) => ({
      status: 200,
      headers: {},
      body: (async function* () {
        try {
          await new Promise((resolve) => setImmediate(resolve))
          while (!streamSignal.aborted) {
            produced++
            yield Buffer.alloc(64 * 1024)
          }
        } finally {
          ended()
        }
      })(),
    }))
    const ca = management.ca.certificate
    const settled = async () => {
      for (let before = -1; before !== produced; ) {
        before = produced
        for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate)
      }
    }
    if (protocol === 'HTTP/2') {
      const session = connectHTTP2(listener.url, { ca })
      const stream = session.request({ ':path': '/' })
      await new Promise((resolve) => stream.on('response', resolve))
      await settled()
      stream.close(constants.NGHTTP2_CANCEL)
      await end
      session.destroy()
    } else {
      const req = request({ host: '127.0.0.1', port: listener.port, ca, agent: false })
      req.on('error', () => {}).end()
      await new Promise((resolve) => req.on('response', (res) => resolve(res.pause())))
      await settled()
      req.destroy()
      await end
    }
    expect(produced).toBeLessThan(400)
  },
)

/** On Linux, an address on which no other test listens, so that a freed port stays free. macOS has only one loopback address by default. */
const ownAddress = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1'

test('closing ends streams, lets a request finish, and frees the port', async () => {
  let finish: (() => void) | undefined
  const { listener } = await start(async ({ url, streamSignal }) => {
    if (url === '/stream') {
      const body = (async function* () {
        yield Buffer.from('start ')
        await new Promise((resolve) => streamSignal.addEventListener('abort', resolve))
        yield Buffer.from('end')
      })()
      return { status: 200, headers: {}, body }
    }
    await new Promise<void>((resolve) => {
      finish = resolve
    })
    return { status: 200, headers: {}, body: 'finished' }
  }, ownAddress)
  const target = { host: ownAddress, servername: 'localhost' }
  const stream = send(listener, { ...target, path: '/stream' })
  const slow = send(listener, { ...target, path: '/slow' })
  while (!finish) await new Promise(setImmediate)
  const closed = listener.close(10_000)
  expect((await stream).text).toBe('start end')
  finish?.()
  expect((await slow).text).toBe('finished')
  await closed
  const secondListener = await listen({
    host: ownAddress,
    port: listener.port,
    endpointFor: () => endpoint(management, echo('again')),
    clock: systemClock,
  })
  listeners.push(secondListener)
})

test('the error for a port in use names the port', async () => {
  const { listener } = await start()
  await expect(listen({ port: listener.port, endpointFor: () => undefined, clock: systemClock })).rejects.toThrow(
    `Cannot listen on 127.0.0.1:${listener.port}: the port is in use by another process`,
  )
})

test('a stream that has no data to send ends when the client resets it', async () => {
  const ended: Promise<void>[] = []
  const { listener } = await start(async ({ streamSignal }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    streamSignal.addEventListener('abort', () => resolve())
    ended.push(promise)
    async function* body() {
      yield Buffer.from('first')
      await promise
    }
    return { status: 200, headers: {}, body: body() }
  })
  const session = connectHTTP2(listener.url, { ca: management.ca.certificate, servername: 'localhost' })
  for (let i = 0; i < 5; i++) {
    const stream = session.request({ ':path': '/' })
    await new Promise<void>((resolve) => stream.once('data', () => resolve()))
    stream.close(constants.NGHTTP2_CANCEL)
  }
  await Promise.all(ended)
  expect(ended).toHaveLength(5)
  session.close()
})
