/** The kind IPAddressClaim, which requests an address. Upstream: api/ipam/v1beta2/ipaddressclaim_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { ageColumn } from '../../core/v1beta2/shared/columns.ts'
import { coreLabels } from '../../core/v1beta2/shared/core-labels.ts'
import { legacyStatus } from '../../core/v1beta2/shared/legacy-status.ts'
import { nonEmpty, objectName } from '../../core/v1beta2/shared/limits.ts'
import { contractReference } from '../../core/v1beta2/shared/references.ts'
import { poolColumns } from './pool-columns.ts'

const ipAddressClaimSpec = s.object({
  clusterName: s.string({ minLength: 1, maxLength: 63 }).optional().doc('Name of the Cluster that the address is for.'),
  poolRef: contractReference.doc('The pool that the address is taken from. A namespaced pool must be in the same namespace.'),
})
export interface IPAddressClaimSpec extends Infer<typeof ipAddressClaimSpec> {}

const ipAddressClaimStatus = s.object(
  {
    addressRef: s
      .object({ name: s.string(objectName).doc('Name of the IPAddress.') })
      .optional()
      .doc('The IPAddress that fulfils the claim.'),
    conditions: s.conditions(),
    deprecated: legacyStatus(),
  },
  nonEmpty,
)
export interface IPAddressClaimStatus extends Infer<typeof ipAddressClaimStatus> {}

/** Conditions of an IPAddressClaim. IPAM providers write them, and may use further reasons; core writes none. */
export const IPAddressClaimConditions = conditionTypes({
  Ready: ['AllocationFailed', 'PoolNotReady', 'PoolExhausted'],
})

export const IPAddressClaim = defineKind({
  group: 'ipam.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'IPAddressClaim',
  plural: 'ipaddressclaims',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Requests an IP address from a pool of an IPAM provider.',
  spec: ipAddressClaimSpec,
  status: ipAddressClaimStatus,
  columns: [...poolColumns('to allocate an address from'), ageColumn],
  labels: coreLabels,
  versions: olderVersions('ipam.cluster.x-k8s.io', 'IPAddressClaim'),
})
export interface IPAddressClaim extends ObjectOf<typeof IPAddressClaim> {
  spec: IPAddressClaimSpec
  status?: IPAddressClaimStatus
}
