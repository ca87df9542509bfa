import { generateKeyPairSync, type KeyPairKeyObjectResult, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hours, VirtualClock } from '../clock.ts'
import { certificatePEM, distinguishedName, keyIdentifier, subjectOf } from './certificate.ts'
import { element, elements, identifier, integer, sequence, time } from './der.ts'
import { issueCertificate } from './pki.ts'

const clock = new VirtualClock(Date.UTC(2026, 0, 1))

const generateKeys = {
  rsa: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ec: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed25519: () => generateKeyPairSync('ed25519'),
} satisfies { [type: string]: () => KeyPairKeyObjectResult }

function authority(type: keyof typeof generateKeys, from = clock.now(), until = from + hours(1)) {
  const { publicKey, privateKey } = generateKeys[type]()
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const name = distinguishedName('made elsewhere', ['example'])
  const issuer = { name, keyIdentifier: Buffer.from('an identifier of its own'), key: privateKey }
  const make = () => certificatePEM({ subject: name, issuer, publicKey: spki, from, until, use: 'authority' })
  return { make, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, spki }
}

test('an authority with an RSA key issues valid certificates', async () => {
  const { make, key } = authority('rsa')
  const ca = { certificate: make(), key }
  const issued = new X509Certificate((await issueCertificate(ca, clock, { commonName: 'x', usages: ['client'] })).certificate)
  const certificate = new X509Certificate(ca.certificate)
  expect([
    issued.checkIssued(certificate),
    issued.verify(certificate.publicKey),
    certificate.verify(certificate.publicKey),
  ]).toEqual([true, true, true])
})

test('the error for an unsupported key names the type of the key', () => {
  expect(() => authority('ed25519').make()).toThrow('Cannot sign with a key of type ed25519: expected EC P-256 or RSA')
})

test('years until 2049 are encoded with two digits, years from 2050 on with four', () => {
  const until = Date.UTC(2060, 1, 3, 4, 5, 6)
  expect(Date.parse(new X509Certificate(authority('ec', clock.now(), until).make()).validTo)).toBe(until)
  expect(
    time(Date.UTC(2049, 11, 31, 23, 59, 59))
      .subarray(2)
      .toString(),
  ).toBe('491231235959Z')
  expect(
    time(Date.UTC(2050, 0, 1))
      .subarray(2)
      .toString(),
  ).toBe('20500101000000Z')
})

test.each([
  ['10.0.0.1', 'IP Address:10.0.0.1'],
  ['::', 'IP Address:0:0:0:0:0:0:0:0'],
  ['fd00::1:2', 'IP Address:FD00:0:0:0:0:0:1:2'],
  ['::ffff:1.2.3.4', 'IP Address:0:0:0:0:0:FFFF:102:304'],
  ['1:2:3:4:5:6:7:8', 'IP Address:1:2:3:4:5:6:7:8'],
])('a certificate for the IP address %s has the subject alternative name %s', async (ip, name) => {
  const { make, key } = authority('ec')
  const { certificate } = await issueCertificate({ certificate: make(), key }, clock, {
    commonName: 'x',
    usages: ['server'],
    ipAddresses: [ip],
  })
  expect(new X509Certificate(certificate).subjectAltName).toBe(name)
})

test('subjectOf returns the name and the key identifier of the subject of a certificate', () => {
  const { make, spki } = authority('ec')
  const { name, keyIdentifier: subjectKeyIdentifier } = subjectOf(new X509Certificate(make()).raw)
  expect(name).toEqual(distinguishedName('made elsewhere', ['example']))
  expect(subjectKeyIdentifier).toEqual(keyIdentifier(spki))
})

test('elements of any length round-trip', () => {
  const parts = fc.array(
    fc.tuple(
      fc.constantFrom(0x02, 0x04, 0x30, 0xa0),
      fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ minLength: 250, maxLength: 70_000, size: 'max' })),
    ),
    { maxLength: 4 },
  )
  fc.assert(
    fc.property(parts, (contents) => {
      const read = elements(elements(sequence(...contents.map(([tag, content]) => element(tag, content))))[0]!.content)
      expect(read.map(({ tag, content }) => [tag, content.toString('hex')])).toEqual(
        contents.map(([tag, content]) => [tag, Buffer.from(content).toString('hex')]),
      )
    }),
    { seed: 1, numRuns: 50 },
  )
})

test('random bytes are parsed, or rejected as malformed DER', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 30 }), (bytes) => {
      try {
        elements(Buffer.from(bytes))
      } catch (err) {
        expect((err as Error).message).toMatch(/^malformed DER/)
      }
    }),
    { seed: 1, numRuns: 500 },
  )
})

test.each([
  ['integer 0', integer(Buffer.from([0, 0, 0])), '020100'],
  ['integer 128', integer(Buffer.from([0, 0x80])), '02020080'],
  ['integer 127', integer(Buffer.from([0x7f])), '02017f'],
  ['object identifier 1.2.840.113549.1.1.11', identifier('1.2.840.113549.1.1.11'), '06092a864886f70d01010b'],
])('the %s is encoded in the shortest form', (_, encoded, hex) => {
  expect(encoded.toString('hex')).toBe(hex)
})
