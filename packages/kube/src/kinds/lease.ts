import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

export const Lease = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
  doc: 'Says who holds something, and until when.',
  spec: s
    .object({
      holderIdentity: s.string().optional(),
      leaseDurationSeconds: s.int32().optional(),
      acquireTime: s.timestamp().optional().doc('RFC 3339 with microseconds.'),
      renewTime: s.timestamp().optional().doc('RFC 3339 with microseconds.'),
      leaseTransitions: s.int32().optional(),
      strategy: s.string().optional(),
      preferredHolder: s.string().optional(),
    })
    .optional(),
})
export type Lease = ObjectOf<typeof Lease>
