import { dnsLabelProblems } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, column, field, nameColumn, text } from '../columns.ts'
import type { Namespace } from '../schemas/types.ts'

export const namespaces: BuiltinKind<Namespace> = {
  names: dnsLabelProblems,
  fields: { 'status.phase': field('status', 'phase'), name: field('metadata', 'name') },
  columns: [nameColumn, column('Status', (o) => text(o, 'status', 'phase')), ageColumn],
  default({ metadata }, old) {
    // Selectors find namespaces by name through this label, so it cannot be taken away.
    const name = old?.metadata.name ?? metadata.name
    if (name) metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': name }
  },
  prepare(namespace, old) {
    if (old) return
    const { finalizers = [] } = namespace.spec
    namespace.spec = { finalizers: finalizers.includes('kubernetes') ? finalizers : [...finalizers, 'kubernetes'] }
    namespace.status = { phase: 'Active' }
  },
  markDeleted(namespace) {
    namespace.status = { ...namespace.status, phase: 'Terminating' }
  },
}
