/** Defines the flags that address an extension server, and creates the transport to it. */
import { createSecureContext } from 'node:tls'
import type { ClientConfig } from '@capstan/api'
import type { ClientCertificate, HttpsHookTransport } from '@capstan/extension'
import { httpsHookTransport } from '@capstan/extension'
import { messageOf } from '@capstan/kube'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Io, UsageError } from '../../io.ts'
import { readTextFile } from '../../read-files.ts'

export interface ServerOptions {
  ca?: string
  clientCert?: string
  clientKey?: string
  /** Timeout of a call, in seconds. */
  timeout: number
}

/** Adds the flags of `ServerOptions` to a command. */
export const withServer = (command: Command): Command =>
  command
    .option('--ca <file>', 'certificates to trust, PEM (default: those of the system)')
    .option('--client-cert <file>', 'client certificate, PEM')
    .option('--client-key <file>', 'private key of the client certificate, PEM')
    .addOption(new Option('--timeout <seconds>', 'timeout of a call, in seconds').default(10).argParser(seconds))

function seconds(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value > 0 && value <= 30))
    throw new InvalidArgumentError('expected a number of seconds above 0, at most 30.')
  return value
}

/**
 * Returns the client configuration for the URL and --ca.
 *
 * @throws UsageError if the URL is not https, or if the file cannot be read or has no certificate
 */
export function serverAt(url: string, { ca }: ServerOptions): ClientConfig {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol !== 'https:')
    throw new UsageError(
      `${url} is not a URL with https`,
      'Hooks are called over HTTPS only: expected a URL such as https://127.0.0.1:9443, optionally with a path prefix.',
    )
  return { url, ...(ca === undefined ? {} : { caBundle: Buffer.from(authoritiesIn(ca)).toString('base64') }) }
}

function authoritiesIn(file: string): string {
  const text = readTextFile(`--ca ${file}`, file)
  if (!text.includes('-----BEGIN CERTIFICATE-----')) throw new UsageError(`--ca ${file}: it has no certificate in PEM`)
  return text
}

/**
 * Creates a transport that uses the proxy of the environment, like core.
 *
 * @throws UsageError for an unreadable or invalid client certificate or key, or when only one of them is given
 */
export function transportTo(options: ServerOptions, { env }: Io): HttpsHookTransport {
  const client = clientOf(options)
  return httpsHookTransport({ env, ...(client === undefined ? {} : { client }) })
}

function clientOf({ clientCert, clientKey }: ServerOptions): ClientCertificate | undefined {
  if (clientCert === undefined && clientKey === undefined) return undefined
  if (clientCert === undefined || clientKey === undefined)
    throw new UsageError('--client-cert and --client-key must be given together')
  const certificate = readTextFile(`--client-cert ${clientCert}`, clientCert)
  const key = readTextFile(`--client-key ${clientKey}`, clientKey)
  try {
    createSecureContext({ cert: certificate, key })
  } catch (err) {
    throw new UsageError(
      `--client-cert ${clientCert} and --client-key ${clientKey} are not a certificate and its key: ${messageOf(err)}`,
    )
  }
  return { certificate, key }
}
