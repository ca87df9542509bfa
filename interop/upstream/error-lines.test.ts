import { expect, test } from 'vitest'
import { errorText } from './error-lines.ts'

test.each([
  ['a line of information', '{"ts":1,"caller":"x.go:1","msg":"Starting","v":0}', undefined],
  ['an empty line', '', undefined],
  [
    'an error',
    '{"ts":1,"msg":"Reconciler error","controller":"machine","object":{"name":"demo-x7k2q"},"err":"failed to patch Machine team/demo-md-0-b4n7c-x7k2q: 409 at 12345"}',
    'machine: Reconciler error: failed to patch Machine team/demo-md-0-*: 409 at N',
  ],
  [
    'an error with an address and a duration',
    '{"msg":"failed","err":"Get \\"https://127.0.0.1:20000/?timeout=10s\\": dial tcp 127.0.0.1:20000: connect: connection refused"}',
    'failed: Get "https://ADDRESS/?timeout=DURATION": dial tcp ADDRESS: connect: connection refused',
  ],
  [
    'what is no JSON',
    '2026/01/01 00:00:00 http: TLS handshake error from 127.0.0.1:4711: EOF',
    'TIME http: TLS handshake error from ADDRESS: EOF',
  ],
])('%s', (_, line, text) => {
  expect(errorText(line)).toBe(text)
})
