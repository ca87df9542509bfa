/** The kinds of `coordination.k8s.io/v1`. Upstream: pkg/apis/coordination and pkg/registry/coordination/lease, v1.36. */
import { appendAll, type FieldError, invalid } from '@capstan/kube'
import type { BuiltinKind, KindTable } from './builtin-kind.ts'
import { nonNegative } from './counts.ts'
import { ageColumn, column, nameColumn, text } from './columns.ts'
import type { Lease } from './schemas/types.ts'

const leases: BuiltinKind<Lease> = {
  createsOnUpdate: true,
  columns: [nameColumn, column('Holder', (o) => text(o, 'spec', 'holderIdentity')), ageColumn],
  prepare({ spec }) {
    // Coordinated leader election is disabled, as by default upstream.
    delete spec.strategy
    delete spec.preferredHolder
  },
  validate({ spec }) {
    const errors: FieldError[] = []
    const { leaseDurationSeconds: duration } = spec
    if (duration !== undefined && duration <= 0) {
      errors.push(invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0'))
    }
    appendAll(errors, nonNegative('spec', spec, 'leaseTransitions'))
    return errors
  },
}

export const coordination: KindTable = { leases }
