import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

export const Lease = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
  doc: 'A lock with an expiration time, such as for leader election.',
  spec: s
    .object({
      holderIdentity: s.string().optional(),
      leaseDurationSeconds: s.int32().optional(),
      acquireTime: s.timestamp().optional().doc('Time in RFC 3339 format with microseconds.'),
      renewTime: s.timestamp().optional().doc('Time in RFC 3339 format with microseconds.'),
      leaseTransitions: s.int32().optional(),
      strategy: s.string().optional(),
      preferredHolder: s.string().optional(),
    })
    .optional(),
})
export type Lease = ObjectOf<typeof Lease>
