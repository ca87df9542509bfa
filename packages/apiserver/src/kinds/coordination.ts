/** The kinds of `coordination.k8s.io/v1`. */
import { Lease } from '@capstan/kube'
import { declaredIn, type KindTable } from './builtin-kind.ts'
import { ageColumn, column, nameColumn, text } from './columns.ts'

export const coordination: KindTable = {
  leases: { ...declaredIn(Lease), columns: [nameColumn, column('Holder', (o) => text(o, 'spec', 'holderIdentity')), ageColumn] },
}
