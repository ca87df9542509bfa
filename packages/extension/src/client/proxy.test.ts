import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type LookupFunction } from 'node:net'
import { BeforeClusterCreate, Discovery } from '@capstan/api'
import { systemClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { proceedNow } from '../author/answer.ts'
import { callServer } from '../test-kit/call-server.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import type { HookFailed } from './hook-failed.ts'
import { httpsHookTransport } from './https-transport.ts'
import { listen } from '../server/listen.ts'
import { proxyFor } from './proxy.ts'
import { extensionServer } from '../server/server.ts'

const proxy = 'http://proxy.test:3128'

test.each<[string, string, string, string | undefined]>([
  ['uses the proxy if NO_PROXY is empty', 'https://gate.example.com', '', proxy],
  ['bypasses the proxy for localhost', 'https://localhost:9443', '', undefined],
  ['bypasses the proxy for a loopback IPv4 address', 'https://127.0.0.2', '', undefined],
  ['bypasses the proxy for a loopback IPv6 address', 'https://[::1]:1', '', undefined],
  ['bypasses the proxy for a listed host', 'https://gate.example.com', 'other.test, gate.example.com', undefined],
  ['bypasses the proxy for a subdomain of a listed domain', 'https://gate.team.svc:443', 'svc', undefined],
  ['bypasses the proxy for a subdomain of a domain with a leading dot', 'https://gate.team.svc', '.svc', undefined],
  ['uses the proxy for the domain itself if it is listed with a leading dot', 'https://example.com', '.example.com', proxy],
  [
    'uses the proxy for a host that ends with the listed name without a dot before it',
    'https://notexample.com',
    'example.com',
    proxy,
  ],
  ['bypasses the proxy for a host that matches a wildcard', 'https://gate.example.com', '*.example.com', undefined],
  ['bypasses the proxy if a wildcard matches every host', 'https://gate.example.com', '*', undefined],
  ['uses the proxy for another port than the listed one', 'https://gate.example.com:9443', 'gate.example.com:443', proxy],
  ['bypasses the proxy for the default port, if 443 is listed', 'https://gate.example.com', 'gate.example.com:443', undefined],
  ['bypasses the proxy for a listed address', 'https://10.1.2.3', '10.1.2.3', undefined],
  ['bypasses the proxy for an address in a listed CIDR', 'https://10.1.2.3', '10.0.0.0/8', undefined],
  ['uses the proxy for an address outside the listed CIDR', 'https://11.1.2.3', '10.0.0.0/8', proxy],
  ['bypasses the proxy for an IPv6 address in a listed CIDR', 'https://[fd00::7]', 'fd00::/8', undefined],
  ['ignores invalid CIDRs', 'https://10.1.2.3', '10.0.0.0/99,10.0.0.0/x', proxy],
])('%s: %s with NO_PROXY %j', (_, url, exceptions, expected) => {
  expect(proxyFor(new URL(url), { HTTPS_PROXY: proxy, NO_PROXY: exceptions })).toBe(expected)
  expect(proxyFor(new URL(url), { https_proxy: 'proxy.test:3128', no_proxy: exceptions })).toBe(expected)
})

test('returns undefined without HTTPS_PROXY, and ignores HTTP_PROXY', () => {
  expect(proxyFor(new URL('https://gate.example.com'), { HTTP_PROXY: proxy })).toBeUndefined()
})

test('calls through the proxy verify the certificate of the server, and calls to one host share a tunnel', async () => {
  const authority = await makeAuthority(systemClock, { commonName: 'test' })
  const names = { commonName: 'x', usages: ['server'] as const, dnsNames: ['gate.test'] }
  const extension = defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })
  const server = await listen(extensionServer(extension), await issueCertificate(authority, systemClock, names))
  const tunneled: string[] = []
  const tunnels = createServer().on('connect', (request, socket) => {
    tunneled.push(request.url ?? '')
    const serverSocket = connect(server.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(serverSocket).pipe(socket)
    })
    socket.on('error', () => serverSocket.destroy())
    serverSocket.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => tunnels.listen(0, '127.0.0.1', resolve))
  const env = { HTTPS_PROXY: `http://127.0.0.1:${(tunnels.address() as AddressInfo).port}` }
  const transport = httpsHookTransport({ env })
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const discover = (host: string) =>
    callServer(Discovery, {
      server: { url: `https://${host}`, caBundle },
      request: {},
      timeoutSeconds: 10,
      transport,
      clock: systemClock,
    })
  expect((await discover('gate.test')).response).toMatchObject({ status: 'Success' })
  expect((await discover('gate.test')).response).toMatchObject({ status: 'Success' })
  await expect(discover('other.test')).rejects.toMatchObject({ problem: 'TLSName' })
  expect(tunneled).toEqual(['gate.test:443', 'other.test:443'])
  transport.close()
  tunnels.close()
  await server.close(0)
})

describe('a call fails, without the proxy password in its error, when the proxy', () => {
  const post = 'Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?timeout=10s": '
  const refusing = createServer().on('connect', (_, socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'))
  const closing = createServer().on('connect', (_, socket) => socket.end())
  const portOf = (server: Server) => (server.address() as AddressInfo).port
  beforeAll(async () => {
    for (const server of [refusing, closing]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => [refusing, closing].forEach((server) => server.close()))

  test.each([
    [
      'does not listen',
      () => 'http://127.0.0.1:1',
      'ConnectionRefused',
      'proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    [
      'has a name that cannot be resolved',
      () => 'http://proxy.invalid',
      'DNS',
      'proxyconnect tcp: dial tcp: lookup proxy.invalid: no such host',
    ],
    [
      'requires authentication',
      () => `http://user:hunter2@127.0.0.1:${portOf(refusing)}`,
      'Unreachable',
      'Proxy Authentication Required',
    ],
    [
      'has an invalid URL',
      () => 'http://user:hunter2@:::',
      'Unreachable',
      'invalid proxy address: the URL in HTTPS_PROXY cannot be parsed',
    ],
    [
      'has an unsupported scheme',
      () => 'socks5://user:hunter2@127.0.0.1:1',
      'Unreachable',
      'proxyconnect: scheme socks5 of HTTPS_PROXY: expected http or https',
    ],
    ['closes the connection without a response', () => `http://127.0.0.1:${portOf(closing)}`, 'Unreachable', 'unexpected EOF'],
  ])('%s', async (_, url, problem, message) => {
    const lookup: LookupFunction = (host, _options, callback) =>
      callback(Object.assign(new Error('no'), { code: 'ENOTFOUND', syscall: 'getaddrinfo', host }), '', 4)
    const transport = httpsHookTransport({ env: { HTTPS_PROXY: url() }, lookup })
    const call = { server: { url: 'https://gate.test' }, request: {}, timeoutSeconds: 10, transport, clock: systemClock }
    const failed = await callServer(Discovery, call).catch((err: unknown) => err as HookFailed)
    transport.close()
    const text = (failed as HookFailed).message.replace('http call failed: ', '').replace(post, '')
    expect([(failed as HookFailed).problem, text]).toEqual([problem, message])
    expect(text).not.toContain('hunter2')
  })
})
