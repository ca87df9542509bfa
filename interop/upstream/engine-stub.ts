/**
 * Serves the part of the Docker API that upstream's development provider (CAPD) calls for in-memory machines: the memory and CPUs of the
 * host. Without a response, CAPD's controller of DevMachineTemplates retries endlessly.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const host = { MemTotal: 8 * 1024 ** 3, NCPU: 4 }

export async function startEngineStub(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://engine').pathname
    response.setHeader('Api-Version', '1.51')
    if (path.endsWith('/_ping')) response.end('OK')
    else if (path.endsWith('/info')) response.setHeader('Content-Type', 'application/json').end(JSON.stringify(host))
    else response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"message":"there are only in-memory machines"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
