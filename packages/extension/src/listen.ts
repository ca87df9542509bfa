/** Puts a server that is a function on a TLS socket: HTTP/2, and HTTP/1.1 for those who have nothing newer. */
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { FetchHandler } from './server.ts'

export interface ListenOptions {
  /** 127.0.0.1 when absent. */
  readonly host?: string
  /** Any free port when absent or 0. */
  readonly port?: number
  /** PEM. */
  readonly certificate: string
  /** PEM. A secret. */
  readonly key: string
  /** PEM: only clients with a certificate of this authority may call. */
  readonly clientCA?: string
}

export interface Listening {
  readonly url: string
  readonly port: number
  /** New connections get this certificate, such as one that was renewed. */
  renew(certified: Pick<ListenOptions, 'certificate' | 'key'>): void
  /** Calls under way are answered, new ones refused. */
  close(): Promise<void>
}

/** @throws when the port is taken, or certificate and key do not belong together */
export async function listen(handle: FetchHandler, options: ListenOptions): Promise<Listening> {
  const { host = '127.0.0.1', port = 0, certificate, key, clientCA } = options
  const server = createSecureServer({
    allowHTTP1: true,
    cert: certificate,
    key,
    minVersion: 'TLSv1.2',
    ...(clientCA === undefined ? {} : { ca: clientCA, requestCert: true, rejectUnauthorized: true }),
  })
  const sessions = new Set<{ close(): void }>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  server.on('request', (incoming, outgoing) => void respond(handle, incoming, outgoing))

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    renew: ({ certificate, key }) => server.setSecureContext({ cert: certificate, key }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const session of sessions) session.close()
        // Of HTTP/1.1 connections, those that wait for a next request.
        if ('closeIdleConnections' in server) (server.closeIdleConnections as () => void)()
      }),
  }
}

async function respond(handle: FetchHandler, incoming: Http2ServerRequest, outgoing: Http2ServerResponse): Promise<void> {
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  try {
    const response = await handle(requestOf(incoming, gone.signal))
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  } catch {
    // Nothing more can be said to this caller: the handler logs what goes wrong in it.
    outgoing.stream?.destroy()
    incoming.socket?.destroy()
  }
}

function requestOf(incoming: Http2ServerRequest, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (!name.startsWith(':') && typeof value === 'string') headers.set(name, value)
  }
  const { method } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const init: RequestInit & { duplex?: 'half' } = {
    method,
    headers,
    signal,
    ...(hasBody ? { body: Readable.toWeb(incoming) as unknown as ReadableStream, duplex: 'half' } : {}),
  }
  return new Request(new URL(incoming.url, 'https://localhost'), init)
}
