/** The kind IPAddress, an address that an IPAM provider has allocated. Upstream: api/ipam/v1beta2/ipaddress_types.go, v1.14. */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { ageColumn } from '../../core/v1beta2/shared/columns.ts'
import { coreLabels } from '../../core/v1beta2/shared/core-labels.ts'
import { objectName } from '../../core/v1beta2/shared/limits.ts'
import { contractReference } from '../../core/v1beta2/shared/references.ts'
import { poolColumns } from './pool-columns.ts'

const addressText = { minLength: 1, maxLength: 39 } as const

const ipAddressSpec = s.object({
  address: s.string(addressText).doc('The address, IPv4 or IPv6.'),
  claimRef: s
    .object({ name: s.string(objectName).doc('Name of the IPAddressClaim.') })
    .doc('The IPAddressClaim that the address fulfils.'),
  gateway: s.string(addressText).optional().doc('Gateway of the network of the address.'),
  poolRef: contractReference.doc(
    'The pool that the address was taken from. A namespaced pool must be in the namespace of the IPAddress.',
  ),
  prefix: s.int32({ minimum: 0, maximum: 128 }).doc('Length of the network prefix of the address.'),
})
export interface IPAddressSpec extends Infer<typeof ipAddressSpec> {}

export const IPAddress = defineKind({
  group: 'ipam.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'IPAddress',
  plural: 'ipaddresses',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'An IP address that an IPAM provider allocated for an IPAddressClaim.',
  spec: ipAddressSpec,
  columns: [column('Address', '.spec.address', { description: 'Address' }), ...poolColumns('the address is from'), ageColumn],
  labels: coreLabels,
  versions: olderVersions('ipam.cluster.x-k8s.io', 'IPAddress'),
})
export interface IPAddress extends ObjectOf<typeof IPAddress> {
  spec: IPAddressSpec
}
