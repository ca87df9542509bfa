/**
 * Serves a manager's health and diagnostics endpoints at the addresses of upstream's flags; without these flags, both on one loopback
 * port.
 */
import { AccessReviewer, diagnostics, type DiagnosticsServer, type Manager, serveDiagnostics } from '@capstan/controller'
import { keepOwnCertificate, listen, type Listening } from '@capstan/extension'
import type { Client, Clock, Logger } from '@capstan/kube'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { portOption } from '../port-option.ts'

export interface EndpointFlags {
  readonly healthAddr?: Address
  readonly diagnosticsAddress?: Address
  readonly insecureDiagnostics: 'true' | 'false'
  readonly diagnosticsPort: number
  readonly tlsMinVersion: 'VersionTLS12' | 'VersionTLS13'
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Adds the flags of `EndpointFlags`. */
export const withEndpoints = (command: Command): Command =>
  command
    .addOption(new Option('--health-addr <address>', 'address of /healthz and /readyz, such as :9440').argParser(address))
    .addOption(
      new Option(
        '--diagnostics-address <address>',
        'address of metrics over HTTPS, such as :8443; the API server authenticates and authorizes requests',
      ).argParser(address),
    )
    .addOption(
      new Option('--insecure-diagnostics [bool]', 'serve metrics at --diagnostics-address over HTTP, without authentication')
        .choices(['true', 'false'])
        .preset('true')
        .default('false'),
    )
    .addOption(
      portOption(
        '--diagnostics-port <n>',
        'port of health and metrics on loopback, if neither --health-addr nor --diagnostics-address is given; 0 selects a free port',
      ).default(8080),
    )
    .addOption(
      new Option('--tls-min-version <version>', 'minimum TLS version of webhooks and diagnostics')
        .choices(['VersionTLS12', 'VersionTLS13'])
        .default('VersionTLS12'),
    )

/** Parses an address. As in Go, `:8443` means all addresses of the machine. */
function address(text: string): Address {
  const [, host, port] = /^(?:\[([^\]]+)\]|[^:]*):(\d{1,5})$/.exec(text) ?? []
  if (port === undefined || Number(port) > 65535)
    throw new InvalidArgumentError('expected HOST:PORT, such as :8443 or 127.0.0.1:8443.')
  const hostText = host ?? text.slice(0, text.lastIndexOf(':'))
  return { host: hostText === '' ? '::' : hostText, port: Number(port) }
}

export const tlsVersion = (version: EndpointFlags['tlsMinVersion']) => (version === 'VersionTLS13' ? 'TLSv1.3' : 'TLSv1.2')

export interface Endpoints {
  /** Addresses of the endpoints, for the log line of a ready manager. */
  readonly text: string
  close(): Promise<void>
}

/** Starts the endpoints that the flags select. If one of them cannot start, closes the others. */
export async function serveEndpoints(
  manager: Manager,
  flags: EndpointFlags,
  { client, clock, log }: { readonly client: Client; readonly clock: Clock; readonly log: Logger },
): Promise<Endpoints> {
  const { healthAddr, diagnosticsAddress } = flags
  const openServers: { readonly url: string; close(): Promise<void> }[] = []
  const texts: string[] = []
  const add = (name: string, server: { readonly url: string; close(): Promise<void> }) => {
    openServers.push(server)
    texts.push(`${name} at ${server.url}`)
  }
  try {
    if (!healthAddr && !diagnosticsAddress) add('diagnostics', await serveDiagnostics(manager, flags.diagnosticsPort))
    if (healthAddr) add('health', await serveDiagnostics(manager, healthAddr.port, healthAddr.host, ['/healthz', '/readyz']))
    if (diagnosticsAddress) {
      const { host, port } = diagnosticsAddress
      add(
        'diagnostics',
        flags.insecureDiagnostics === 'true'
          ? await serveDiagnostics(manager, port, host, ['/metrics'])
          : await serveSecurely(manager, { host, port, minVersion: tlsVersion(flags.tlsMinVersion), client, clock, log }),
      )
    }
  } catch (err) {
    for (const server of openServers) await server.close()
    throw err
  }
  return {
    text: texts.join(', '),
    async close() {
      for (const server of openServers) await server.close()
    },
  }
}

interface SecureOptions extends Address {
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Serves diagnostics over HTTPS with a generated certificate (upstream: a self-signed certificate). The API server authenticates and
 * authorizes the clients. The clients cannot authenticate this server, because the certificate's authority is not published.
 */
async function serveSecurely(manager: Manager, options: SecureOptions): Promise<DiagnosticsServer> {
  const { host, port, minVersion, client, clock, log } = options
  const reviewer = new AccessReviewer(client, clock)
  const handle = async (request: Request): Promise<Response> => {
    const review = await reviewer.review(request)
    if (review.kind === 'rejected')
      return new Response(`${review.message}\n`, {
        status: review.status,
        headers: { 'content-type': 'text/plain; charset=utf-8' },
      })
    const { pathname } = new URL(request.url)
    return diagnostics(manager, pathname)
  }
  let listening: Listening | undefined
  const certificate = await keepOwnCertificate({
    commonName: 'capstan-diagnostics',
    dnsNames: ['localhost'],
    clock,
    log,
    trust: () => Promise.resolve(),
    serve: async (serving) => {
      if (listening) return listening.renew(serving)
      listening = await listen(handle, { ...serving, host, port, minVersion, clock, log })
    },
  })
  return {
    url: listening!.url,
    async close() {
      certificate.close()
      await listening!.close()
    },
  }
}
