/** Parses the flags of an extension server. Flags shared with upstream's test extension have the same names and defaults. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCiphers } from 'node:tls'
import { parseArgs } from 'node:util'
import { durationText, minutes, parseDuration, seconds } from '@capstan/kube'
import { type LogLevel, LogLevels } from './json-log.ts'

export interface ExtensionFlags {
  readonly host: string
  readonly port: number
  readonly files: { readonly certificate: string; readonly key: string; readonly clientCA?: string }
  /** Address of `/healthz` and `/readyz`, which are not served if it is absent. */
  readonly health?: Address
  /** Address of `/metrics`, which is not served if it is absent. `insecure`: over HTTP instead of HTTPS. */
  readonly diagnostics?: Address & { readonly insecure: boolean }
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly ciphers?: string
  /** Milliseconds for which the server still accepts calls after a stop signal. */
  readonly delay: number
  /** Milliseconds after `delay` in which calls in progress may complete. */
  readonly grace: number
  readonly level: LogLevel
  /** Generates a certificate. By default, the server then listens on a free port of 127.0.0.1, without health checks and metrics. */
  readonly dev: boolean
  /** Stops the server when standard input ends. */
  readonly withParent: boolean
  readonly help: boolean
}

export interface Address {
  /** Empty: all addresses of this machine. */
  readonly host: string
  readonly port: number
}

/** Error in the flags, for the user. */
export class FlagError extends Error {
  override readonly name = 'FlagError'
}

const defaultFolder = join(tmpdir(), 'k8s-webhook-server', 'serving-certs')

export const flagsUsage = `  --webhook-host ADDRESS         address to listen on (all)
  --webhook-port N               port to listen on; 0 selects a free port (9443)
  --webhook-cert-dir DIR         folder of the certificate, which is reloaded when it changes (${defaultFolder})
  --webhook-cert-name FILE       certificate in that folder, PEM (tls.crt)
  --webhook-key-name FILE        its key in that folder, PEM (tls.key)
  --webhook-client-ca-name FILE  authorities in that folder, PEM: requires client certificates that they signed
  --health-addr ADDRESS          address of /healthz and /readyz, over HTTP; 0 disables them (:9440)
  --diagnostics-address ADDRESS  address of /metrics, over HTTPS with the same certificate; 0 disables it (:8443)
  --insecure-diagnostics         /metrics over HTTP
  --tls-min-version VERSION      VersionTLS12 or VersionTLS13 (VersionTLS12)
  --tls-cipher-suites NAMES      cipher suites, by Go's names, separated by commas (those of Node)
  --shutdown-delay-duration D    after SIGTERM, time for which the server still accepts calls while /readyz fails, so that
                                 clients can stop calling it (0s)
  --graceful-shutdown-timeout D  after the shutdown delay, time that calls in progress have to end (30s)
  --log-level LEVEL              ${LogLevels.join(', ')} (info)
  --dev                          for development: generates a certificate, listens on 127.0.0.1 at a free port, and prints
                                 a JSON line with the caBundle for the ExtensionConfig to standard output
  --with-parent                  exit when standard input ends
  --help
`

/** Parses the flags. @throws FlagError that names the flag or argument */
export function parseExtensionFlags(args: readonly string[]): ExtensionFlags {
  const values = valuesOf(args)
  const dev = flag(values, 'dev')
  const folder = text(values, 'webhook-cert-dir') ?? defaultFolder
  const clientCA = text(values, 'webhook-client-ca-name')
  const health = address(values, 'health-addr', dev ? '0' : ':9440')
  const diagnostics = address(values, 'diagnostics-address', dev ? '0' : ':8443')
  const ciphers = text(values, 'tls-cipher-suites')
  return {
    host: text(values, 'webhook-host') ?? (dev ? '127.0.0.1' : ''),
    port: port(text(values, 'webhook-port') ?? (dev ? '0' : '9443'), 'webhook-port'),
    files: {
      certificate: join(folder, text(values, 'webhook-cert-name') ?? 'tls.crt'),
      key: join(folder, text(values, 'webhook-key-name') ?? 'tls.key'),
      ...(clientCA === undefined ? {} : { clientCA: join(folder, clientCA) }),
    },
    ...(health ? { health } : {}),
    ...(diagnostics ? { diagnostics: { ...diagnostics, insecure: flag(values, 'insecure-diagnostics') } } : {}),
    minVersion: oneOf(values, 'tls-min-version', TLSVersions, 'VersionTLS12'),
    ...(ciphers === undefined ? {} : { ciphers: cipherSuites(ciphers) }),
    delay: duration(values, 'shutdown-delay-duration', '0s'),
    grace: duration(values, 'graceful-shutdown-timeout', '30s'),
    level: oneOf(values, 'log-level', Object.fromEntries(LogLevels.map((level) => [level, level])), 'info'),
    dev,
    withParent: flag(values, 'with-parent'),
    help: flag(values, 'help'),
  }
}

type Values = { readonly [name: string]: string | undefined }

const booleans = ['insecure-diagnostics', 'dev', 'with-parent', 'help']
const texts = [
  'webhook-host',
  'webhook-port',
  'webhook-cert-dir',
  'webhook-cert-name',
  'webhook-key-name',
  'webhook-client-ca-name',
  'health-addr',
  'diagnostics-address',
  'tls-min-version',
  'tls-cipher-suites',
  'shutdown-delay-duration',
  'graceful-shutdown-timeout',
  'log-level',
]

function valuesOf(args: readonly string[]): Values {
  // As in Go: `--x` equals `--x=true`, and `--x=false` disables it.
  const spelled = args.map((arg) => (booleans.some((name) => arg === `--${name}`) ? `${arg}=true` : arg))
  try {
    const options = Object.fromEntries([...booleans, ...texts].map((name) => [name, { type: 'string' as const }]))
    return parseArgs({ args: spelled, options, strict: true }).values as Values
  } catch (err) {
    throw new FlagError((err as Error).message)
  }
}

const text = (values: Values, name: string): string | undefined => (values[name] === '' ? undefined : values[name])

function flag(values: Values, name: string): boolean {
  const value = values[name] ?? 'false'
  if (value !== 'true' && value !== 'false') throw new FlagError(`--${name}=${value}: expected true or false`)
  return value === 'true'
}

function oneOf<T>(values: Values, name: string, choices: { readonly [value: string]: T }, fallback: string): T {
  const value = text(values, name) ?? fallback
  if (!Object.hasOwn(choices, value))
    throw new FlagError(
      `--${name} ${value}: expected ${Object.keys(choices)
        .join(', ')
        .replace(/, (\w+)$/, ' or $1')}`,
    )
  return choices[value]!
}

const TLSVersions = { VersionTLS12: 'TLSv1.2', VersionTLS13: 'TLSv1.3' } as const

function port(value: string, name: string): number {
  const number = Number(value)
  if (!/^\d+$/.test(value) || number > 65535) throw new FlagError(`--${name} ${value}: expected a port from 0 to 65535`)
  return number
}

/** Parses an address: `:9440` means all addresses of this machine, `0` disables the server. */
function address(values: Values, name: string, fallback: string): Address | undefined {
  const value = text(values, name) ?? fallback
  if (value === '0') return undefined
  const [, host = '', number = ''] = /^(.*):(\d+)$/.exec(value) ?? []
  if (number === '') throw new FlagError(`--${name} ${value}: expected an address such as :9440 or 127.0.0.1:9440, or 0 for none`)
  return { host: host.replace(/^\[|\]$/g, ''), port: port(number, name) }
}

function duration(values: Values, name: string, fallback: string): number {
  const value = text(values, name) ?? fallback
  try {
    const milliseconds = parseDuration(value)
    if (milliseconds >= 0 && milliseconds <= minutes(60)) return milliseconds
  } catch {
    // The error is thrown below.
  }
  throw new FlagError(`--${name} ${value}: expected a duration of at most 1h, such as ${durationText(seconds(30))}`)
}

/** Converts Go's names of cipher suites, separated by commas, to OpenSSL's names, separated by colons. */
function cipherSuites(names: string): string {
  const opensslSuites = new Set(getCiphers().map((name) => name.toUpperCase()))
  return names
    .split(',')
    .map((entry) => {
      const name = entry.trim()
      if (/^TLS_(AES|CHACHA20)/.test(name) && opensslSuites.has(name)) return name
      const openssl = name
        .replace(/^TLS_/, '')
        .replace('_WITH_', '-')
        .replace(/AES_(\d+)_(CBC_)?/, 'AES$1-')
        .replace(/CHACHA20_POLY1305(_SHA256)?/, 'CHACHA20-POLY1305')
        .replaceAll('_', '-')
      if (!name.startsWith('TLS_ECDHE_') || !opensslSuites.has(openssl)) {
        throw new FlagError(
          `--tls-cipher-suites ${name}: unsupported suite: expected Go's name of a suite with ECDHE or for TLS 1.3, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`,
        )
      }
      return openssl
    })
    .join(':')
}
