import { Agent } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { BeforeClusterCreate, createCatalog, type ExtensionConfig, hookCatalog } from '@capstan/api'
import { silent, systemClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterAll, beforeAll, describe, expect, it, test, vi } from 'vitest'
import { holdFor } from '../author/answer.ts'
import { createExtensionClient } from './client.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { httpsHookTransport } from './https-transport.ts'
import { type Listening, listen } from '../server/listen.ts'
import { extensionServer } from '../server/server.ts'

const handle = extensionServer(
  defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => holdFor(2, 'wait'))] }),
)
const cluster = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: { name: 'demo', namespace: 'default' },
} as never
const base64 = (text: string) => Buffer.from(text).toString('base64')

let authority: CertifiedKey
let certified: CertifiedKey
let server: Listening
beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'test' })
  certified = await issueCertificate(authority, systemClock, { commonName: 'x', usages: ['server'], ipAddresses: ['127.0.0.1'] })
  server = await listen(handle, certified)
})
afterAll(() => server.close())

const clientOf = (transport = httpsHookTransport()) =>
  createExtensionClient({
    transport,
    catalog: createCatalog(hookCatalog),
    clock: systemClock,
    log: silent,
    namespaceLabels: async () => ({}),
  })

const config = (url: string, ca: string = authority.certificate): ExtensionConfig => ({
  apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
  kind: 'ExtensionConfig',
  metadata: { name: 'ext', uid: '', resourceVersion: '1', creationTimestamp: '' },
  spec: { clientConfig: { url, caBundle: base64(ca) }, namespaceSelector: {} },
})

it('discovers a handler over TLS, and calls it concurrently', async () => {
  const client = clientOf()
  const extensionConfig = config(`${server.url}/`)
  client.warmUp([{ ...extensionConfig, status: { handlers: await client.discover(extensionConfig) } }])
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.callAll(BeforeClusterCreate, cluster, { cluster })))
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
    new Set(['{"status":"Success","message":"wait","retryAfterSeconds":2}']),
  )
  client.close()
})

describe('a discovery fails', () => {
  const failureOf = async (extensionConfig: ExtensionConfig) => {
    const client = clientOf()
    const failure = await client.discover(extensionConfig).then(
      () => 'no failure',
      ({ code, message }) => ({ code, message }),
    )
    client.close()
    return failure
  }
  const post = (url: string) =>
    `failed to discover extension "ext": http call failed: Post "${url}/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?timeout=10s": `

  it('when another authority signed the certificate', async () => {
    const other = await makeAuthority(systemClock, { commonName: 'other' })
    expect(await failureOf(config(server.url, other.certificate))).toEqual({
      code: 'unreachable',
      message: `${post(server.url)}tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    })
  })

  it.each(['\n', 'no certificate', '-----BEGIN PRIVATE KEY-----'])('when the CA bundle is %j', async (ca) => {
    const client = clientOf()
    const failed = await client.discover(config(server.url, ca)).catch((err: unknown) => err)
    client.close()
    expect(failed).toMatchObject({
      code: 'bad-ca',
      problem: 'CABundle',
      message:
        'failed to discover extension "ext": failed to get http client: failed to create tls config: ' +
        'unable to load root certificates: unable to parse bytes as PEM block',
    })
  })

  it('when the certificate is for an address, and the URL has a host name', async () => {
    const url = `https://localhost:${server.port}`
    expect(await failureOf(config(url))).toEqual({
      code: 'unreachable',
      message: `${post(url)}tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match localhost`,
    })
  })

  it.each([
    [
      'no address at all',
      { dnsNames: ['a.test'] },
      "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
    ],
    [
      'other addresses',
      { dnsNames: ['a.test'], ipAddresses: ['127.0.0.2', '::1'] },
      'certificate is valid for 127.0.0.2, ::1, not 127.0.0.1',
    ],
  ])('when the certificate is for %s', async (_, names, message) => {
    const issued = await issueCertificate(authority, systemClock, { commonName: 'x', usages: ['server'], ...names })
    const other = await listen(handle, { certificate: issued.certificate, key: issued.key })
    const failure = (await failureOf(config(other.url))) as { message: string }
    expect(failure.message).toBe(`${post(other.url)}tls: failed to verify certificate: x509: ${message}`)
    await other.close()
  })

  it('when no server listens', async () => {
    const closed = await listen(handle, certified)
    await closed.close()
    expect(await failureOf(config(closed.url))).toEqual({
      code: 'unreachable',
      message: `${post(closed.url)}dial tcp 127.0.0.1:${closed.port}: connect: connection refused`,
    })
  })
})

test('a redirect counts as a response, and is not followed', async () => {
  let followed = 0
  const { key, certificate: cert } = certified
  const redirecting = createServer({ key, cert }, (request, response) => {
    if (request.url === '/elsewhere') followed++
    response.writeHead(307, { location: '/elsewhere' }).end()
  })
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve))
  const client = clientOf()
  const url = `https://127.0.0.1:${(redirecting.address() as AddressInfo).port}`
  await expect(client.discover(config(url))).rejects.toMatchObject({ code: 'bad-status' })
  expect(followed).toBe(0)
  client.close()
  redirecting.close()
})

/** Starts an HTTP/1.1 server that reads its second request and then closes the connection without a response. */
async function startClosingServer(): Promise<{ url: string; requests: string[]; close(): void }> {
  const requests: string[] = []
  const { key, certificate: cert } = certified
  const server = createServer({ key, cert, keepAlive: true }, (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      requests.push(body)
      if (requests.length === 2) request.socket.destroy()
      else response.end('{"status":"Success"}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close: () => void server.close() }
}

test('a request is not sent again within the call when its keep-alive connection ended after the request was written', async () => {
  const server = await startClosingServer()
  const client = clientOf()
  const attempts: number[] = []
  client.observe((call) => void attempts.push(call.attempts))
  const extensionConfig = config(server.url)
  expect(await client.discover(extensionConfig)).toEqual([])
  await expect(client.discover(extensionConfig)).rejects.toMatchObject({ code: 'unreachable', problem: 'ConnectionReset' })
  expect(server.requests).toHaveLength(2)
  expect(await client.discover(extensionConfig)).toEqual([])
  expect(attempts).toEqual([1, 1, 1])
  client.close()
  server.close()
})

test('a request is sent again when its keep-alive connection ended before the first byte, and both attempts are counted', async () => {
  const { key, certificate: cert } = certified
  let requests = 0
  const server = createServer({ key, cert, keepAlive: true }, (request, response) => {
    requests++
    request.resume()
    response.end('{"status":"Success"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // The connection ends after the agent has chosen it, and before the first write.
  const reuse = vi.spyOn(Agent.prototype, 'reuseSocket').mockImplementationOnce((socket, request) => {
    request.reusedSocket = true
    socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  })
  const client = clientOf()
  const attempts: number[] = []
  client.observe((call) => void attempts.push(call.attempts))
  const extensionConfig = config(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
  for (let call = 0; call < 2; call++) expect(await client.discover(extensionConfig)).toEqual([])
  expect(reuse).toHaveBeenCalledOnce()
  expect([requests, attempts]).toEqual([2, [1, 2]])
  reuse.mockRestore()
  client.close()
  server.close()
})

test('a call succeeds when the server has closed the keep-alive connection', async () => {
  const { key, certificate: cert } = certified
  let connections = 0
  const hasty = createServer({ key, cert, keepAlive: true }, (request, response) => {
    request.resume()
    // The socket is closed after the response, without a `connection: close` header. `destroySoon` also shuts the connection down: if a
    // process that another test starts has inherited the socket, closing the socket alone does not end the connection.
    response.end('{"status":"Success"}', () => setImmediate(() => request.socket.destroySoon()))
    request.socket.once('close', () => closed.resolve())
  })
  let closed = Promise.withResolvers<void>()
  hasty.on('secureConnection', () => connections++)
  await new Promise<void>((resolve) => hasty.listen(0, '127.0.0.1', resolve))
  const client = clientOf()
  const extensionConfig = config(`https://127.0.0.1:${(hasty.address() as AddressInfo).port}`)
  for (let call = 0; call < 20; call++) {
    closed = Promise.withResolvers<void>()
    expect(await client.discover(extensionConfig)).toEqual([])
    await closed.promise
    // The client notices the closed socket in one of the next turns of the event loop.
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve))
  }
  expect(connections).toBeGreaterThan(1)
  client.close()
  hasty.close()
})

test('a renewed certificate is used for new connections', async () => {
  const renewing = await listen(handle, certified)
  const nextAuthority = await makeAuthority(systemClock, { commonName: 'next' })
  const next = { commonName: 'x', usages: ['server'] as const, ipAddresses: ['127.0.0.1'] }
  const client = clientOf()
  expect(await client.discover(config(renewing.url))).toHaveLength(1)
  renewing.renew(await issueCertificate(nextAuthority, systemClock, next))
  expect(await client.discover(config(renewing.url, nextAuthority.certificate))).toHaveLength(1)
  client.close()
  await renewing.close()
})

test('the client certificate is presented to a server that requires client certificates', async () => {
  const strict = await listen(handle, { ...certified, clientCA: authority.certificate })
  const own = await issueCertificate(authority, systemClock, { commonName: 'core', usages: ['client'] })
  const client = clientOf(httpsHookTransport({ client: own }))
  expect(await client.discover(config(strict.url))).toHaveLength(1)
  const stranger = clientOf()
  await expect(stranger.discover(config(strict.url))).rejects.toMatchObject({ code: 'unreachable' })
  client.close()
  stranger.close()
  await strict.close()
})

test('no call fails while the client certificate and the client CA are renewed', async () => {
  const other = await makeAuthority(systemClock, { commonName: 'other' })
  const clientOfAuthority = (issuer: CertifiedKey) =>
    issueCertificate(issuer, systemClock, { commonName: 'core', usages: ['client'] })
  const transport = httpsHookTransport({ client: await clientOfAuthority(authority) })
  // Closes the connection after every third response.
  let answered = 0
  const restless: typeof handle = async (request) => {
    const response = await handle(request)
    if (answered++ % 3 === 0) response.headers.set('connection', 'close')
    return response
  }
  const server = await listen(restless, { ...certified, clientCA: authority.certificate })
  const client = clientOf(transport)
  const extensionConfig = config(server.url)
  const failures: unknown[] = []
  let stopped = false
  const loads = Array.from({ length: 4 }, async () => {
    while (!stopped) await client.discover(extensionConfig).catch((err) => failures.push(err))
  })
  const after = async (calls: number) => {
    const until = answered + calls
    while (answered < until && failures.length === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await after(20)
  server.renew({ ...certified, clientCA: `${authority.certificate}${other.certificate}` })
  await after(20)
  transport.present(await clientOfAuthority(other))
  await after(20)
  server.renew({ ...certified, clientCA: other.certificate })
  await after(20)
  stopped = true
  await Promise.all(loads)
  expect(failures).toEqual([])
  client.close()
  await server.close(0)
})
