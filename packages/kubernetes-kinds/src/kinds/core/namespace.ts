import { dnsLabelProblems, invalid, qualifiedNameProblems } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { problems } from '../checks.ts'
import { ageColumn, column, field, nameColumn, text } from '../columns.ts'
import type { Namespace } from '../schemas/types.ts'

const StandardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

export const namespaces: BuiltinKind<Namespace> = {
  returnsDeleted: true,
  names: dnsLabelProblems,
  selectableFields: { 'status.phase': field('status', 'phase') },
  columns: [nameColumn, column('Status', (o) => text(o, 'status', 'phase')), ageColumn],
  default({ metadata }, old) {
    // Selectors find namespaces by name through this label, so it cannot be removed.
    const name = old?.metadata.name ?? metadata.name
    if (name) metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': name }
  },
  prepare(namespace, old, { subresource }) {
    // After the create, only the subresource `finalize` changes the finalizers in the spec.
    if (old && subresource === undefined) namespace.spec = old.spec
    if (old) return
    const { finalizers = [] } = namespace.spec
    namespace.spec = { finalizers: finalizers.includes('kubernetes') ? finalizers : [...finalizers, 'kubernetes'] }
    namespace.status = { phase: 'Active' }
    const { metadata } = namespace
    // A generated name is not yet known in `default`.
    metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name }
  },
  validate({ metadata, spec, status }, old, { subresource }) {
    if (subresource === 'status') {
      const [phase, when] = metadata.deletionTimestamp ? ['Terminating', 'not empty'] : ['Active', 'empty']
      if (status.phase === phase) return []
      return [invalid('status.Phase', status.phase ?? '', `may only be '${phase}' if \`deletionTimestamp\` is ${when}`)]
    }
    if (old && subresource !== 'finalize') return []
    return (spec.finalizers ?? []).flatMap((finalizer, index) => {
      const field = subresource === 'finalize' ? `spec.finalizers[${index}]` : 'spec.finalizers'
      const errors = problems(field, finalizer, qualifiedNameProblems(finalizer))
      if (errors.length > 0 || finalizer.includes('/') || StandardFinalizers.has(finalizer)) return errors
      return [invalid(field, finalizer, 'name is neither a standard finalizer name nor is it fully qualified')]
    })
  },
  hasFurtherFinalizers: ({ spec }) => (spec?.finalizers ?? []).length > 0,
  markDeleted(namespace) {
    namespace.status = { ...namespace.status, phase: 'Terminating' }
  },
}
