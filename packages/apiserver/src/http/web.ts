import type { Identity } from '../auth/authenticate.ts'
import type { HttpResponse, HttpHandler, HttpRequest } from './exchange.ts'
import { BodyTooLarge } from './exchange.ts'

/**
 * Adapts a handler to the platform's Request and Response: for tests, and to run inside other servers. The platform's Request joins
 * repeated headers, so a request can impersonate only one group.
 */
export function webHandler(handler: HttpHandler): (request: Request, identity: Identity) => Promise<Response> {
  return async (request, identity) => {
    const response = await handler(fromRequest(request), identity)
    const headers = new Headers()
    for (const [name, value] of Object.entries(response.headers)) {
      for (const headerValue of typeof value === 'string' ? [value] : value) headers.append(name, headerValue)
    }
    return new Response(bodyOf(response), { status: response.status, headers })
  }
}

function fromRequest(request: Request): HttpRequest {
  const { pathname, search } = new URL(request.url)
  return {
    method: request.method,
    url: pathname + search,
    headers: Object.fromEntries(request.headers),
    signal: request.signal,
    streamSignal: request.signal,
    async body(limit) {
      const bytes = Buffer.from(await request.arrayBuffer())
      if (bytes.length > limit) throw new BodyTooLarge()
      return bytes
    },
  }
}

function bodyOf({ body, status }: HttpResponse): BodyInit | null {
  // With these statuses, the platform's Response accepts no body, not even an empty one.
  if (status === 204 || status === 304) return null
  if (typeof body === 'string') return body
  if (Buffer.isBuffer(body)) return new Uint8Array(body)
  // Reading the global loads the module on demand; an import would load it at start.
  const { ReadableStream } = globalThis as unknown as typeof import('node:stream/web')
  return ReadableStream.from(body) as unknown as BodyInit
}
