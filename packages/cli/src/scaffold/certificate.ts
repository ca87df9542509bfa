/** Creates certificates for extensions in clusters without cert-manager. */
import type { Clock } from '@capstan/kube'
import { timestamp } from '@capstan/kube'
import { certificateExpiry, issueCertificate, makeAuthority } from '@capstan/kube/node'

/** Data of the Secret in base64, and `until`, the time at which the certificate expires. */
export interface ServiceCertificate {
  readonly 'ca.crt': string
  readonly 'tls.crt': string
  readonly 'tls.key': string
  readonly until: string
}

/**
 * Creates a certificate authority and a serving certificate for the Service. The key of the authority is discarded.
 *
 * @param previousAuthorities authorities (PEM) that stay trusted, because Pods may still serve certificates that they signed
 */
export async function makeServiceCertificate(
  name: string,
  namespace: string,
  clock: Clock,
  previousAuthorities = '',
): Promise<ServiceCertificate> {
  const authority = await makeAuthority(clock, { commonName: name })
  const service = `${name}.${namespace}.svc`
  const { certificate, key } = await issueCertificate(authority, clock, {
    commonName: service,
    usages: ['server'],
    dnsNames: [service, `${service}.cluster.local`, 'localhost'],
  })
  return {
    'ca.crt': base64(`${authority.certificate.trimEnd()}\n${previousAuthorities}`),
    'tls.crt': base64(certificate),
    'tls.key': base64(key),
    until: timestamp(certificateExpiry(certificate)),
  }
}

/**
 * Returns the first authority in the ca.crt of a Secret's manifest.
 *
 * @throws TypeError when the manifest is not the Secret `name`, or its ca.crt has no certificate
 */
export function authorityIn(manifest: unknown, name: string): string {
  const secret = manifest as { kind?: string; metadata?: { name?: string }; data?: { 'ca.crt'?: string } } | null
  if (secret?.kind !== 'Secret' || secret.metadata?.name !== name) throw new TypeError(`expected the Secret ${name}`)
  const authorities = Buffer.from(secret.data?.['ca.crt'] ?? '', 'base64').toString()
  const [first] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(authorities) ?? []
  if (first === undefined) throw new TypeError('there is no certificate in ca.crt')
  return first
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
