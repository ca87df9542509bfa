import { isIP } from 'node:net'
import type { Clock, ObjectKey } from '@capstan/kube'
import { type CertifiedKey, issueCertificate } from '@capstan/kube/node'
import { serverNameOf } from './server-name.ts'
import type { Boot } from './workloads.ts'

/**
 * Issues the serving certificate of a workload cluster's API server for its TLS server name, the names of the Service `kubernetes`, loopback,
 * and the host of the control plane endpoint. Upstream: kubeadm's apiserver certificate.
 */
export function servingCertificate(cluster: ObjectKey, { authority, endpointHost }: Boot, clock: Clock): Promise<CertifiedKey> {
  const addresses = new Set(['127.0.0.1', '::1'])
  const names = new Set([
    serverNameOf(cluster),
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ])
  if (endpointHost !== undefined) {
    if (isIP(endpointHost) === 0) names.add(endpointHost)
    else addresses.add(endpointHost)
  }
  return issueCertificate(authority, clock, {
    commonName: 'kube-apiserver',
    usages: ['server'],
    dnsNames: [...names],
    ipAddresses: [...addresses],
  })
}
