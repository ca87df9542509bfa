/**
 * Serves health and metrics of a manager over HTTP: `/healthz`, `/readyz`, `/metrics`. `diagnostics` handles a request; `serveDiagnostics`
 * listens on a port.
 */
import { listenPlain } from '@capstan/kube/node'
import type { Manager } from './manager.ts'

/** Returns the response to a request for `path`; 404 for other paths than `/healthz`, `/readyz` and `/metrics`. */
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
 * Serves `paths` over HTTP without authentication; other paths return 404. The default host is the loopback interface, because metrics name
 * objects of the cluster.
 * @throws Error that names the port, when it cannot be used
 */
export const serveDiagnostics = (
  manager: Pick<Manager, 'started' | 'metrics'>,
  port: number,
  host = '127.0.0.1',
  paths: readonly string[] = ['/healthz', '/readyz', '/metrics'],
): Promise<DiagnosticsServer> =>
  listenPlain(
    async ({ url }) => {
      const { pathname } = new URL(url)
      return diagnostics(manager, paths.includes(pathname) ? pathname : '/')
    },
    { host, port },
  )
