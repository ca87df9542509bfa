import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { get as httpGet } from 'node:http'
import { Agent, get as httpsGet, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { BeforeClusterCreate, Discovery, hookPath } from '@capstan/api'
import { type Logger, silent, systemClock, VirtualClock } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { proceedNow } from '../author/answer.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { FlagError, parseExtensionFlags } from './extension-flags.ts'
import { jsonLogger } from './json-log.ts'
import { type RunningExtension, startExtension } from './run-extension.ts'

describe('the command line', () => {
  it('has defaults, which are those of upstream for flags that upstream has', () => {
    expect(parseExtensionFlags([])).toEqual({
      host: '',
      port: 9443,
      files: {
        certificate: join(tmpdir(), 'k8s-webhook-server/serving-certs/tls.crt'),
        key: join(tmpdir(), 'k8s-webhook-server/serving-certs/tls.key'),
      },
      health: { host: '', port: 9440 },
      diagnostics: { host: '', port: 8443, insecure: false },
      minVersion: 'TLSv1.2',
      delay: 0,
      grace: 30_000,
      level: 'info',
      dev: false,
      withParent: false,
      help: false,
    })
  })

  it('overrides the defaults', () => {
    const args =
      '--webhook-port=1 --webhook-cert-dir /c --webhook-cert-name a --webhook-key-name b --webhook-client-ca-name d --health-addr [::1]:2 ' +
      '--diagnostics-address=localhost:3 --insecure-diagnostics --tls-min-version VersionTLS13 --graceful-shutdown-timeout 1m ' +
      '--tls-cipher-suites TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256'
    expect(parseExtensionFlags(args.split(' '))).toMatchObject({
      port: 1,
      files: { certificate: '/c/a', key: '/c/b', clientCA: '/c/d' },
      health: { host: '::1', port: 2 },
      diagnostics: { host: 'localhost', port: 3, insecure: true },
      minVersion: 'TLSv1.3',
      grace: 60_000,
      ciphers: 'ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:TLS_AES_128_GCM_SHA256',
    })
  })

  it('accepts boolean flags as Go does, and disables a server with the address 0', () => {
    const flags = parseExtensionFlags(['--insecure-diagnostics=false', '--health-addr', '0'])
    expect(flags.diagnostics?.insecure).toBe(false)
    expect(flags.health).toBeUndefined()
  })

  it.each([
    [['--webhook-port', '70000'], '--webhook-port 70000: expected a port from 0 to 65535'],
    [['--health-addr', '9440'], '--health-addr 9440: expected an address such as :9440 or 127.0.0.1:9440, or 0 for none'],
    [['--tls-min-version', 'VersionTLS10'], '--tls-min-version VersionTLS10: expected VersionTLS12 or VersionTLS13'],
    [['--tls-cipher-suites', 'TLS_RSA_WITH_RC4_128_SHA'], 'TLS_RSA_WITH_RC4_128_SHA: unsupported suite'],
    [['--dev=perhaps'], '--dev=perhaps: expected true or false'],
    [['--graceful-shutdown-timeout', 'long'], '--graceful-shutdown-timeout long: expected a duration of at most 1h, such as 30s'],
    [['--leader-elect'], "Unknown option '--leader-elect'"],
  ])('rejects %j', (args, message) => {
    expect(() => parseExtensionFlags(args)).toThrow(FlagError)
    expect(() => parseExtensionFlags(args)).toThrow(message)
  })
})

it("jsonLogger writes JSON lines in pino's format, and omits lines below its level", () => {
  const lines: string[] = []
  const log = jsonLogger((line) => lines.push(line), 'info', { ...systemClock, now: () => 5 }).child({ hook: 'X' })
  log.debug('Nothing')
  log.info('Something', { ms: 3 })
  log.error('Wrong', { err: new TypeError('bad') })
  const [first, second, third] = lines.map((line) => JSON.parse(line) as object)
  expect(first).toEqual({ level: 30, time: 5, hook: 'X', ms: 3, msg: 'Something' })
  expect(second).toMatchObject({ level: 50, err: { type: 'TypeError', message: 'bad' }, msg: 'Wrong' })
  expect(third).toBeUndefined()
})

describe('a running extension', () => {
  let authority: CertifiedKey
  let folder: string
  let running: RunningExtension | undefined
  beforeAll(async () => {
    authority = await makeAuthority(systemClock, { commonName: 'test' })
  })
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'capstan-extension-'))
  })
  afterEach(async () => {
    await running?.close()
    running = undefined
    rmSync(folder, { recursive: true, force: true })
  })

  const certify = async (commonName: string): Promise<CertifiedKey> => {
    const names = { commonName, usages: ['server'] as const, ipAddresses: ['127.0.0.1'], dnsNames: ['localhost'] }
    const pair = await issueCertificate(authority, systemClock, names)
    writeFileSync(join(folder, 'tls.crt'), pair.certificate)
    writeFileSync(join(folder, 'tls.key'), pair.key)
    return pair
  }
  let release: (() => void) | undefined
  const extension = defineExtension({
    name: 'x',
    handlers: [
      on(BeforeClusterCreate, { name: 'gate' }, async ({ settings }) => {
        if (settings.wait) await new Promise<void>((resolve) => (release = resolve))
        return proceedNow()
      }),
    ],
  })
  const start = async (args: readonly string[] = [], log: Logger = silent) => {
    const addresses = ['--webhook-host', '127.0.0.1', '--webhook-port', '0', '--health-addr', '127.0.0.1:0']
    const flags = parseExtensionFlags([
      ...addresses,
      '--diagnostics-address',
      '127.0.0.1:0',
      '--webhook-cert-dir',
      folder,
      ...args,
    ])
    running = await startExtension(extension, flags, { log, clock: systemClock })
    return running
  }
  const get = (url: string, requestOptions: object = {}): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const options = { ca: authority.certificate, agent: false as const, ...requestOptions }
      const outgoing = (url.startsWith('https:') ? httpsGet : httpGet)(url, options, (incoming) => {
        let text = ''
        incoming.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }))
      })
      outgoing.on('error', reject)
    })
  /** Returns the common name in the certificate that the server presents. */
  const presented = (url: string) =>
    new Promise<string>((resolve, reject) => {
      const outgoing = request(
        url,
        { method: 'POST', ca: authority.certificate, agent: new Agent({ maxCachedSessions: 0 }) },
        (incoming) => {
          resolve([(incoming.socket as TLSSocket).getPeerCertificate().subject.CN].flat().join())
          incoming.resume()
          incoming.socket.destroy()
        },
      )
      outgoing.on('error', reject)
      outgoing.end('{}')
    })

  it('serves hooks, health and metrics', async () => {
    await certify('x')
    const { address, healthURL, metricsURL } = await start()
    expect(address).toEqual({ url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/) })
    await presented(`${address.url}${hookPath(Discovery)}`)
    expect(await get(`${healthURL}/healthz`)).toEqual({ status: 200, text: 'ok' })
    expect(await get(`${healthURL}/readyz`)).toEqual({ status: 200, text: 'ok' })
    expect(await get(`${healthURL}/metrics`)).toMatchObject({ status: 404 })
    const { text } = await get(`${metricsURL}/metrics`)
    expect(metricsURL).toMatch(/^https:/)
    expect(text).toContain('capstan_extension_requests_total{hook="Discovery",handler="",status="Success"} 1')
    expect(text).toMatch(/capstan_extension_certificate_expiry_timestamp_seconds \d{10}\n/)
    expect(text).toContain('process_resident_memory_bytes')
  })

  it('serves metrics without TLS with --insecure-diagnostics', async () => {
    await certify('x')
    const { metricsURL } = await start(['--insecure-diagnostics'])
    expect(metricsURL).toMatch(/^http:/)
    expect((await get(`${metricsURL}/metrics`)).status).toBe(200)
  })

  it('presents a replaced certificate on the ports of hooks and metrics', async () => {
    await certify('first')
    const { promise: reload, resolve: recordReload } = Promise.withResolvers<void>()
    const log: Logger = { ...silent, info: (message) => message.startsWith('Reloaded') && recordReload(), child: () => log }
    const { address, metricsURL } = await start([], log)
    expect(await presented(address.url)).toBe('first')
    await certify('second')
    await reload
    expect(await presented(address.url)).toBe('second')
    expect(await presented(metricsURL!)).toBe('second')
  })

  it('with --webhook-client-ca-name, requires client certificates for hooks, but not for metrics', async () => {
    await certify('x')
    writeFileSync(join(folder, 'ca.crt'), authority.certificate)
    const { address, metricsURL } = await start(['--webhook-client-ca-name', 'ca.crt'])
    await expect(presented(address.url)).rejects.toThrow()
    const { certificate: cert, key } = await issueCertificate(authority, systemClock, { commonName: 'core', usages: ['client'] })
    expect((await get(address.url, { cert, key })).status).toBe(404)
    expect((await get(`${metricsURL}/metrics`)).status).toBe(200)
  })

  it('fails /readyz while it stops, and completes running calls', async () => {
    await certify('x')
    const { address, healthURL, close } = await start()
    const body = JSON.stringify({ cluster: { metadata: {}, spec: {} }, settings: { wait: 'yes' } })
    const status = new Promise<number | undefined>((resolve, reject) => {
      const url = `${address.url}${hookPath(BeforeClusterCreate, 'gate')}`
      const outgoing = request(url, { method: 'POST', ca: authority.certificate, agent: false }, (incoming) => {
        incoming.resume()
        resolve(incoming.statusCode)
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
    while (!release) await new Promise((resolve) => setImmediate(resolve))
    const closed = close()
    expect(await get(`${healthURL}/readyz`)).toEqual({ status: 503, text: 'stopping' })
    expect(await get(`${healthURL}/healthz`)).toMatchObject({ status: 200 })
    release()
    expect(await status).toBe(200)
    await closed
    // The connection is reset if another process, which does not use HTTP, has opened the port in the meantime.
    await expect(get(`${healthURL}/healthz`)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/)
  })

  it('accepts calls during --shutdown-delay-duration while /readyz fails', async () => {
    await certify('x')
    const clock = new VirtualClock()
    const flags = parseExtensionFlags(
      '--webhook-host 127.0.0.1 --webhook-port 0 --health-addr 127.0.0.1:0 --diagnostics-address 0 --shutdown-delay-duration 5s'
        .split(' ')
        .concat('--webhook-cert-dir', folder),
    )
    const { address, healthURL, close } = await startExtension(extension, flags, { log: silent, clock })
    const closed = close()
    expect((await get(`${healthURL}/readyz`)).status).toBe(503)
    expect(await presented(`${address.url}${hookPath(Discovery)}`)).toBe('x')
    clock.step(clock.now() + 5000)
    await closed
    // A process that another test starts inherits the listening socket until its program is loaded, and so keeps the port open
    // for a moment.
    await vi.waitFor(() => expect(presented(address.url)).rejects.toThrow('ECONNREFUSED'))
  })

  it('generates a certificate with --dev, and returns its CA bundle', async () => {
    const flags = parseExtensionFlags(['--dev'])
    running = await startExtension(extension, flags, { log: silent, clock: systemClock })
    const { url, caBundle = '' } = running.address
    expect((await get(url, { ca: Buffer.from(caBundle, 'base64') })).status).toBe(404)
    expect((await get(url.replace('127.0.0.1', 'localhost'), { ca: Buffer.from(caBundle, 'base64') })).status).toBe(404)
    expect(running.healthURL).toBeUndefined()
  })

  it('makes the start of a second one at the same port fail, with an error that names the port', async () => {
    await certify('x')
    const { healthURL } = await start()
    const usedPort = new URL(healthURL!).port
    const first = running
    await expect(start(['--health-addr', `127.0.0.1:${usedPort}`])).rejects.toThrow(
      `Cannot listen on port ${usedPort}: it is in use`,
    )
    running = first
  })
})
