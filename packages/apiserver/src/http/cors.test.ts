import { expect, test } from 'vitest'
import { originPatternError, withCORS } from './cors.ts'
import type { HttpHandler } from './exchange.ts'

const forbid: HttpHandler = async () => ({ status: 403, headers: { 'content-type': 'application/json' }, body: '{}' })
const handler = withCORS(forbid, ['//example\\.com(:|$)', '^http://localhost(:|$)'])

const send = (origin: string | undefined, method = 'GET', receiver = handler) =>
  receiver(
    {
      method,
      url: '/api/v1/namespaces/default',
      headers: { origin },
      signal: new AbortController().signal,
      streamSignal: new AbortController().signal,
      body: async () => Buffer.alloc(0),
    },
    { kind: 'anonymous' },
  )

// Recorded from kube-apiserver v1.36.2.
const corsHeaders = (origin: string) => ({
  'access-control-allow-credentials': 'true',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-origin': origin,
  'access-control-expose-headers': 'Date',
})

test.each(['https://example.com', 'https://example.com:8443', 'http://localhost:3000'])(
  'pages of the allowed origin %s get CORS headers, with error responses and with responses to OPTIONS',
  async (origin) => {
    expect(await send(origin)).toEqual({
      status: 403,
      headers: { 'content-type': 'application/json', ...corsHeaders(origin) },
      body: '{}',
    })
    expect(await send(origin, 'OPTIONS')).toEqual({ status: 204, headers: corsHeaders(origin), body: '' })
  },
)

test.each([undefined, '', 'null', 'https://example.com.evil.org', 'https://evil-example.com', 'http://evil.org'])(
  'pages of the origin %s, which is not allowed, get no CORS headers',
  async (origin) => {
    const withoutCORS = { status: 403, headers: { 'content-type': 'application/json' }, body: '{}' }
    expect(await send(origin)).toEqual(withoutCORS)
    expect(await send(origin, 'OPTIONS')).toEqual(withoutCORS)
  },
)

test('without patterns no origin is allowed', async () => {
  const response = await send('https://example.com', 'OPTIONS', withCORS(forbid, []))
  expect(response.headers).toEqual({ 'content-type': 'application/json' })
})

test.each([
  ['^https://example\\.com$', undefined],
  ['//example\\.com(:|$)', undefined],
  ['example.com', 'regular expression does not pin to start/end of host in the origin header'],
  ['//example.com', 'regular expression does not pin to start/end of host in the origin header'],
  ['[', 'error parsing regexp: missing closing ]: `[`'],
])('the error for pattern %s is %s', (pattern, error) => {
  expect(originPatternError(pattern)).toBe(error)
})
