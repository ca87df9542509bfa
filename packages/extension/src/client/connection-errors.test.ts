import { expect, test } from 'vitest'
import { goError } from './connection-errors.ts'

/** The texts are those of crypto/x509.HostnameError, for which VerifyHostname removes the brackets of an IPv6 host. */
test.each([
  ['DNS:a.test, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:2', 'certificate is valid for 127.0.0.1, ::2, not ::1'],
  ['DNS:a.test', "cannot validate certificate for ::1 because it doesn't contain any IP SANs"],
])('a certificate for %s is not valid for an IPv6 host', (subjectaltname, text) => {
  const err = Object.assign(new Error(), { code: 'ERR_TLS_CERT_ALTNAME_INVALID', cert: { subjectaltname } })
  expect(goError(err, new URL('https://[::1]:8443/')).message).toBe(`tls: failed to verify certificate: x509: ${text}`)
})
