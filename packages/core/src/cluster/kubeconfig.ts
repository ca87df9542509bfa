import { Cluster, ClusterNameLabel, ClusterSecretType, isValidEndpoint } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isReason, orAbsent, ownerReference, Secret } from '@capstan/kube'
import { formatKubeconfig, issueCertificate, type Kubeconfig } from '@capstan/kube/node'
import type { ClusterPhase } from './scope.ts'

/**
 * Generates the kubeconfig of a Cluster that has neither a control plane provider nor a topology. Its client certificate is signed by the
 * certificate authority that the user put into the Secret `<cluster>-ca`. Upstream: util/kubeconfig, v1.14.
 */
export const kubeconfig: ClusterPhase = async ({ cluster }, { cache, client, clock, signal }) => {
  const { name, namespace } = cluster.metadata
  const endpoint = cluster.spec.controlPlaneEndpoint
  if (cluster.spec.controlPlaneRef || cluster.spec.topology || !isValidEndpoint(endpoint)) return proceed()
  const key = { namespace: namespace!, name: `${name}-kubeconfig` }
  if (cache.peek(Secret, key)) return proceed()
  const authority = await orAbsent(client.get(Secret, { namespace: namespace!, name: `${name}-ca` }, { signal }))
  const certificate = decode(authority?.data?.['tls.crt'])
  const privateKey = decode(authority?.data?.['tls.key'])
  if (!certificate || !privateKey) return wait(`Secret ${name}-ca with the certificate authority of the cluster`)

  const admin = await issueCertificate({ certificate, key: privateKey }, clock, {
    commonName: 'kubernetes-admin',
    organizations: ['system:masters'],
    usages: ['client'],
  })
  const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host
  const user = `${name}-admin`
  const config: Kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name, cluster: { server: `https://${host}:${endpoint.port}`, 'certificate-authority-data': encode(certificate) } },
    ],
    users: [{ name: user, user: { 'client-certificate-data': encode(admin.certificate), 'client-key-data': encode(admin.key) } }],
    contexts: [{ name: `${user}@${name}`, context: { cluster: name, user } }],
    'current-context': `${user}@${name}`,
  }
  try {
    await client.create(
      Secret,
      {
        metadata: { ...key, labels: { [ClusterNameLabel]: name }, ownerReferences: [ownerReference(cluster, Cluster)] },
        type: ClusterSecretType,
        data: { value: encode(formatKubeconfig(config)) },
      },
      { signal },
    )
  } catch (err) {
    // The Secret exists, but the cache did not contain it yet. The Secret stays as it is, because another client may have created it.
    if (!isReason(err, 'AlreadyExists')) throw err
  }
  return proceed()
}

const encode = (text: string): string => Buffer.from(text).toString('base64')
const decode = (data: string | undefined): string | undefined => (data ? Buffer.from(data, 'base64').toString() : undefined)
