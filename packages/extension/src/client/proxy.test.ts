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
  ['any host', 'https://gate.example.com', '', proxy],
  ['this machine', 'https://localhost:9443', '', undefined],
  ['this machine by address', 'https://127.0.0.2', '', undefined],
  ['this machine by address of version 6', 'https://[::1]:1', '', undefined],
  ['a host that is named', 'https://gate.example.com', 'other.test, gate.example.com', undefined],
  ['a host below one that is named', 'https://gate.team.svc:443', 'svc', undefined],
  ['a host below a domain', 'https://gate.team.svc', '.svc', undefined],
  ['the domain itself', 'https://example.com', '.example.com', proxy],
  ['one that only ends alike', 'https://notexample.com', 'example.com', proxy],
  ['a wildcard', 'https://gate.example.com', '*.example.com', undefined],
  ['everything', 'https://gate.example.com', '*', undefined],
  ['another port', 'https://gate.example.com:9443', 'gate.example.com:443', proxy],
  ['the usual port', 'https://gate.example.com', 'gate.example.com:443', undefined],
  ['an address', 'https://10.1.2.3', '10.1.2.3', undefined],
  ['an address within a range', 'https://10.1.2.3', '10.0.0.0/8', undefined],
  ['an address outside a range', 'https://11.1.2.3', '10.0.0.0/8', proxy],
  ['an address of version 6 within a range', 'https://[fd00::7]', 'fd00::/8', undefined],
  ['a range that is none', 'https://10.1.2.3', '10.0.0.0/99,10.0.0.0/x', proxy],
])('%s: %s with NO_PROXY %j', (_, url, exceptions, expected) => {
  expect(proxyFor(new URL(url), { HTTPS_PROXY: proxy, NO_PROXY: exceptions })).toBe(expected)
  expect(proxyFor(new URL(url), { https_proxy: 'proxy.test:3128', no_proxy: exceptions })).toBe(expected)
})

test('returns undefined without proxy variables', () => {
  expect(proxyFor(new URL('https://gate.example.com'), { HTTP_PROXY: proxy })).toBeUndefined()
})

test('a call uses the proxy, and the server is verified as without one', async () => {
  const authority = await makeAuthority(systemClock, { commonName: 'test' })
  const names = { commonName: 'x', usages: ['server'] as const, dnsNames: ['gate.test'] }
  const extension = defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] })
  const server = await listen(extensionServer(extension), await issueCertificate(authority, systemClock, names))
  const asked: string[] = []
  const tunnels = createServer().on('connect', (request, socket) => {
    asked.push(request.url ?? '')
    const there = connect(server.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(there).pipe(socket)
    })
    socket.on('error', () => there.destroy())
    there.on('error', () => socket.destroy())
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
  expect(asked).toEqual(['gate.test:443', 'other.test:443'])
  transport.close()
  tunnels.close()
  await server.close(0)
})

describe('a failing proxy is named', () => {
  const post = 'Post "https://gate.test/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?timeout=10s": '
  const refusing = createServer().on('connect', (_, socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'))
  const silent = createServer().on('connect', (_, socket) => socket.end())
  const portOf = (server: Server) => (server.address() as AddressInfo).port
  beforeAll(async () => {
    for (const server of [refusing, silent]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => [refusing, silent].forEach((server) => server.close()))

  test.each([
    [
      'nobody listens',
      () => 'http://127.0.0.1:1',
      'ConnectionRefused',
      'proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    ['nobody knows it', () => 'http://proxy.invalid', 'DNS', 'proxyconnect tcp: dial tcp: lookup proxy.invalid: no such host'],
    ['it refuses', () => `http://user:hunter2@127.0.0.1:${portOf(refusing)}`, 'Unreachable', 'Proxy Authentication Required'],
    [
      'nobody can read its URL',
      () => 'http://user:hunter2@:::',
      'Unreachable',
      'invalid proxy address: the URL in HTTPS_PROXY cannot be parsed',
    ],
    [
      'it speaks something else',
      () => 'socks5://user:hunter2@127.0.0.1:1',
      'Unreachable',
      'proxyconnect: scheme socks5 of HTTPS_PROXY: expected http or https',
    ],
    ['it says nothing', () => `http://127.0.0.1:${portOf(silent)}`, 'Unreachable', 'unexpected EOF'],
  ])('%s', async (_, url, problem, message) => {
    const lookup: LookupFunction = (host, _options, done) =>
      done(Object.assign(new Error('no'), { code: 'ENOTFOUND', syscall: 'getaddrinfo', host }), '', 4)
    const transport = httpsHookTransport({ env: { HTTPS_PROXY: url() }, lookup })
    const call = { server: { url: 'https://gate.test' }, request: {}, timeoutSeconds: 10, transport, clock: systemClock }
    const failed = await callServer(Discovery, call).catch((err: unknown) => err as HookFailed)
    transport.close()
    const text = (failed as HookFailed).message.replace('http call failed: ', '').replace(post, '')
    expect([(failed as HookFailed).problem, text]).toEqual([problem, message])
    expect(text).not.toContain('hunter2')
  })
})
