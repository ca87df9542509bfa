import { appendAll, duplicate, type FieldError, labelKeyProblems, required } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { oneOf, problems } from '../checks.ts'
import { immutable, unique } from '../same.ts'
import { ageColumn, at, column, nameColumn, text } from '../columns.ts'
import type { StorageClass, TopologySelectorTerm } from '../schemas/types.ts'
import { parameterErrors, provisionerErrors } from './provisioner.ts'

const defaultAnnotations = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

/** Upstream: pkg/apis/storage and pkg/registry/storage/storageclass, v1.36. */
export const storageclasses: BuiltinKind<StorageClass> = {
  returnsDeleted: true,
  columns: [
    {
      ...nameColumn,
      cell: ({ metadata: { name, annotations = {} } }) =>
        defaultAnnotations.some((key) => annotations[key] === 'true') ? `${name} (default)` : name,
    },
    column('Provisioner', (o) => text(o, 'provisioner')),
    column('ReclaimPolicy', (o) => text(o, 'reclaimPolicy') || 'Delete'),
    column('VolumeBindingMode', (o) => text(o, 'volumeBindingMode') || 'Immediate'),
    column('AllowVolumeExpansion', (o) => at(o, 'allowVolumeExpansion') === true),
    ageColumn,
  ],
  default(storageClass) {
    storageClass.reclaimPolicy ??= 'Delete'
    storageClass.volumeBindingMode ??= 'Immediate'
  },
  validate(storageClass, old) {
    const { provisioner, parameters, reclaimPolicy, volumeBindingMode, allowedTopologies = [] } = storageClass
    if (old) {
      const immutableFields = ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'] as const
      return immutableFields.flatMap((name) => immutable(name, storageClass[name], old[name]))
    }
    return [
      ...provisionerErrors('provisioner', provisioner),
      ...parameterErrors('parameters', parameters),
      ...(reclaimPolicy ? oneOf('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']) : []),
      ...oneOf('volumeBindingMode', volumeBindingMode, ['Immediate', 'WaitForFirstConsumer']),
      ...topologyErrors(allowedTopologies),
    ]
  },
}

function topologyErrors(terms: readonly TopologySelectorTerm[]): FieldError[] {
  const errors: FieldError[] = []
  // Upstream treats a term without expressions as a duplicate.
  const seenTerms = new Set<string>(['[]'])
  terms.forEach(({ matchLabelExpressions = [] }, index) => {
    const path = `allowedTopologies[${index}].matchLabelExpressions`
    const keys = new Set<string>()
    matchLabelExpressions.forEach(({ key, values = [] }, expressionIndex) => {
      const expressionPath = `${path}[${expressionIndex}]`
      if (values.length === 0) errors.push(required(`${expressionPath}.values`))
      appendAll(
        errors,
        unique(values, (valueIndex) => `${expressionPath}.values[${valueIndex}]`),
      )
      appendAll(errors, problems(`${expressionPath}.key`, key, labelKeyProblems(key)))
      if (keys.has(key)) errors.push(duplicate(`${expressionPath}.key`, key))
      keys.add(key)
    })
    const term = JSON.stringify(
      matchLabelExpressions.map(({ key, values = [] }) => JSON.stringify([key, values.toSorted()])).toSorted(),
    )
    if (seenTerms.has(term)) errors.push(duplicate(path, ''))
    seenTerms.add(term)
  })
  return errors
}
