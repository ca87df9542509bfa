/**
 * Certificate authorities, and certificates for servers and clients. Keys are EC P-256, which take a tenth of a millisecond to create (RSA:
 * a tenth of a second). An existing authority may have an RSA key.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { hours, timestamp } from '../clock.ts'
import { certificatePEM, distinguishedName, keyIdentifier, subjectOf, type CertificateUsage } from './certificate.ts'

/** A certificate with its private key, both PEM. The key is a secret: store it only in Secrets and files of mode 0600, never log it. */
export interface CertifiedKey {
  readonly certificate: string
  readonly key: string
}

export interface AuthorityOptions {
  readonly commonName: string
  /** Milliseconds; default ten years. */
  readonly validity?: number
  /** Milliseconds by which the validity begins before now. Default: one day, or a tenth of `validity` if that is shorter. */
  readonly backdate?: number
}

export interface IssueOptions {
  /** Common name of the subject, which API servers use as the user name. */
  readonly commonName: string
  /** Organizations of the subject, which API servers use as the groups of the user. */
  readonly organizations?: readonly string[]
  readonly usages: readonly CertificateUsage[]
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  /** Milliseconds; default one year. The certificate is valid no longer than the certificate of the authority. */
  readonly validity?: number
  /** Milliseconds by which the validity begins before now. Default: one day, or a tenth of `validity` if that is shorter. */
  readonly backdate?: number
}

const year = hours(24 * 365)
/** Default of `backdate`. A certificate that is issued while the clock is ahead stays valid when the clock is set back. */
const day = hours(24)

/** Creates a self-signed certificate authority. */
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

/** Creates a key and a certificate for it, signed by `authority`. */
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

/** End of validity of a certificate, in milliseconds since the epoch; for a bundle, of its first certificate. */
export const certificateExpiry = (certificate: string): number => Date.parse(new X509Certificate(certificate).validTo)

/** DNS names and IP addresses of a serving certificate. */
export interface CertificateNames {
  readonly dnsNames: readonly string[]
  readonly ipAddresses: readonly string[]
}

/**
 * Reports whether a certificate is valid at `now` and for more than `margin` milliseconds after it, matches its key, was issued by
 * `authority` (is self-signed, when `authority` is absent), and contains all `dnsNames` and `ipAddresses`. False for text that is not a
 * certificate or key.
 */
export function isUsable(
  { certificate, key }: CertifiedKey,
  now: number,
  margin: number,
  authority = certificate,
  { dnsNames, ipAddresses }: CertificateNames = { dnsNames: [], ipAddresses: [] },
): boolean {
  try {
    const parsed = new X509Certificate(certificate)
    return (
      Date.parse(parsed.validFrom) <= now &&
      Date.parse(parsed.validTo) - now > margin &&
      parsed.checkPrivateKey(createPrivateKey(key)) &&
      parsed.verify(new X509Certificate(authority).publicKey) &&
      dnsNames.every((name) => parsed.checkHost(name) !== undefined) &&
      ipAddresses.every((address) => parsed.checkIP(address) !== undefined)
    )
  } catch {
    return false
  }
}

/** Returns the reason why a certificate is not valid at `now`, with its dates; undefined if it is valid. */
export function invalidNow(certificate: string, now: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(certificate)
  const [from, until] = [Date.parse(validFrom), Date.parse(validTo)]
  if (from <= now && now <= until) return undefined
  return `the certificate is valid from ${timestamp(from)} to ${timestamp(until)}, and now is ${timestamp(now)}`
}

/** Creates a key pair. Synchronous, because this takes less time than the round trip to another thread. */
function newKeys(): { publicKey: Buffer; key: KeyObject; pem: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    key: privateKey,
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

/** Returns a period of validity in milliseconds since the epoch, rounded down to whole seconds, the resolution of certificates. */
const period = (clock: Clock, validity: number, backdate = Math.min(day, validity / 10)) => ({
  from: Math.floor((clock.now() - backdate) / 1000) * 1000,
  until: Math.floor((clock.now() + validity) / 1000) * 1000,
})
