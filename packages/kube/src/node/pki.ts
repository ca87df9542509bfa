/**
 * Certificates of our own: an authority, and what it issues to servers and clients. Keys are EC P-256, which cost a tenth of a
 * millisecond where RSA costs a tenth of a second; an authority that was made elsewhere may have an RSA key.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { hours, minutes } from '../clock.ts'
import { certificatePEM, distinguishedName, keyIdentifier, subjectOf, type CertificateUsage } from './certificate.ts'

/** A certificate with its private key, both PEM. The key is a secret: it goes into Secrets and files of mode 0600, never into logs. */
export interface CertifiedKey {
  readonly certificate: string
  readonly key: string
}

export interface AuthorityOptions {
  readonly commonName: string
  /** Milliseconds; ten years when absent. */
  readonly validity?: number
  /** Milliseconds before now from which it is valid; five minutes when absent. */
  readonly backdate?: number
}

export interface IssueOptions {
  /** Subject common name: what an API server takes as the user's name. */
  readonly commonName: string
  /** Subject organizations: what an API server takes as the user's groups. */
  readonly organizations?: readonly string[]
  readonly usages: readonly CertificateUsage[]
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  /** Milliseconds; one year when absent. Never beyond the authority's own end. */
  readonly validity?: number
  /** Milliseconds before now from which it is valid; five minutes when absent. */
  readonly backdate?: number
}

const year = hours(24 * 365)
/** Clocks of two machines differ a little: what is issued now is valid a moment ago. */
const skew = minutes(5)

/** A new certificate authority that signs for itself. */
export async function makeAuthority(
  clock: Clock,
  { commonName, validity = 10 * year, backdate }: AuthorityOptions,
): Promise<CertifiedKey> {
  const { publicKey, key, pem } = newKeys()
  const name = distinguishedName(commonName)
  const issuer = { name, keyIdentifier: keyIdentifier(publicKey), key }
  const certificate = certificatePEM({ subject: name, issuer, publicKey, ...period(clock, validity, backdate), use: 'authority' })
  return { certificate, key: pem }
}

/** A new key with a certificate for it, signed by `authority`. */
export async function issueCertificate(authority: CertifiedKey, clock: Clock, options: IssueOptions): Promise<CertifiedKey> {
  const signer = new X509Certificate(authority.certificate)
  const { publicKey, pem } = newKeys()
  const { from, until } = period(clock, options.validity ?? year, options.backdate)
  const certificate = certificatePEM({
    subject: distinguishedName(options.commonName, options.organizations),
    issuer: { ...subjectOf(signer.raw), key: createPrivateKey(authority.key) },
    publicKey,
    from,
    until: Math.min(until, Date.parse(signer.validTo)),
    use: { usages: options.usages, dnsNames: options.dnsNames ?? [], ips: options.ipAddresses ?? [] },
  })
  return { certificate, key: pem }
}

/** When a certificate stops being valid, in milliseconds since the epoch; of a bundle, its first one. */
export const certificateExpiry = (certificate: string): number => Date.parse(new X509Certificate(certificate).validTo)

/**
 * Whether a certificate is valid now and for more than `margin` milliseconds, belongs to its key, and was issued by `authority` (itself
 * when absent). False for text that is no certificate or no key.
 */
export function isUsable({ certificate, key }: CertifiedKey, now: number, margin: number, authority = certificate): boolean {
  try {
    const parsed = new X509Certificate(certificate)
    return (
      Date.parse(parsed.validFrom) <= now &&
      Date.parse(parsed.validTo) - now > margin &&
      parsed.checkPrivateKey(createPrivateKey(key)) &&
      parsed.verify(new X509Certificate(authority).publicKey)
    )
  } catch {
    return false
  }
}

/** Making a key takes less time than asking another thread to. */
function newKeys(): { publicKey: Buffer; key: KeyObject; pem: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    key: privateKey,
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

/** Certificates count whole seconds. */
const period = (clock: Clock, validity: number, backdate = skew) => ({
  from: Math.floor((clock.now() - backdate) / 1000) * 1000,
  until: Math.floor((clock.now() + validity) / 1000) * 1000,
})
