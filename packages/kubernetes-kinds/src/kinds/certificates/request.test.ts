import { describe, expect, test } from 'vitest'
import { certificateProblem, parseSigningRequest } from './request.ts'

const block = (type: string, body: string) => `-----BEGIN ${type}-----\n${body}\n-----END ${type}-----\n`
const request = (body: string) => block('CERTIFICATE REQUEST', body)

/** Bodies of certificate signing requests by type of key, made with openssl. */
const bodies = {
  ec: `MIHbMIGBAgEAMB8xDTALBgNVBAoMBGRldnMxDjAMBgNVBAMMBWFsaWNlMFkwEwYH
KoZIzj0CAQYIKoZIzj0DAQcDQgAEIHjPvALQwMl81z4LdDMwfBvL8bwkWfT0NEHw
YUtmzj9bYHKcZO8wN/MPnAGowya+zju8Z7hM9NEwFiC03gBpr6AAMAoGCCqGSM49
BAMCA0kAMEYCIQCS1/nQGZ7+LaSqZa7j6jYoncI8JclNR4JOM1ZX0HukDwIhALJx
O/KwntoEY+S8NI5yQD3AHAYetwgD8AHeIRZiwwu5`,
  ed25519: `MIGjMFcCAQAwJDEKMAgGA1UECgwBYTEKMAgGA1UECgwBYjEKMAgGA1UEAwwBeDAq
MAUGAytlcAMhAATpMmJRg437r6F5Eix3NfD18vdH1qjY/nd1+DZdKqJ4oAAwBQYD
K2VwA0EAYjj9RC5c7MZZMlLWDbU3UCpFhlFR5NBI1UhPFkYXhRjL+bP3AyPHkKr8
CPih1vBceNh/UN3qaH//v+2S7g21Ag==`,
  rsa: `MIIBZDCBzgIBADAlMRcwFQYDVQQKDA5zeXN0ZW06bWFzdGVyczEKMAgGA1UEAwwB
eDCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAmz9YQTuVdsPb3sX86/d14TJ9
Udnc2NFi/HckUTyAUbXKSs89qapMw2fI2RN94IvZBIY2u3zm75RNWsVG1tV576gp
Ht5dUv3V++tPe+a9JFdzxn1C1v2yXrwu0YIZYTPovMGqSB1BlxjL6s4CbIauGSlx
hn8g3V4XykIcS71LzvcCAwEAAaAAMA0GCSqGSIb3DQEBCwUAA4GBACgzavtDGfcg
3flWvSGMxoXSdVSUsCR/hmUa6mp/I+2/WzrpwnDEJaylxHukoGrnP8NZTeGQigop
FW8c6bIiXJsoy2silfzQPvOru/6AJHORps4X7i/iugr+/H4wrWGOK/i5/ugJUDap
LS65yPXY8E0uTg3lU4SH5HYff+AvZOCS`,
}

describe('a request', () => {
  test.each([
    ['ec', ['devs']],
    ['ed25519', ['a', 'b']],
    ['rsa', ['system:masters']],
  ] as const)('with a key of type %s is parsed', (key, organizations) => {
    expect(parseSigningRequest(request(bodies[key]))).toEqual({ organizations })
  })

  test('that was changed after it was signed is rejected', () => {
    const changed = Buffer.from(bodies.ec, 'base64')
    changed.write('ALICE', changed.indexOf('alice'))
    expect(() => parseSigningRequest(request(changed.toString('base64')))).toThrow('x509: ECDSA verification failure')
  })

  test.each(['', 'hello', block('CERTIFICATE', bodies.ec)])('that is %j is rejected', (text) => {
    expect(() => parseSigningRequest(text)).toThrow('PEM block type must be CERTIFICATE REQUEST')
  })

  test('that is truncated is rejected with an asn1 or x509 error', () => {
    const whole = Buffer.from(bodies.ed25519, 'base64')
    for (let length = 0; length < whole.length; length++)
      expect(() => parseSigningRequest(request(whole.subarray(0, length).toString('base64')))).toThrow(/^(asn1|x509): /)
  })

  test('with a changed byte is accepted, or rejected with an asn1 or x509 error', () => {
    const whole = Buffer.from(bodies.ed25519, 'base64')
    for (let index = 0; index < whole.length; index++) {
      const changed = Buffer.from(whole)
      changed[index]! ^= 0xff
      expect(problemOf(request(changed.toString('base64')))).toMatch(/^(none|asn1: .*|x509: .*)$/)
    }
  })
})

test.each([
  ['', 'must contain at least one CERTIFICATE PEM block'],
  [request(bodies.ec), 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'],
  [block('CERTIFICATE', `a: b\n\n${bodies.ec}`), 'no PEM block headers are permitted'],
  [block('CERTIFICATE', bodies.ec), 'x509: malformed certificate'],
])('%j is not a certificate', (text, problem) => {
  expect(certificateProblem(text)).toBe(problem)
})

function problemOf(text: string): string {
  try {
    parseSigningRequest(text)
    return 'none'
  } catch (err) {
    return (err as Error).message
  }
}
