/**
 * Tests failures of connections and of responses between the hook client and an extension, with real sockets. Each failed call
 * ends at once, or when its timeout of ten seconds expires on the test's clock. Calls to another extension succeed nevertheless.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer as createTCPServer, type LookupFunction, type Server, type Socket } from 'node:net'
import { createServer as createTLSServer, type TLSSocket } from 'node:tls'
import { createInterface } from 'node:readline'
import { BeforeClusterCreate, createCatalog, type ExtensionConfig, hookCatalog } from '@capstan/api'
import { hours, seconds, silent, systemClock, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { proceedNow } from '../author/answer.ts'
import { createExtensionClient, type ExtensionClient } from './client.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { HookFailed } from './hook-failed.ts'
import { httpsHookTransport, type HttpsHookTransport } from './https-transport.ts'
import { flood, memory, serving as servingUntil, turn } from './test-sockets.ts'
import { type Listening, listen } from '../server/listen.ts'
import { extensionServer } from '../server/server.ts'

const cluster = { apiVersion: 'v1', kind: 'Cluster', metadata: { name: 'c', namespace: 'd' } } as never
const MiB = 1024 * 1024

let authority: CertifiedKey
let certified: CertifiedKey
beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'test' })
  certified = await issue()
})
const issue = (names: { ipAddresses?: string[]; dnsNames?: string[] } = { ipAddresses: ['127.0.0.1'] }, clock = systemClock) =>
  issueCertificate(authority, clock, { commonName: 'x', usages: ['server'], validity: hours(1), ...names })

let clock: VirtualClock
let transport: HttpsHookTransport
let closing: (() => void)[]
let good: Listening
beforeEach(async () => {
  clock = new VirtualClock()
  transport = httpsHookTransport()
  closing = [() => transport.close()]
  good = await listen(
    extensionServer(defineExtension({ name: 'good', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })),
    certified,
  )
})
afterEach(async () => {
  for (const close of closing) close()
  await good.close(0)
})

const configOf = (name: string, url: string, ca = authority.certificate): ExtensionConfig =>
  ({
    metadata: { name },
    spec: { clientConfig: { url, caBundle: Buffer.from(ca).toString('base64') }, namespaceSelector: {} },
    status: {
      handlers: [
        {
          name: `gate.${name}`,
          requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' },
          failurePolicy: 'Fail',
        },
      ],
    },
  }) as unknown as ExtensionConfig

function clientFor(url: string, ca?: string): ExtensionClient {
  const client = createExtensionClient({
    transport,
    catalog: createCatalog(hookCatalog),
    clock,
    log: silent,
    namespaceLabels: async () => ({}),
  })
  client.warmUp([configOf('bad', url, ca), configOf('good', good.url)])
  return client
}
const call = (client: ExtensionClient, name: 'bad' | 'good') =>
  client.call(BeforeClusterCreate, cluster, `gate.${name}`, { cluster })
/** Describes the result of a call: `answered`, or code, problem and cause of its error, without the address. */
const outcomeOf = (client: ExtensionClient) =>
  call(client, 'bad').then(
    () => ['answered'],
    (err: unknown) => {
      if (!(err instanceof HookFailed)) throw err
      const cause = err.message
        .replace(/^.*?http call failed: (Post "[^"]*": )?/s, '')
        .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST:PORT')
      return [err.code, err.problem, cause]
    },
  )

/** The TCP sockets of TLS sockets, by the client's port: only TCP sockets can be reset. */
const raw = new Map<number | undefined, Socket>()
const serving = (server: Server) => servingUntil(server, closing, (socket) => void raw.set(socket.remotePort, socket))
const reset = ({ remotePort }: Socket) => void raw.get(remotePort)!.resetAndDestroy()

/** Starts a TCP server without TLS. */
const tcp = (connected: (socket: Socket) => void) => serving(createTCPServer(connected))

/** Starts a TLS server that calls `onRequest` after it has read a request. */
const tls = (onRequest: (socket: TLSSocket) => void, pair: CertifiedKey = certified) =>
  serving(
    createTLSServer({ cert: pair.certificate, key: pair.key }, (socket) => {
      let read = ''
      socket.on('error', () => {})
      const take = (chunk: Buffer) => {
        read += chunk.toString('latin1')
        const [head = '', body] = read.split('\r\n\r\n')
        if (body === undefined || body.length < Number(/content-length: (\d+)/i.exec(head)?.[1])) return
        socket.off('data', take)
        socket.resume()
        onRequest(socket)
      }
      socket.on('data', take)
    }) as Server,
  )

const head = (status: string, ...headers: string[]) =>
  `HTTP/1.1 ${status}\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`

describe('a call fails at once', () => {
  const cases: [string, () => Promise<string>, string[]][] = [
    [
      'because no server listens',
      async () => {
        const server = createTCPServer()
        const url = await serving(server)
        await new Promise((resolve) => server.close(resolve))
        return url
      },
      ['unreachable', 'ConnectionRefused', 'dial tcp HOST:PORT: connect: connection refused'],
    ],
    [
      'because its connection is reset before TLS',
      () => tcp((socket) => socket.once('data', () => socket.resetAndDestroy())),
      ['unreachable', 'ConnectionReset', 'connection reset by peer'],
    ],
    [
      'because its connection is closed before TLS',
      () => tcp((socket) => socket.once('data', () => socket.end())),
      ['unreachable', 'ConnectionReset', 'EOF'],
    ],
    [
      'because its connection is closed before headers',
      () => tls((socket) => socket.end()),
      ['unreachable', 'ConnectionReset', 'EOF'],
    ],
    [
      'because its connection is reset before headers',
      () => tls(reset),
      ['unreachable', 'ConnectionReset', 'connection reset by peer'],
    ],
    [
      'because its connection is reset within headers',
      () => tls((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-', () => reset(socket))),
      ['unreachable', 'ConnectionReset', 'connection reset by peer'],
    ],
    [
      'because its connection is reset within the body',
      () => tls((socket) => socket.write(`${head('200 OK', 'content-length: 100')}{"status":`, () => reset(socket))),
      ['unreachable', 'ConnectionReset', 'failed to decode response: unexpected EOF'],
    ],
    [
      'because its connection is closed within the body',
      () => tls((socket) => socket.end(`${head('200 OK', 'transfer-encoding: chunked')}5\r\n{"sta`)),
      ['unreachable', 'ConnectionReset', 'failed to decode response: unexpected EOF'],
    ],
    [
      'because the server responds with HTTP without TLS',
      () => tcp((socket) => socket.end(head('400 Bad Request'))),
      ['unreachable', 'NotTLS', 'tls: first record does not look like a TLS handshake'],
    ],
    [
      'because the response is not HTTP',
      () => tls((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')),
      [
        'unreachable',
        'Garbage',
        'net/http: HTTP/1.x transport connection broken: malformed HTTP response: Parse Error: Expected HTTP/, RTSP/ or ICE/',
      ],
    ],
    [
      'because the response headers do not end',
      () =>
        tls((socket) => {
          socket.write('HTTP/1.1 200 OK\r\n')
          flood(socket, () => 'x: y\r\n'.repeat(100))
        }),
      [
        'unreachable',
        'Garbage',
        'net/http: HTTP/1.x transport connection broken: malformed HTTP response: Parse Error: Header overflow',
      ],
    ],
    [
      'because it is redirected',
      () => tls((socket) => socket.write(head('302 Found', 'location: /elsewhere', 'content-length: 0'))),
      ['bad-status', 'UnexpectedStatus', 'got response with status code 302 != 200: response : ""'],
    ],
    [
      'because the handler does not exist',
      () => tls((socket) => socket.write(`${head('404 Not Found', 'content-length: 4')}nope`)),
      ['bad-status', 'NotFound', 'got response with status code 404 != 200: response : "nope"'],
    ],
    [
      'because the server returns status 500 with a long body, which is cut in the message',
      () => tls((socket) => socket.write(`${head('500 Oh', 'content-length: 10000000')}${'x'.repeat(10_000_000)}`)),
      ['bad-status', 'UnexpectedStatus', `got response with status code 500 != 200: response : "${'x'.repeat(512)}..."`],
    ],
    [
      'because the server returns status 500 with an endless body',
      () => tls((socket) => (socket.write(head('500 Oh')), flood(socket))),
      ['bad-status', 'UnexpectedStatus', 'got response with status code 500 != 200: failed to read response body'],
    ],
    [
      'because the certificate is for another name',
      async () => tls(() => {}, await issue({ dnsNames: ['elsewhere.test'] })),
      [
        'unreachable',
        'TLSName',
        "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
      ],
    ],
    [
      'because the certificate has expired',
      async () => tls(() => {}, await issue(undefined, new VirtualClock(systemClock.now() - hours(2)))),
      [
        'unreachable',
        'CertificateExpired',
        'tls: failed to verify certificate: x509: certificate has expired or is not yet valid',
      ],
    ],
    [
      'because the server requires a client certificate',
      async () => {
        const server = await listen(async () => new Response(), { ...certified, clientCA: authority.certificate })
        closing.push(() => void server.close(0))
        return server.url
      },
      ['unreachable', 'ClientCertificate', 'remote error: tls: certificate required'],
    ],
  ]
  test.each(cases)('%s, and its error names the problem', async (_, start, outcome) => {
    const client = clientFor(await start())
    expect(await outcomeOf(client)).toEqual(outcome)
    expect(await call(client, 'good')).toMatchObject({ status: 'Success' })
    // No timer is pending.
    expect(clock.nextDue).toBeUndefined()
  })

  it('because the host name cannot be resolved, and succeeds once it can be resolved', async () => {
    let known = false
    const lookup: LookupFunction = (host, _options, callback) => {
      const notFound = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' })
      if (known) callback(null, [{ address: '127.0.0.1', family: 4 }])
      else callback(notFound, '')
    }
    transport.close()
    transport = httpsHookTransport({ lookup })
    const server = await listen(
      extensionServer(defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })),
      await issue({ dnsNames: ['gate.test.svc'] }),
    )
    const client = clientFor(`https://gate.test.svc:${server.port}`)
    expect(await outcomeOf(client)).toEqual(['unreachable', 'DNS', 'dial tcp: lookup gate.test.svc: no such host'])
    known = true
    expect(await outcomeOf(client)).toEqual(['answered'])
    await server.close(0)
  })

  it('because the certificate on a new connection has expired, while calls on the earlier connection succeed', async () => {
    const expired = await issue(undefined, new VirtualClock(systemClock.now() - hours(2)))
    const handle = extensionServer(
      defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] }),
    )
    let isLast = false
    const server = await listen(async (request) => {
      const response = await handle(request)
      if (isLast) response.headers.set('connection', 'close')
      return response
    }, certified)
    const client = clientFor(server.url)
    expect(await outcomeOf(client)).toEqual(['answered'])
    server.renew(expired)
    expect(await outcomeOf(client)).toEqual(['answered'])
    isLast = true
    expect(await outcomeOf(client)).toEqual(['answered'])
    expect(await outcomeOf(client)).toMatchObject(['unreachable', 'CertificateExpired', /expired/])
    await server.close(0)
  })
})

describe('a call to an extension that', () => {
  const cases: [string, (begun: () => void) => Promise<string>][] = [
    ['does not respond to the TLS handshake', (begun) => tcp((socket) => void socket.once('data', begun))],
    ['does not send response headers', (begun) => tls(begun)],
    ['does not end its headers', (begun) => tls((socket) => socket.write('HTTP/1.1 200 OK\r\n', begun))],
    ['does not begin its body', (begun) => tls((socket) => socket.write(head('200 OK', 'content-length: 10'), begun))],
    [
      'sends its response byte by byte',
      (begun) =>
        tls((socket) => {
          socket.write(head('200 OK', 'content-length: 1000000'))
          let sent = 0
          const sendByte = () => {
            if (socket.destroyed) return
            socket.write(' ')
            if (++sent === 50) begun()
            setImmediate(sendByte)
          }
          sendByte()
        }),
    ],
    [
      'does not end the body of an error response',
      (begun) => tls((socket) => socket.write(`${head('500 Oh', 'content-length: 10')}x`, begun)),
    ],
  ]
  test.each(cases)('%s fails at its timeout, and does not delay other calls', async (name, start) => {
    const begun = Promise.withResolvers<void>()
    const client = clientFor(await start(begun.resolve))
    let isOver = false
    const outcome = outcomeOf(client).finally(() => {
      isOver = true
    })
    await begun.promise
    expect(await call(client, 'good')).toMatchObject({ status: 'Success' })
    clock.step(clock.now() + seconds(9))
    await turn()
    expect(isOver).toBe(false)
    clock.step(clock.now() + seconds(1))
    const expected = name.includes('error')
      ? ['bad-status', 'UnexpectedStatus', 'got response with status code 500 != 200: failed to read response body']
      : ['timeout', 'Timeout', 'http request timeout expired']
    expect(await outcome).toEqual(expected)
    expect(clock.nextDue).toBeUndefined()
  })
})

describe('a response over the size limit', () => {
  it.each([
    ['without content length', head('200 OK')],
    ['with a content length of a gigabyte', head('200 OK', 'content-length: 1073741824')],
  ])('%s is read up to the limit, and its memory is released', async (_, headers) => {
    const sent: number[] = []
    const url = await tls((socket) => {
      socket.write(headers)
      socket.on('close', () => sent.push(socket.bytesWritten))
      flood(socket)
    })
    const client = clientFor(url)
    await call(client, 'good')
    const memoryBefore = await memory()
    for (let i = 0; i < 3; i++) {
      expect(await outcomeOf(client)).toEqual([
        'bad-answer',
        'TooLong',
        'failed to decode response: http: response body too large',
      ])
    }
    while (sent.length < 3) await turn()
    // Bytes in socket buffers are counted as well.
    for (const bytes of sent) expect(bytes).toBeLessThan(40 * MiB)
    expect((await memory()) - memoryBefore).toBeLessThan(10 * MiB)
    expect(await call(client, 'good')).toMatchObject({ status: 'Success' })
  })
})

describe('connections', () => {
  it('are closed once their calls have completed after a change of the caBundle, and when the extension is unregistered', async () => {
    const release = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    let connections = 0
    const server = await listen(async () => {
      begun.resolve()
      await release.promise
      return Response.json({ status: 'Success' })
    }, certified)
    const relayURL = await tcp((socket) => {
      connections++
      socket.on('close', () => connections--)
      relay(socket, server.port)
    })
    const client = clientFor(relayURL)
    const pendingCall = call(client, 'bad')
    await begun.promise
    const other = await makeAuthority(systemClock, { commonName: 'other' })
    client.register(configOf('bad', relayURL, `${authority.certificate}${other.certificate}`))
    expect(connections).toBe(1)
    release.resolve()
    expect(await pendingCall).toMatchObject({ status: 'Success' })
    while (connections > 0) await turn()
    expect(await call(client, 'bad')).toMatchObject({ status: 'Success' })
    expect(connections).toBe(1)
    client.unregister('bad')
    while (connections > 0) await turn()
    expect(await call(client, 'good')).toMatchObject({ status: 'Success' })
    await server.close(0)
  })
})

describe('an extension that is stopped', () => {
  let child: ChildProcess
  afterEach(() => child.kill('SIGKILL'))

  /** Responds to a call with `settings.wait` only after SIGTERM. */
  const program = `
      import { BeforeClusterCreate } from '@capstan/api'
      import { defineExtension, on, proceedNow, runExtension } from '@capstan/extension'
      const terminated = new Promise((resolve) => process.once('SIGTERM', () => setImmediate(resolve)))
      const handle = async ({ settings }) => {
        if (settings.wait) {
          process.stderr.write('called\\n')
          await terminated
        }
        return proceedNow('done')
      }
      await runExtension(defineExtension({ name: 'bad', handlers: [on(BeforeClusterCreate, { name: 'gate' }, handle)] }), { args: process.argv.slice(1) })`
  const start = async (...flags: string[]) => {
    const args = ['--input-type=module', '-e', program, '--', '--dev', '--log-level', 'error', ...flags]
    child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'pipe'] })
    const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string]
    return JSON.parse(line) as { url: string; caBundle: string }
  }

  it('by SIGTERM during a call completes the call and exits with 0', async () => {
    const { url, caBundle } = await start()
    const client = clientFor(url, Buffer.from(caBundle, 'base64').toString())
    const pendingCall = client.call(BeforeClusterCreate, cluster, 'gate.bad', { cluster }, { settings: { wait: 'yes' } })
    await once(child.stderr!, 'data')
    child.kill('SIGTERM')
    expect(await pendingCall).toMatchObject({ status: 'Success', message: 'done' })
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(await outcomeOf(client)).toMatchObject(['unreachable', 'ConnectionRefused', /refused/])
  })

  it('by SIGKILL during a call fails this call and later ones at once, until it runs again', async () => {
    const { url, caBundle } = await start()
    const client = clientFor(url, Buffer.from(caBundle, 'base64').toString())
    expect(await outcomeOf(client)).toEqual(['answered'])
    const pendingCall = client
      .call(BeforeClusterCreate, cluster, 'gate.bad', { cluster }, { settings: { wait: 'yes' } })
      .catch((err) => err)
    await once(child.stderr!, 'data')
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    expect(await call(client, 'good')).toMatchObject({ status: 'Success' })
    const failure = (await pendingCall) as HookFailed
    expect([failure.code, failure.problem]).toEqual(['unreachable', 'ConnectionReset'])
    // Until the process has exited, the kernel may accept connections for it.
    await exited
    expect(await outcomeOf(client)).toMatchObject(['unreachable', 'ConnectionRefused', /refused/])

    const again = await start('--webhook-port', new URL(url).port)
    client.register(configOf('bad', again.url, Buffer.from(again.caBundle, 'base64').toString()))
    expect(await outcomeOf(client)).toEqual(['answered'])
  })
})

/** Copies bytes in both directions until one side closes. */
function relay(socket: Socket, port: number): void {
  const clientSocket = connect(port, '127.0.0.1')
  clientSocket.on('error', () => {})
  socket.pipe(clientSocket).pipe(socket)
  socket.on('close', () => clientSocket.destroy())
  clientSocket.on('close', () => socket.destroy())
}
