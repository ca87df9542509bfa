/**
 * Certificates of our own: an authority, and what it issues to servers and clients. Keys are EC P-256, which cost a tenth of a
 * millisecond where RSA costs a tenth of a second; an authority that was made elsewhere may have an RSA key.
 */
import type { Extension, Name, X509Certificate } from '@peculiar/x509'
import { createPrivateKey, X509Certificate as NodeCertificate } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { hours, minutes } from '../clock.ts'

/** A certificate with its private key, both PEM. The key is a secret: it goes into Secrets and files of mode 0600, never into logs. */
export interface CertifiedKey {
  readonly certificate: string
  readonly key: string
}

export interface AuthorityOptions {
  readonly commonName: string
  /** Milliseconds; ten years when absent. */
  readonly validity?: number
}

export interface IssueOptions {
  /** Subject common name: what an API server takes as the user's name. */
  readonly commonName: string
  /** Subject organizations: what an API server takes as the user's groups. */
  readonly organizations?: readonly string[]
  readonly usages: readonly ('server' | 'client')[]
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  /** Milliseconds; one year when absent. Never beyond the authority's own end. */
  readonly validity?: number
}

const year = hours(24 * 365)
/** Clocks of two machines differ a little: what is issued now is valid a moment ago. */
const skew = minutes(5)

/** A new certificate authority that signs for itself. */
export async function makeAuthority(clock: Clock, { commonName, validity = 10 * year }: AuthorityOptions): Promise<CertifiedKey> {
  const x509 = await library()
  const keys = await newKeys()
  const { from, until } = period(clock, validity)
  const { digitalSignature, keyCertSign, cRLSign } = x509.KeyUsageFlags
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: subject(x509, commonName),
    keys,
    notBefore: from,
    notAfter: until,
    signingAlgorithm: signing,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(digitalSignature | keyCertSign | cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: pem(certificate), key: await exportKey(keys.privateKey) }
}

/** A new key with a certificate for it, signed by `authority`. */
export async function issueCertificate(authority: CertifiedKey, clock: Clock, options: IssueOptions): Promise<CertifiedKey> {
  const x509 = await library()
  const issuer = new x509.X509Certificate(authority.certificate)
  const signingKey = await importKey(authority.key)
  const keys = await newKeys()
  const { from, until } = period(clock, options.validity ?? year)
  const names = [
    ...(options.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(options.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
  ]
  const usage = { server: x509.ExtendedKeyUsage.serverAuth, client: x509.ExtendedKeyUsage.clientAuth }
  const { digitalSignature, keyEncipherment } = x509.KeyUsageFlags
  const extensions: Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(digitalSignature | keyEncipherment, true),
    new x509.ExtendedKeyUsageExtension(options.usages.map((name) => usage[name])),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
  ]
  const certificate = await x509.X509CertificateGenerator.create({
    subject: subject(x509, options.commonName, options.organizations),
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: signingKey.algorithm.name === 'ECDSA' ? signing : { name: signingKey.algorithm.name },
    notBefore: from,
    notAfter: until < issuer.notAfter ? until : issuer.notAfter,
    extensions,
  })
  return { certificate: pem(certificate), key: await exportKey(keys.privateKey) }
}

/** When a certificate stops being valid, in milliseconds since the epoch; of a bundle, its first one. */
export const certificateExpiry = (certificate: string): number => Date.parse(new NodeCertificate(certificate).validTo)

type Library = typeof import('@peculiar/x509')

/** A tenth of a second to load, and most programs never make a certificate. It needs `reflect-metadata` to be there first. */
async function library(): Promise<Library> {
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

const curve = { name: 'ECDSA', namedCurve: 'P-256' }
const signing = { name: 'ECDSA', hash: 'SHA-256' }

const newKeys = (): Promise<CryptoKeyPair> => crypto.subtle.generateKey(curve, true, ['sign', 'verify'])

async function exportKey(key: CryptoKey): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${der.match(/.{1,64}/g)?.join('\n')}\n-----END PRIVATE KEY-----\n`
}

/** Any PEM form that OpenSSL, Go or this file writes. */
async function importKey(text: string): Promise<CryptoKey> {
  const key = createPrivateKey(text)
  const der = new Uint8Array(key.export({ format: 'der', type: 'pkcs8' }))
  const type = key.asymmetricKeyType
  if (type === 'rsa') {
    return crypto.subtle.importKey('pkcs8', der, { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, false, ['sign'])
  }
  if (type === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') {
    return crypto.subtle.importKey('pkcs8', der, curve, false, ['sign'])
  }
  throw new Error(`Cannot sign with a key of type ${type}: expected EC P-256 or RSA`)
}

/** Given as typed strings, since the library reads quotes and `#` in plain ones. */
const subject = ({ Name }: Library, commonName: string, organizations: readonly string[] = []): Name =>
  new Name([...organizations.map((o) => ({ O: [{ utf8String: o }] })), { CN: [{ utf8String: commonName }] }])

/** Certificates count whole seconds. */
const period = (clock: Clock, validity: number) => ({
  from: new Date(Math.floor((clock.now() - skew) / 1000) * 1000),
  until: new Date(Math.floor((clock.now() + validity) / 1000) * 1000),
})

const pem = (certificate: X509Certificate): string => `${certificate.toString('pem')}\n`
