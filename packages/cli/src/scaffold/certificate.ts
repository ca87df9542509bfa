/** A certificate for an extension in a cluster without cert-manager. */
import type { Clock } from '@capstan/kube'
import { timestamp } from '@capstan/kube'
import { certificateExpiry, issueCertificate, makeAuthority } from '@capstan/kube/node'

/** What the manifest of the Secret says, base64 but for `until`. `tls.key` is a secret. */
export interface SelfMade {
  readonly 'ca.crt': string
  readonly 'tls.crt': string
  readonly 'tls.key': string
  readonly until: string
}

/** An authority of its own, whose key nobody keeps, and what it has signed for the Service. */
export async function selfMade(name: string, namespace: string, clock: Clock): Promise<SelfMade> {
  const authority = await makeAuthority(clock, { commonName: name })
  const service = `${name}.${namespace}.svc`
  const { certificate, key } = await issueCertificate(authority, clock, {
    commonName: service,
    usages: ['server'],
    dnsNames: [service, `${service}.cluster.local`, 'localhost'],
  })
  return {
    'ca.crt': base64(authority.certificate),
    'tls.crt': base64(certificate),
    'tls.key': base64(key),
    until: timestamp(certificateExpiry(certificate)),
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
