/**
 * Serves health and metrics of a manager over HTTP: `/healthz`, `/readyz`, `/metrics`. `diagnostics` handles a request; `serveDiagnostics`
 * listens on a port.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Manager } from './manager.ts'

export async function diagnostics(manager: Pick<Manager, 'started' | 'metrics'>, path: string): Promise<Response> {
  switch (path) {
    case '/healthz':
      return text(200, 'ok')
    case '/readyz':
      return manager.started ? text(200, 'ok') : text(503, 'informers are not synced yet')
    case '/metrics': {
      const { registry } = manager.metrics
      return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } })
    }
    default:
      return text(404, '404 page not found')
  }
}

const text = (status: number, body: string): Response =>
  new Response(body, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } })

export interface DiagnosticsServer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves over HTTP without authentication. By default only on the loopback interface, because metrics name objects of the cluster. Rejects
 * when the port is in use.
 */
export function serveDiagnostics(
  manager: Pick<Manager, 'started' | 'metrics'>,
  port: number,
  host = '127.0.0.1',
  paths: readonly string[] = ['/healthz', '/readyz', '/metrics'],
): Promise<DiagnosticsServer> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    void diagnostics(manager, paths.includes(pathname) ? pathname : '/').then(async (result) => {
      response.writeHead(result.status, Object.fromEntries(result.headers))
      response.end(request.method === 'HEAD' ? undefined : await result.text())
    })
  })
  return new Promise((resolve, reject) => {
    server.once('error', (err: NodeJS.ErrnoException) =>
      reject(err.code === 'EADDRINUSE' ? new Error(`Cannot serve diagnostics: port ${port} is in use`, { cause: err }) : err),
    )
    server.listen(port, host, () => {
      resolve({
        url: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
        close: () => new Promise((done) => void server.close(() => done())),
      })
    })
  })
}
