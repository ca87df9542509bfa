/**
 * Pages of other origins may talk to the server, as far as it was told so. It says so to whoever sends an `Origin`, also with a
 * refusal, and answers the browser's question beforehand without asking who it is.
 * Upstream: apiserver/pkg/server/filters/cors.go, v1.36.
 */
import { compilePattern } from '@capstan/kube'
import type { HttpAnswer, HttpHandler } from './exchange.ts'

const always = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
}

/** @returns what is wrong with a pattern for origins; `undefined` when nothing is */
export function originPatternError(pattern: string): string | undefined {
  const { error } = compilePattern(pattern)
  if (error !== undefined) return error
  // One that says neither where a host begins nor where it ends would let in hosts that merely have it in their names.
  const isPinned = /\^|\/\//.test(pattern) && /[$:]/.test(pattern)
  return isPinned ? undefined : 'regular expression does not pin to start/end of host in the origin header'
}

/** @param patterns regular expressions of RE2, of which one has to match an origin */
export function withCORS(handler: HttpHandler, patterns: readonly string[]): HttpHandler {
  if (patterns.length === 0) return handler
  const compiled = patterns.map(compilePattern)
  return async (request, identity): Promise<HttpAnswer> => {
    const { origin } = request.headers
    if (!origin || !compiled.some((pattern) => pattern.test(origin))) return handler(request, identity)
    const headers = { ...always, 'access-control-allow-origin': origin }
    if (request.method === 'OPTIONS') return { status: 204, headers, body: '' }
    const answer = await handler(request, identity)
    return { ...answer, headers: { ...answer.headers, ...headers } }
  }
}
