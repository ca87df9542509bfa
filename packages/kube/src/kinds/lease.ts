import { type FieldError, invalid } from '../errors.ts'
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
  validate(lease) {
    const errors: FieldError[] = []
    const { leaseDurationSeconds: duration, leaseTransitions: transitions } = lease.spec ?? {}
    if (duration !== undefined && duration <= 0) {
      errors.push(invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0'))
    }
    if (transitions !== undefined && transitions < 0) {
      errors.push(invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'))
    }
    return errors
  },
})
export type Lease = ObjectOf<typeof Lease>
