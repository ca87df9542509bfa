/** Runs an extension as a program. Upstream: test/extension/main.go and exp/runtime/server, v1.14. */
import process from 'node:process'
import type { Clock, Logger } from '@capstan/kube'
import { messageOf, sleep, systemClock } from '@capstan/kube'
import { cannotListen, certificateExpiry, listenPlain } from '@capstan/kube/node'
import type { Tracer } from '@opentelemetry/api'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { servingCertificateFrom } from './certificate-files.ts'
import type { Extension } from '../author/define-extension.ts'
import { type Address, type ExtensionFlags, FlagError, flagsUsage, parseExtensionFlags } from './extension-flags.ts'
import { jsonLogger } from './json-log.ts'
import { type Listening, listen, type ServingCertificate } from './listen.ts'
import { keepOwnCertificate } from './own-certificate.ts'
import { extensionServer, type FetchHandler, type ServerLimits } from './server.ts'
import { certificateMetric, servedCallMetrics } from './server-metrics.ts'
import type { WatchedFiles } from './watch-files.ts'

export interface RunOptions {
  /** Command line arguments. Default: those of this process. */
  readonly args?: readonly string[]
  /** Default: JSON lines on stderr. */
  readonly log?: Logger
  /** Tracer for a span per call. Default: the tracer that the program has registered. */
  readonly tracer?: Tracer
  /** Default: `defaultServerLimits`. */
  readonly limits?: Partial<ServerLimits>
}

/**
 * Serves the extension until the process receives SIGTERM or SIGINT or, with `--with-parent`, until standard input ends. After
 * `--shutdown-delay-duration`, calls in progress then have the time of `--graceful-shutdown-timeout` to end. Certificate, ports and other
 * settings are flags, which `--help` lists. After the start, prints `RunningExtension.address` to stdout as a line of JSON. When the start
 * or the stop fails, prints the error to stderr, and the exit code is 1, or 2 for invalid flags.
 *
 * @example
 * await runExtension(defineExtension({ name: 'quota', handlers: [on(BeforeClusterCreate, { name: 'gate' }, () => proceedNow())] }))
 */
export async function runExtension(extension: Extension, options: RunOptions = {}): Promise<void> {
  const printError = (text: string) => void process.stderr.write(`${extension.name}: ${text}\n`)
  const stop = new AbortController()
  const end = () => stop.abort()
  let hasParent = false
  process.once('SIGTERM', end)
  process.once('SIGINT', end)
  try {
    const flags = parseExtensionFlags(options.args ?? process.argv.slice(2))
    if (flags.help) {
      process.stdout.write(`Serves the runtime extension ${extension.name}.\n\n${flagsUsage}`)
      return
    }
    hasParent = flags.withParent
    if (hasParent) process.stdin.resume().once('end', end)
    const log = options.log ?? jsonLogger((line) => void process.stderr.write(`${line}\n`), flags.level, systemClock)
    const running = await startExtension(extension, flags, { ...options, log, clock: systemClock })
    process.stdout.write(`${JSON.stringify(running.address)}\n`)
    await aborted(stop.signal)
    await running.close()
  } catch (err) {
    const isUsage = err instanceof FlagError
    printError(isUsage ? `${err.message}\nTry --help.` : messageOf(err))
    process.exitCode = isUsage ? 2 : 1
  } finally {
    process.off('SIGTERM', end)
    process.off('SIGINT', end)
    if (hasParent) process.stdin.pause()
  }
}

export interface RunningExtension {
  /** Fields for an ExtensionConfig: the URL, and the `caBundle` of a generated certificate. */
  readonly address: { readonly url: string; readonly caBundle?: string }
  readonly healthURL?: string
  readonly metricsURL?: string
  close(): Promise<void>
}

export interface StartOptions extends Omit<RunOptions, 'args'> {
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Starts the server for hooks and, if the flags have their addresses, those for health checks and metrics.
 * @throws Error if the certificate or its key cannot be read or used, or a server cannot listen at its port
 */
export async function startExtension(
  extension: Extension,
  flags: ExtensionFlags,
  { log, clock, tracer, limits }: StartOptions,
): Promise<RunningExtension> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const handle = extensionServer(extension, {
    log,
    clock,
    observe: servedCallMetrics(registry),
    ...(tracer ? { tracer } : {}),
    ...(limits ? { limits } : {}),
  })
  let isStopping = false
  const closing: (() => Promise<void> | void)[] = []
  const closeAll = async () => {
    for (const close of closing.splice(0)) await close()
  }
  try {
    const certificate = await certificateOf(extension.name, flags, log, clock)
    closing.unshift(() => certificate.close())
    const { serving } = certificate
    const secure = {
      ...serving(),
      minVersion: flags.minVersion,
      clock,
      log,
      ...(flags.ciphers ? { ciphers: flags.ciphers } : {}),
    }
    const server = await listenAt(flags, handle, secure)
    closing.unshift(() => server.close(flags.grace))
    certificate.renewed((next) => server.renew(next))
    certificateMetric(registry, () => certificateExpiry(serving().certificate))

    const ready = () => !isStopping
    const health = flags.health && (await listenPlain(diagnosticsOf(ready), flags.health))
    if (health) closing.push(() => health.close())
    const metrics = flags.diagnostics && (await listenDiagnostics(diagnosticsOf(ready, registry), flags.diagnostics, secure))
    if (metrics) {
      closing.push(() => metrics.close())
      // Without the clientCA, because `listenDiagnostics` requires no client certificates.
      certificate.renewed(({ certificate, key }) => metrics.renew({ certificate, key }))
    }
    log.info('Serving', { extension: extension.name, url: server.url, handlers: extension.handlers.length })
    return {
      address: { url: server.url, ...certificate.caBundle },
      ...(health ? { healthURL: health.url } : {}),
      ...(metrics ? { metricsURL: metrics.url } : {}),
      async close() {
        isStopping = true
        log.info('Stopping', { extension: extension.name, delayMs: flags.delay, graceMs: flags.grace })
        if (flags.delay > 0) await sleep(clock, flags.delay)
        await closeAll()
      },
    }
  } catch (err) {
    await closeAll()
    throw err
  }
}

interface CurrentCertificate {
  serving(): ServingCertificate
  readonly caBundle: { readonly caBundle?: string }
  renewed(use: (serving: ServingCertificate) => void): void
  close(): void
}

async function certificateOf(name: string, flags: ExtensionFlags, log: Logger, clock: Clock): Promise<CurrentCertificate> {
  let current: ServingCertificate | undefined
  let caBundle: string | undefined
  const listeners: ((serving: ServingCertificate) => void)[] = []
  const take = (serving: ServingCertificate) => {
    for (const use of listeners) use(serving)
    current = serving
  }
  // `address` contains the bundle of the start. Bundles of later authorities are not published.
  const trust = async (bundle: string) => {
    caBundle ??= Buffer.from(bundle).toString('base64')
  }
  const names = { commonName: name, dnsNames: ['localhost'], ipAddresses: ['127.0.0.1', '::1'] }
  const source = flags.dev
    ? await keepOwnCertificate({ ...names, clock, log, trust, serve: take })
    : await filesOf(flags, take, log)
  return {
    serving: () => current!,
    caBundle: caBundle === undefined ? {} : { caBundle },
    renewed: (use) => void listeners.push(use),
    close: () => source.close(),
  }
}

async function filesOf(
  { files }: ExtensionFlags,
  take: (serving: ServingCertificate) => void,
  log: Logger,
): Promise<WatchedFiles> {
  try {
    return await servingCertificateFrom(files, take, log)
  } catch (err) {
    throw new Error(`Cannot serve without a certificate: ${messageOf(err)} (--dev makes one)`, { cause: err })
  }
}

async function listenAt(
  { host, port }: Address,
  handle: FetchHandler,
  options: ServingCertificate & Omit<Parameters<typeof listen>[1], 'host' | 'port'>,
): Promise<Listening> {
  try {
    return await listen(handle, { ...options, host, port })
  } catch (err) {
    throw cannotListen(err, port)
  }
}

/** Returns the handler of the health endpoints and, with a registry, of the metrics. */
function diagnosticsOf(ready: () => boolean, registry?: Registry): FetchHandler {
  return async (request) => {
    switch (new URL(request.url).pathname) {
      case '/healthz':
        return new Response('ok')
      case '/readyz':
        return ready() ? new Response('ok') : new Response('stopping', { status: 503 })
      case '/metrics':
        if (registry) return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } })
    }
    return new Response('404 page not found\n', { status: 404 })
  }
}

/** Serves diagnostics without requiring client certificates, which scrapers do not have. */
async function listenDiagnostics(
  handle: FetchHandler,
  address: NonNullable<ExtensionFlags['diagnostics']>,
  { clientCA: _clientCA, ...secure }: Parameters<typeof listenAt>[2],
): Promise<Pick<Listening, 'url' | 'renew' | 'close'>> {
  if (!address.insecure) return listenAt(address, handle, secure)
  return { ...(await listenPlain(handle, address)), renew() {} }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
