/**
 * Certificates of a cluster, each in a Secret named after the Cluster, made once and never overwritten.
 * Upstream: util/secret. A simulated control plane needs its certificate authority only; etcd, front proxy and service account keys
 * belong to real processes.
 */
import { type Cluster, ClusterNameLabel, ClusterSecretType } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { controllerReference, isReason, keyOf, Secret } from '@capstan/kube'
import { type CertifiedKey, makeAuthority } from '@capstan/kube/node'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { findSecret, secretData, secretText } from '../secrets.ts'

/** Which Secrets there are, as `<cluster>-<purpose>`, and what their certificates are called. */
const ClusterCertificates = [{ purpose: 'ca', commonName: 'kubernetes' }] as const

export type Certificates =
  | { readonly state: 'unread' }
  | { readonly state: 'missing'; readonly purposes: readonly string[] }
  | { readonly state: 'available'; readonly authority: CertifiedKey }

/**
 * Finds the certificates, and makes those that are missing as long as the control plane was never initialized: after that a new
 * authority would lock everybody out.
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
