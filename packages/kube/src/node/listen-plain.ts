import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { seconds } from '../clock.ts'
import { messageOf } from '../errors.ts'

/** Address to listen on. */
export interface ListenAddress {
  /** Empty: all interfaces. */
  readonly host: string
  /** 0: any free port. */
  readonly port: number
}

/** Maximum number of connections; further ones are closed. */
const MaxConnections = 100

/** Timeouts for connections without a complete request, which could otherwise use up `MaxConnections` and block probes. */
const timeouts = { headersTimeout: seconds(5), requestTimeout: seconds(10), connectionsCheckingInterval: seconds(1) }

/**
 * Serves GET and HEAD requests over HTTP without TLS, such as those for health and metrics. Responds with 405 to other methods, with 400 to
 * a URL that is invalid or has credentials, and with 500 when `handle` fails. `close` also closes open connections.
 * @throws Error that names the port, when the server cannot listen on it
 */
export async function listenPlain(
  handle: (request: Request) => Promise<Response>,
  { host, port }: ListenAddress,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const respond = async (path: string): Promise<Response> => {
    // The path is not resolved against a base URL, because `//x` would then name a host.
    const url = URL.parse(path.startsWith('/') ? `http://localhost${path}` : path)
    // A Request cannot have a URL with credentials.
    if (!url || url.username !== '' || url.password !== '') return new Response('400 Bad Request\n', { status: 400 })
    return handle(new Request(url)).catch((err) => new Response(`${messageOf(err)}\n`, { status: 500 }))
  }
  const server = createServer(timeouts, (incoming, outgoing) => {
    incoming.resume()
    const { method = 'GET', url = '/' } = incoming
    if (method !== 'GET' && method !== 'HEAD') return void outgoing.writeHead(405).end()
    void respond(url)
      .then(async (answer) => {
        const body = await answer.text()
        outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(method === 'HEAD' ? undefined : body)
      })
      .catch(() => outgoing.destroy())
  })
  server.maxConnections = MaxConnections
  await new Promise<void>((resolve, reject) => {
    server.once('error', (err) => reject(cannotListen(err, port)))
    server.listen(port, host === '' ? undefined : host, resolve)
  })
  return {
    url: serverUrl('http', host, (server.address() as AddressInfo).port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Returns a URL of a server that listens on `host`, for clients on this machine. */
export const serverUrl = (scheme: 'http' | 'https', host: string, port: number): string =>
  `${scheme}://${host === '' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`

/** Returns an error for a server that cannot listen. */
export function cannotListen(err: unknown, port: number): Error {
  const { code } = err as NodeJS.ErrnoException
  return new Error(`Cannot listen on port ${port}: ${code === 'EADDRINUSE' ? 'it is in use' : messageOf(err)}`, { cause: err })
}
