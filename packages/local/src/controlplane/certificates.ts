/**
 * Creates and reads the certificates of a cluster. Each is in a Secret named after the Cluster. A Secret that exists is never overwritten:
 * users may provide their own certificates, and replace the certificate authority. A simulated control plane uses only the certificate
 * authority; the certificates of etcd, the front proxy and service accounts are for other programs. Upstream: util/secret.
 */
import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { type Cluster, ClusterNameLabel, ClusterSecretType } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { type Clock, controllerReference, isDeleting, isReason, keyOf, Secret } from '@capstan/kube'
import { type CertifiedKey, makeAuthority } from '@capstan/kube/node'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { findSecret, secretData, secretText } from '../secrets.ts'

/**
 * Functions that make the content of the Secrets, by purpose. A Secret is named `<cluster>-<purpose>`. As upstream, the common name of all
 * authorities is the same.
 */
const ClusterCertificates: Readonly<Record<string, (clock: Clock) => Promise<CertifiedKey>>> = {
  ca: authority,
  etcd: authority,
  proxy: authority,
  sa: serviceAccountKeys,
}

/** Reports whether a Secret with this name contains a certificate or the kubeconfig of the Cluster. */
export const isClusterSecret = (name: string, cluster: string): boolean =>
  [...Object.keys(ClusterCertificates), 'kubeconfig'].some((purpose) => name === `${cluster}-${purpose}`)

function authority(clock: Clock): Promise<CertifiedKey> {
  return makeAuthority(clock, { commonName: 'kubernetes' })
}

/** Makes the keys with which tokens of service accounts are signed and verified. The public key is in the place of a certificate. */
async function serviceAccountKeys(): Promise<CertifiedKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
  })
  return { certificate: publicKey, key: privateKey }
}

/** Result of `ensureCertificates`; `unread` before the call. `purposes`: which Secrets are missing or incomplete, such as `ca`. */
export type Certificates =
  | { readonly state: 'unread' }
  | { readonly state: 'missing'; readonly purposes: readonly string[] }
  | { readonly state: 'available'; readonly authority: CertifiedKey }

/**
 * Reads the certificates, and creates missing ones until the control plane is initialized. After that, clients would not trust a new
 * certificate authority. A control plane that is being deleted creates none: its namespace may be terminating, and would reject them.
 */
export async function ensureCertificates(
  controlPlane: LocalControlPlane,
  cluster: Cluster,
  io: ReconcileContext,
): Promise<Certificates> {
  const mayCreate = !isDeleting(controlPlane) && !controlPlane.status?.initialization?.controlPlaneInitialized
  const missing: string[] = []
  let clusterAuthority: CertifiedKey | undefined
  for (const [purpose, make] of Object.entries(ClusterCertificates)) {
    const key = { ...keyOf(cluster), name: `${cluster.metadata.name}-${purpose}` }
    // A Secret that the cache lacks is not read from the API server before the create: if the user has provided it, the create fails.
    const secret = mayCreate ? (io.cache.peek(Secret, key) ?? (await create())) : await findSecret(key, io)
    const certificate = secretText(secret, 'tls.crt')
    const privateKey = secretText(secret, 'tls.key')
    if (certificate === undefined || privateKey === undefined) missing.push(purpose)
    else if (purpose === 'ca') clusterAuthority = { certificate, key: privateKey }

    async function create(): Promise<Secret> {
      const created = await make(io.clock)
      try {
        return await io.client.create(Secret, {
          metadata: {
            ...key,
            labels: { [ClusterNameLabel]: cluster.metadata.name },
            ownerReferences: [controllerReference(controlPlane, LocalControlPlane)],
          },
          type: ClusterSecretType,
          data: secretData({ 'tls.crt': created.certificate, 'tls.key': created.key }),
        })
      } catch (err) {
        // Another client has created the Secret in the meantime: its certificate is used.
        if (isReason(err, 'AlreadyExists')) return io.client.get(Secret, key)
        throw err
      }
    }
  }
  return clusterAuthority && missing.length === 0
    ? { state: 'available', authority: clusterAuthority }
    : { state: 'missing', purposes: missing }
}

/** Returns the message of the condition CertificatesAvailable for missing certificates. */
export const missingCertificates = (purposes: readonly string[]): string =>
  purposes.length === 1
    ? `Cluster certificate for ${purposes[0]} is not available, please check cluster certificate secrets`
    : `Cluster certificates for ${purposes.join(', ')} are not available, please check cluster certificate secrets`
