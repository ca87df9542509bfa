/**
 * Certificates of a cluster, each in a Secret named after the Cluster, created once and never overwritten. A simulated control plane
 * needs only its certificate authority, no keys of etcd, front proxy and service accounts. Upstream: util/secret.
 */
import { type Cluster, ClusterNameLabel, ClusterSecretType } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { controllerReference, isReason, keyOf, Secret } from '@capstan/kube'
import { type CertifiedKey, makeAuthority } from '@capstan/kube/node'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { findSecret, secretData, secretText } from '../secrets.ts'

/** The Secrets, named `<cluster>-<purpose>`, and the common names of their certificates. */
const ClusterCertificates = [{ purpose: 'ca', commonName: 'kubernetes' }] as const

export type Certificates =
  | { readonly state: 'unread' }
  | { readonly state: 'missing'; readonly purposes: readonly string[] }
  | { readonly state: 'available'; readonly authority: CertifiedKey }

/**
 * Reads the certificates, and creates missing ones until the control plane is initialized. After that, clients would not trust a new
 * certificate authority.
 */
export async function ensureCertificates(
  controlPlane: LocalControlPlane,
  cluster: Cluster,
  io: ReconcileContext,
): Promise<Certificates> {
  const mayMake = !controlPlane.status?.initialization?.controlPlaneInitialized
  const missing: string[] = []
  let authority: CertifiedKey | undefined
  for (const { purpose, commonName } of ClusterCertificates) {
    const key = { ...keyOf(cluster), name: `${cluster.metadata.name}-${purpose}` }
    const found = await findSecret(key, io)
    const secret = found ?? (mayMake ? await create() : undefined)
    const certificate = secretText(secret, 'tls.crt')
    const privateKey = secretText(secret, 'tls.key')
    if (certificate === undefined || privateKey === undefined) missing.push(purpose)
    else if (purpose === 'ca') authority = { certificate, key: privateKey }

    async function create(): Promise<Secret> {
      const made = await makeAuthority(io.clock, { commonName })
      try {
        return await io.client.create(Secret, {
          metadata: {
            ...key,
            labels: { [ClusterNameLabel]: cluster.metadata.name },
            ownerReferences: [controllerReference(controlPlane, LocalControlPlane)],
          },
          type: ClusterSecretType,
          data: secretData({ 'tls.crt': made.certificate, 'tls.key': made.key }),
        })
      } catch (err) {
        // Created concurrently: the existing one is used.
        if (isReason(err, 'AlreadyExists')) return io.client.get(Secret, key)
        throw err
      }
    }
  }
  return authority && missing.length === 0 ? { state: 'available', authority } : { state: 'missing', purposes: missing }
}

/** Describes missing certificates, with upstream's text. */
export const missingCertificates = (purposes: readonly string[]): string =>
  `Cluster ${purposes.length === 1 ? 'certificate for' : 'certificates for'} ${purposes.join(', ')} ${purposes.length === 1 ? 'is' : 'are'} not available${purposes.length === 1 ? ', please check cluster certificate secrets' : ''}`
