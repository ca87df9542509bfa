/** Creates and renews the kubeconfig Secret with which core connects to the workload cluster. Upstream: util/kubeconfig. */
import { type Cluster, ClusterNameLabel, ClusterSecretType } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { type Clock, controllerReference, hours, isControlledBy, keyOf, Secret } from '@capstan/kube'
import {
  type CertifiedKey,
  certificateExpiry,
  formatKubeconfig,
  invalidNow,
  issueCertificate,
  type Kubeconfig,
} from '@capstan/kube/node'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { createSecret, secretData, secretText } from '../secrets.ts'
import { serverNameOf } from '../workload/server-name.ts'
import type { Endpoint } from './endpoint.ts'

const Validity = hours(24 * 365)

/**
 * Creates the Secret when it is missing. Renews a Secret that the control plane controls: after half the validity of its client
 * certificate, when its content is not valid, and when the certificate authority has changed.
 */
export async function ensureKubeconfig(
  controlPlane: LocalControlPlane,
  cluster: Cluster,
  authority: CertifiedKey,
  endpoint: Endpoint,
  io: ReconcileContext,
): Promise<void> {
  const key = { ...keyOf(cluster), name: `${cluster.metadata.name}-kubeconfig` }
  const existing = io.cache.peek(Secret, key) ?? (await create()).existing
  if (existing) {
    // Users renew the kubeconfigs that they have provided.
    if (
      !isControlledBy(existing, controlPlane, LocalControlPlane) ||
      !needsRenewal(secretText(existing, 'value'), authority, io.clock)
    )
      return
    const value = formatKubeconfig(await kubeconfigOf(cluster, authority, endpoint, io.clock))
    const body = { metadata: { resourceVersion: existing.metadata.resourceVersion }, data: secretData({ value }) }
    await io.client.patch(Secret, key, { type: 'merge', body })
  }

  async function create() {
    const secret = {
      metadata: {
        ...key,
        labels: { [ClusterNameLabel]: cluster.metadata.name },
        ownerReferences: [controllerReference(controlPlane, LocalControlPlane)],
      },
      type: ClusterSecretType,
      data: secretData({ value: formatKubeconfig(await kubeconfigOf(cluster, authority, endpoint, io.clock)) }),
    }
    return createSecret(secret, io)
  }
}

/**
 * Reports whether less than half the validity of the client certificate is left, the certificate is not valid yet or cannot be read, or the
 * authority has changed.
 */
export function needsRenewal(text: string | undefined, authority: Pick<CertifiedKey, 'certificate'>, clock: Clock): boolean {
  // Called in every reconcile. The YAML need not be parsed, because this provider has written the text.
  const [, trusted] = /certificate-authority-data: ([A-Za-z0-9+/=]+)/.exec(text ?? '') ?? []
  if (trusted !== encode(authority.certificate)) return true
  const [, certificate] = /client-certificate-data: ([A-Za-z0-9+/=]+)/.exec(text ?? '') ?? []
  if (certificate === undefined) return true
  try {
    const pem = Buffer.from(certificate, 'base64').toString('utf8')
    return invalidNow(pem, clock.now()) !== undefined || certificateExpiry(pem) - clock.now() < Validity / 2
  } catch {
    return true
  }
}

const encode = (text: string): string => Buffer.from(text, 'utf8').toString('base64')

async function kubeconfigOf(
  cluster: Cluster,
  authority: CertifiedKey,
  { host, port }: Endpoint,
  clock: Clock,
): Promise<Kubeconfig> {
  const { name } = cluster.metadata
  const user = `${name}-admin`
  const client = await issueCertificate(authority, clock, {
    commonName: 'kubernetes-admin',
    organizations: ['system:masters'],
    usages: ['client'],
    validity: Validity,
  })
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
          'certificate-authority-data': encode(authority.certificate),
          // All workload API servers share one listener: the server name selects the API server.
          'tls-server-name': serverNameOf(keyOf(cluster)),
        },
      },
    ],
    users: [
      { name: user, user: { 'client-certificate-data': encode(client.certificate), 'client-key-data': encode(client.key) } },
    ],
    contexts: [{ name: `${user}@${name}`, context: { cluster: name, user } }],
    'current-context': `${user}@${name}`,
  }
}
