/**
 * CORS: allows pages of configured origins to call the server. Adds CORS headers to every response for such an origin, including errors,
 * and responds to its preflight requests without authentication. Upstream: apiserver/pkg/server/filters/cors.go, v1.36.
 */
import { compilePattern } from '@capstan/kube'
import type { HttpResponse, HttpHandler } from './exchange.ts'

const commonHeaders = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
}

/** Returns the error text for an invalid pattern for origins; `undefined` for a valid pattern. */
export function originPatternError(pattern: string): string | undefined {
  const { error } = compilePattern(pattern)
  if (error !== undefined) return error
  // Without anchors at both ends of the host, `example.com` would also match `example.com.evil.org`.
  const isAnchored = /\^|\/\//.test(pattern) && /[$:]/.test(pattern)
  return isAnchored ? undefined : 'regular expression does not pin to start/end of host in the origin header'
}

/**
 * Adds CORS to a handler.
 * @param patterns RE2 regular expressions, one of which must match the origin
 */
export function withCORS(handler: HttpHandler, patterns: readonly string[]): HttpHandler {
  if (patterns.length === 0) return handler
  const compiled = patterns.map(compilePattern)
  return async (request, identity): Promise<HttpResponse> => {
    const { origin } = request.headers
    if (!origin || !compiled.some((pattern) => pattern.test(origin))) return handler(request, identity)
    const headers = { ...commonHeaders, 'access-control-allow-origin': origin }
    if (request.method === 'OPTIONS') return { status: 204, headers, body: '' }
    const response = await handler(request, identity)
    return { ...response, headers: { ...response.headers, ...headers } }
  }
}
