import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ApiRequest, createClient } from '../client.ts'
import { seconds, systemClock, VirtualClock } from '../clock.ts'
import { isReason, StatusError } from '../errors.ts'
import { ConfigMap } from '../kinds/config-map.ts'
import { seededRandom } from '../random.ts'
import type { HttpsTransportOptions } from './https-transport.ts'
import { httpsTransport } from './https-transport.ts'
import type { CertifiedKey } from './pki.ts'
import { issueCertificate, makeAuthority } from './pki.ts'

let ca: CertifiedKey
let server: CertifiedKey
beforeAll(async () => {
  ca = await makeAuthority(systemClock, { commonName: 'ca' })
  server = await issueCertificate(ca, systemClock, {
    commonName: 's',
    usages: ['server'],
    dnsNames: ['server.test'],
    ipAddresses: ['127.0.0.1'],
  })
})

type Handler = (req: IncomingMessage, res: ServerResponse, body: string) => void

const cleanups: (() => void)[] = []
afterAll(() => cleanups.forEach((cleanUp) => cleanUp()))

async function serve(handler: Handler) {
  const connections = new Set<Socket>()
  const listening = createServer({ key: server.key, cert: server.certificate }, (req, res) => {
    let body = ''
    req.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    req.on('end', () => handler(req, res, body))
  })
  listening.on('secureConnection', (socket) => connections.add(socket))
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const close = () => {
    listening.close()
    listening.closeAllConnections()
  }
  cleanups.push(close)
  return { url: `https://127.0.0.1:${(listening.address() as AddressInfo).port}`, connections, close }
}

const connect = (url: string, options: Partial<HttpsTransportOptions> = {}, access: object = {}) => {
  const transport = httpsTransport(
    { server: url, ca: ca.certificate, ...access },
    { clock: systemClock, random: seededRandom(1), ...options },
  )
  cleanups.push(() => transport.close())
  return transport
}
const json = (res: ServerResponse, code: number, body: unknown, headers = {}) =>
  res.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

const configMap: ApiRequest = { verb: 'get', group: '', version: 'v1', plural: 'configmaps', namespace: 'n', name: 'a' }
const machines: ApiRequest = { verb: 'list', group: 'cluster.x-k8s.io', version: 'v1beta2', plural: 'machines' }

test('a list with metadataOnly requests only metadata, and accepts whole objects, too', async () => {
  const accepted: (string | undefined)[] = []
  const { url } = await serve((req, res) => {
    accepted.push(req.headers.accept)
    json(res, 200, { apiVersion: 'v1', kind: 'ConfigMapList', metadata: {}, items: [] })
  })
  const client = createClient(connect(url))
  await client.list(ConfigMap, { metadataOnly: true })
  await client.list(ConfigMap)
  const metadata = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
  expect(accepted).toEqual([`${metadata},application/json`, 'application/json'])
})

test('sends requests with method, path, token and body over shared connections, and freezes responses', async () => {
  const requests: string[] = []
  const { url, connections } = await serve((req, res, body) => {
    requests.push(`${req.method} ${req.url} ${req.headers.authorization} ${req.headers['content-type']} ${body}`)
    json(res, 200, { kind: 'ConfigMap', metadata: { name: 'a' } })
  })
  const transport = connect(url, {}, { token: 'secret' })
  const object = await transport.send(configMap)
  await transport.send({
    ...configMap,
    verb: 'patch',
    patchType: 'application/merge-patch+json',
    body: { data: {} },
    options: { dryRun: true },
  })
  expect(Object.isFrozen((object as { metadata: object }).metadata)).toBe(true)
  expect(requests).toEqual([
    'GET /api/v1/namespaces/n/configmaps/a Bearer secret undefined ',
    'PATCH /api/v1/namespaces/n/configmaps/a?dryRun=All Bearer secret application/merge-patch+json {"data":{}}',
  ])
  expect(connections.size).toBe(1)
})

test('sends at most 16 requests at once, but requests for Leases and Events without waiting', async () => {
  const waiting: ServerResponse[] = []
  const sixteen = Promise.withResolvers<void>()
  const { url } = await serve((req, res) => {
    if (/leases|events/.test(req.url ?? '')) return json(res, 200, { metadata: { name: 'l' } })
    waiting.push(res)
    if (waiting.length === 16) sixteen.resolve()
  })
  const transport = connect(url)
  const requests = Array.from({ length: 20 }, () => transport.send(configMap))
  await sixteen.promise
  const lease: ApiRequest = { ...configMap, group: 'coordination.k8s.io', plural: 'leases', name: 'l' }
  const event: ApiRequest = { ...configMap, verb: 'create', plural: 'events', body: {} }
  for (const request of [lease, event]) expect(await transport.send(request)).toMatchObject({ metadata: { name: 'l' } })
  expect(waiting).toHaveLength(16)
  for (const res of waiting.splice(0)) json(res, 200, { metadata: { name: 'a' } })
  while (waiting.length < 4) await new Promise((resolve) => setImmediate(resolve))
  for (const res of waiting) json(res, 200, { metadata: { name: 'a' } })
  expect(await Promise.all(requests)).toHaveLength(20)
})

test('a request that waits for a connection is not sent if `beforeSend` throws when the connection is free', async () => {
  const received: string[] = []
  const held: ServerResponse[] = []
  const sixteen = Promise.withResolvers<void>()
  const { url } = await serve((req, res) => {
    received.push(req.method!)
    held.push(res)
    if (held.length === 16) sixteen.resolve()
  })
  const codes: string[] = []
  const transport = connect(url, { onResponse: (_, code) => void codes.push(code) })
  const reads = Array.from({ length: 16 }, () => transport.send(configMap))
  await sixteen.promise
  let isLeader = true
  const beforeSend = () => {
    if (!isLeader) throw new Error('no longer the leader')
  }
  const write = transport.send({ ...configMap, verb: 'delete', beforeSend })
  isLeader = false
  for (const res of held) json(res, 200, { metadata: { name: 'a' } })
  await expect(write).rejects.toThrow(/^no longer the leader$/)
  await Promise.all(reads)
  expect(new Set(received)).toEqual(new Set(['GET']))
  expect(codes).toEqual(Array.from({ length: 16 }, () => '200'))
})

test('`beforeSend` is called for a new connection, for a reused connection, and before a retry', async () => {
  let requests = 0
  const { url } = await serve((_, res) => {
    requests++
    if (requests === 2) json(res, 429, {}, { 'retry-after': '1' })
    else json(res, 200, { metadata: { name: 'a' } })
  })
  const clock = new VirtualClock()
  const transport = connect(url, { clock })
  let calls = 0
  const write: ApiRequest = { ...configMap, verb: 'create', body: { a: 1 }, beforeSend: () => void calls++ }
  await transport.send(write)
  expect(calls).toBe(1)
  const second = transport.send(write)
  while (requests < 2) await new Promise((resolve) => setImmediate(resolve))
  while (requests < 3) {
    clock.step(clock.now() + seconds(1))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await second
  expect(calls).toBe(3)
})

test('integers beyond the precision of doubles are sent and received with all their digits', async () => {
  const { url } = await serve((_req, res, body) => {
    res.writeHead(200, { 'content-type': 'application/json' }).end(`{"kind":"Any","sent":${body},"exact":9223372036854775807}`)
  })
  const object = await connect(url).send({ ...configMap, verb: 'create', body: { exact: -9007199254740993n, safe: 5 } })
  expect(object).toEqual({ kind: 'Any', sent: { exact: -9007199254740993n, safe: 5 }, exact: 9223372036854775807n })
})

test('items of a built-in list get apiVersion and kind, which the server omits', async () => {
  const { url } = await serve((_, res) =>
    json(res, 200, { kind: 'SecretList', apiVersion: 'v1', metadata: {}, items: [{ metadata: {} }] }),
  )
  expect(await connect(url).send({ ...configMap, verb: 'list' })).toMatchObject({ items: [{ kind: 'Secret', apiVersion: 'v1' }] })
})

test.each<[string, Handler, object]>([
  [
    'a Status',
    (_, res) => json(res, 409, { kind: 'Status', reason: 'AlreadyExists', message: 'exists', details: { name: 'a' }, code: 409 }),
    { reason: 'AlreadyExists', code: 409, message: 'exists', details: { name: 'a' } },
  ],
  [
    '404 and plain text',
    (_, res) => res.writeHead(404).end('404 page not found'),
    {
      reason: 'NotFound',
      code: 404,
      message: 'the server could not find the requested resource (list machines.cluster.x-k8s.io)',
    },
  ],
  [
    '502 and plain text',
    (_, res) => res.writeHead(502).end('bad gateway'),
    {
      reason: 'InternalError',
      code: 502,
      message: expect.stringContaining('an error on the server ("bad gateway") has prevented'),
    },
  ],
  [
    'a body that is not JSON',
    (_, res) => res.writeHead(200).end('<html>'),
    { reason: 'InternalError', message: expect.stringContaining('not JSON') },
  ],
  [
    'a list that is not an object',
    (_, res) => res.writeHead(200).end('null'),
    { reason: 'InternalError', message: expect.stringContaining('the response is not a list') },
  ],
  ['a body that is too long', (_, res) => res.writeHead(200).end('x'.repeat(2000)), { reason: 'RequestEntityTooLarge' }],
  [
    'a connection that is closed',
    (req) => req.socket.destroy(),
    { reason: 'ServiceUnavailable', message: expect.stringMatching(/cannot reach https:\/\/127/) },
  ],
])('a request fails with a StatusError after %s', async (_, handler, error) => {
  const { url } = await serve(handler)
  await expect(connect(url, { maxResponseBytes: 1000 }).send(machines)).rejects.toMatchObject({ name: 'StatusError', ...error })
})

test('a list without kind and items is an empty list', async () => {
  const { url } = await serve((_, res) => res.writeHead(200).end('{}'))
  expect(await connect(url).send(machines)).toEqual({ items: [] })
})

test('the body of a response to a request for / is not parsed: it need not be JSON', async () => {
  const paths: (string | undefined)[] = []
  const { url } = await serve((req, res) => {
    paths.push(req.url)
    res.end('<html>')
  })
  expect(await connect(url).send({ verb: 'get', group: '', version: '', plural: '' })).toEqual({})
  expect(paths).toEqual(['/'])
})

test('a refused connection, an untrusted certificate, a certificate for another name and a timeout have different errors', async () => {
  const { url } = await serve(() => {})
  const otherAuthority = await makeAuthority(systemClock, { commonName: 'other' })
  await expect(connect(url, {}, { ca: otherAuthority.certificate }).send(machines)).rejects.toThrow(
    /cannot reach .*(signature|self-signed|verify|issuer)/,
  )
  await expect(connect(url, {}, { servername: 'other.test' }).send(machines)).rejects.toThrow(/cannot reach .*altnames/)
  const clock = new VirtualClock()
  const waiting = connect(url, { clock, timeout: seconds(10) }).send(machines)
  clock.step(clock.now() + seconds(10))
  await expect(waiting).rejects.toMatchObject({ reason: 'Timeout', message: expect.stringContaining('timed out after 10 s') })
  // In practice, no server listens on port 1. The port of a server that was just closed may still accept connections, because a process
  // that another test started may have inherited the socket.
  await expect(connect('https://127.0.0.1:1').send(machines)).rejects.toMatchObject({
    reason: 'ServiceUnavailable',
    message: expect.stringContaining('ECONNREFUSED'),
  })
})

test('a certificate for `servername`, which differs from the host, is accepted', async () => {
  const { url } = await serve((_, res) => json(res, 200, { items: [], kind: 'MachineList' }))
  await expect(connect(url, {}, { servername: 'server.test' }).send(machines)).resolves.toBeDefined()
})

test('retries after the time that an overloaded server requests', async () => {
  let requestCount = 0
  const { url } = await serve((_, res) =>
    ++requestCount < 3 ? json(res, 429, {}, { 'retry-after': '7' }) : json(res, 200, { kind: 'ConfigMap' }),
  )
  const clock = new VirtualClock()
  const response = connect(url, { clock, timeout: seconds(100) }).send(configMap)
  const before = clock.now()
  while (requestCount < 3) {
    await new Promise(setImmediate)
    if (clock.nextDue !== undefined && clock.nextDue <= before + seconds(20)) clock.step(clock.nextDue)
  }
  await expect(response).resolves.toEqual({ kind: 'ConfigMap' })
  expect(clock.now() - before).toBe(seconds(14))
})

test('reports each response with its method and code, and a request without a response with <error>', async () => {
  const { url, close } = await serve((req, res) => json(res, req.method === 'GET' ? 404 : 201, { kind: 'ConfigMap' }))
  const responses: string[] = []
  const transport = connect(url, { onResponse: (method, code) => responses.push(`${method} ${code}`) })
  await expect(transport.send(configMap)).rejects.toThrow()
  await transport.send({ ...configMap, verb: 'create', body: {} })
  close()
  await expect(transport.send({ ...configMap, verb: 'delete' })).rejects.toThrow('cannot reach')
  expect(responses).toEqual(['GET 404', 'POST 201', 'DELETE <error>'])
})

test('an aborted request rejects with the reason of the signal', async () => {
  const { url } = await serve(() => {})
  const stop = new AbortController()
  const waiting = connect(url).send(machines, stop.signal)
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
})

const eventLine = (type: string, name: string) => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`

async function follow(url: string, options: Partial<HttpsTransportOptions> = {}, signal = new AbortController().signal) {
  const names: string[] = []
  const stream = await connect(url, options).watch({ ...machines, verb: 'watch' }, signal)
  const end = (async () => {
    for await (const { type, object } of stream) names.push(`${type} ${object.metadata.name}`)
  })()
  return { names, end }
}

test('a watch requests a timeout of 5 to 10 minutes, yields events independently of the boundaries of chunks, and ends when the server ends it', async () => {
  let requested = ''
  const { url } = await serve((req, res) => {
    requested = req.url ?? ''
    res.writeHead(200)
    const bytes = Buffer.from(eventLine('ADDED', 'ä') + eventLine('MODIFIED', 'b') + eventLine('DELETED', 'c'))
    const send = (from: number) =>
      from >= bytes.length ? res.end() : res.write(bytes.subarray(from, from + 7), () => send(from + 7))
    send(0)
  })
  const { names, end } = await follow(url)
  await end
  expect(names).toEqual(['ADDED ä', 'MODIFIED b', 'DELETED c'])
  expect(requested).toMatch(/machines\?timeoutSeconds=(3|4|5)\d\d&watch=true$/)
})

test('a watch yields events that are pretty-printed or not separated by a newline', async () => {
  const events = ['a', 'b'].map((name) => JSON.parse(eventLine('ADDED', name)) as unknown)
  const { url } = await serve((_, res) =>
    res
      .writeHead(200)
      .end(
        events.map((event) => JSON.stringify(event)).join('') +
          events.map((prettyEvent) => JSON.stringify(prettyEvent, undefined, 2)).join('\n'),
      ),
  )
  const { names, end } = await follow(url)
  await end
  expect(names).toEqual(['ADDED a', 'ADDED b', 'ADDED a', 'ADDED b'])
})

test('an ERROR event of a watch is thrown as an error with its Status', async () => {
  const status = { kind: 'Status', reason: 'Expired', code: 410, message: 'too old resource version: 1 (5)' }
  const { url } = await serve((_, res) =>
    res.writeHead(200).end(eventLine('ADDED', 'a') + JSON.stringify({ type: 'ERROR', object: status }) + '\n'),
  )
  const { names, end } = await follow(url)
  await expect(end).rejects.toMatchObject({ reason: 'Expired', code: 410 })
  expect(names).toEqual(['ADDED a'])
})

test('a watch that is rejected, dropped, not JSON or unresponsive fails with an error, and an aborted watch ends', async () => {
  const rejected = await serve((_, res) => json(res, 403, { kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 }))
  await expect(follow(rejected.url)).rejects.toSatisfy((err: unknown) => isReason(err, 'Forbidden'))

  const dropping = await serve((_, res) => {
    res.writeHead(200)
    res.write(eventLine('ADDED', 'a'), () => res.destroy())
  })
  await expect((await follow(dropping.url)).end).rejects.toMatchObject({ reason: 'ServiceUnavailable' })

  const invalidServer = await serve((_, res) => res.writeHead(200).end('internal error'))
  await expect((await follow(invalidServer.url)).end).rejects.toMatchObject({ message: expect.stringContaining('is not JSON') })

  const unresponsive = await serve((_, res) => res.writeHead(200).flushHeaders())
  const clock = new VirtualClock()
  const watched = await follow(unresponsive.url, { clock, stallAfter: seconds(60) })
  clock.step(clock.now() + seconds(30))
  for (let i = 0; i < 8; i++) clock.step(clock.now() + seconds(15))
  await expect(watched.end).rejects.toMatchObject({
    reason: 'Timeout',
    message: expect.stringContaining('sent no data for 60 s'),
  })

  const stop = new AbortController()
  const aborted = await follow(unresponsive.url, {}, stop.signal)
  stop.abort()
  await expect(aborted.end).resolves.toBeUndefined()
})

test('the error for a server that cannot be reached does not contain the token', async () => {
  const { url, close } = await serve(() => {})
  close()
  const err = await connect(url, {}, { token: 'top-secret' })
    .send(machines)
    .catch((e: unknown) => e)
  expect(err).toBeInstanceOf(StatusError)
  expect(JSON.stringify([(err as Error).message, (err as StatusError).status])).not.toContain('top-secret')
})
