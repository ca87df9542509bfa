/** Encodes and signs X.509 certificates, and reads the name and key identifier of an issuer from its certificate. Upstream: RFC 5280. */
import { createHash, type KeyObject, randomBytes, sign } from 'node:crypto'
import {
  bits,
  boolean,
  element,
  elements,
  identifier,
  integer,
  nullElement,
  octets,
  sequence,
  sequenceOf,
  set,
  time,
  utf8,
} from './der.ts'

/** Allowed usage of a certificate; `any` is anyExtendedKeyUsage. */
export type CertificateUsage = 'server' | 'client' | 'any'

export interface CertificateFields {
  /** Name of the subject, in DER. */
  readonly subject: Buffer
  /** Name of the issuer in DER, the identifier of its public key, and its private key. */
  readonly issuer: { readonly name: Buffer; readonly keyIdentifier: Buffer; readonly key: KeyObject }
  /** Public key of the subject: SubjectPublicKeyInfo in DER. */
  readonly publicKey: Buffer
  /** Start and end of the validity, in milliseconds since the Unix epoch. The certificate contains them rounded down to seconds. */
  readonly from: number
  readonly until: number
  /** A certificate authority, or the usages and names that the certificate is valid for. */
  readonly use:
    | 'authority'
    | { readonly usages: readonly CertificateUsage[]; readonly dnsNames: readonly string[]; readonly ips: readonly string[] }
}

/** Creates a signed certificate in PEM format. */
export function certificatePEM({ subject, issuer, publicKey, from, until, use }: CertificateFields): string {
  const algorithm = signatureAlgorithm(issuer.key)
  const content = sequence(
    element(0xa0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    algorithm,
    issuer.name,
    sequence(time(from), time(until)),
    subject,
    publicKey,
    element(0xa3, sequenceOf(extensions(keyIdentifier(publicKey), issuer.keyIdentifier, use))),
  )
  return pem('CERTIFICATE', sequence(content, algorithm, bits(sign('sha256', content, issuer.key))))
}

/** Encodes a distinguished name with organizations and one common name. */
export const distinguishedName = (commonName: string, organizations: readonly string[] = []): Buffer =>
  sequenceOf([
    ...organizations.map((organization) => attribute(ids.organization, organization)),
    attribute(ids.commonName, commonName),
  ])

/**
 * Returns the identifier of a public key: the SHA-1 hash of the key in `publicKey`, a SubjectPublicKeyInfo in DER. A certificate that
 * `certificatePEM` makes contains the identifier of its own key and, except for an authority, that of the issuer's key.
 */
export function keyIdentifier(publicKey: Buffer): Buffer {
  const [info] = elements(publicKey)
  const key = elements(info!.content)[1]!.content.subarray(1)
  return createHash('sha1').update(key).digest()
}

/**
 * Reads the subject's name and key identifier from a certificate in DER. If the certificate has no key identifier, computes it from the
 * public key.
 *
 * @throws Error when the certificate cannot be read
 */
export function subjectOf(certificate: Buffer): { readonly name: Buffer; readonly keyIdentifier: Buffer } {
  const [outer] = elements(certificate)
  const [content] = elements(outer!.content)
  const fields = elements(content!.content)
  // The version comes first, but certificates of version 1 omit it.
  const [, , , , subject, publicKey, ...optionalFields] = fields[0]!.tag === 0xa0 ? fields.slice(1) : fields
  const extensionList = optionalFields.find(({ tag }) => tag === 0xa3)
  for (const extension of extensionList ? elements(elements(extensionList.content)[0]!.content) : []) {
    const parts = elements(extension.content)
    if (parts[0]!.encoded.equals(ids.subjectKeyIdentifier))
      return { name: subject!.encoded, keyIdentifier: elements(parts.at(-1)!.content)[0]!.content }
  }
  return { name: subject!.encoded, keyIdentifier: keyIdentifier(publicKey!.encoded) }
}

export const pem = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')}\n-----END ${label}-----\n`

const ids = {
  commonName: identifier('2.5.4.3'),
  organization: identifier('2.5.4.10'),
  subjectKeyIdentifier: identifier('2.5.29.14'),
  keyUsage: identifier('2.5.29.15'),
  subjectAlternativeName: identifier('2.5.29.17'),
  basicConstraints: identifier('2.5.29.19'),
  authorityKeyIdentifier: identifier('2.5.29.35'),
  extendedKeyUsage: identifier('2.5.29.37'),
  server: identifier('1.3.6.1.5.5.7.3.1'),
  client: identifier('1.3.6.1.5.5.7.3.2'),
  any: identifier('2.5.29.37.0'),
  ecdsaWithSHA256: identifier('1.2.840.10045.4.3.2'),
  rsaWithSHA256: identifier('1.2.840.113549.1.1.11'),
}

const attribute = (id: Buffer, text: string): Buffer => set(sequence(id, utf8(text)))

/** Returns a positive random number that is unique in practice. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x7f) | 0x40
  return bytes
}

/** @throws Error for an unsupported key type */
function signatureAlgorithm(key: KeyObject): Buffer {
  const type = key.asymmetricKeyType
  if (type === 'rsa') return sequence(ids.rsaWithSHA256, nullElement)
  if (type === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return sequence(ids.ecdsaWithSHA256)
  throw new Error(`Cannot sign with a key of type ${type}: expected EC P-256 or RSA`)
}

function extensions(subjectKey: Buffer, issuerKey: Buffer, use: CertificateFields['use']): Buffer[] {
  const critical = (id: Buffer, content: Buffer) => sequence(id, boolean(true), octets(content))
  const plain = (id: Buffer, content: Buffer) => sequence(id, octets(content))
  const ownIdentifier = plain(ids.subjectKeyIdentifier, octets(subjectKey))
  if (use === 'authority') {
    return [
      critical(ids.basicConstraints, sequence(boolean(true))),
      // digitalSignature, keyCertSign, cRLSign.
      critical(ids.keyUsage, bits(Buffer.from([0x86]), 1)),
      ownIdentifier,
    ]
  }
  const names = [
    ...use.dnsNames.map((name) => element(0x82, Buffer.from(name, 'latin1'))),
    ...use.ips.map((ip) => element(0x87, ipBytes(ip))),
  ]
  return [
    critical(ids.basicConstraints, sequence()),
    // digitalSignature, keyEncipherment.
    critical(ids.keyUsage, bits(Buffer.from([0xa0]), 5)),
    plain(ids.extendedKeyUsage, sequenceOf(use.usages.map((usage) => ids[usage]))),
    ownIdentifier,
    plain(ids.authorityKeyIdentifier, sequence(element(0x80, issuerKey))),
    ...(names.length === 0 ? [] : [plain(ids.subjectAlternativeName, sequenceOf(names))]),
  ]
}

/** Returns the bytes of an IP address: 4 for IPv4, 16 for IPv6. */
function ipBytes(ip: string): Buffer {
  if (!ip.includes(':')) return Buffer.from(ip.split('.').map(Number))
  // The URL parser normalizes every form to groups of hexadecimal digits.
  const [head = '', tail] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) => text.split(':').filter(Boolean)
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex')
}
