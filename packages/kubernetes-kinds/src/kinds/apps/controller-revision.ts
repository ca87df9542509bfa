import { parseApiVersion, required } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { nonNegative } from '../counts.ts'
import { immutable } from '../same.ts'
import { ageColumn, column, nameColumn, number } from '../columns.ts'
import type { ControllerRevision } from '../schemas/types.ts'

/** Upstream: pkg/apis/apps and pkg/registry/apps/controllerrevision, v1.36. */
export const controllerrevisions: BuiltinKind<ControllerRevision> = {
  columns: [
    nameColumn,
    column('Controller', ({ metadata: { ownerReferences = [] } }) => {
      const owner = ownerReferences.find(({ controller }) => controller === true)
      if (!owner) return '<none>'
      const { group } = parseApiVersion(owner.apiVersion)
      return `${owner.kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${owner.name}`
    }),
    column('Revision', (o) => number(o, 'revision')),
    ageColumn,
  ],
  validate(revision, old) {
    return [
      ...nonNegative('', revision, 'revision'),
      ...(old || revision.data ? [] : [required('data', 'data is mandatory')]),
      ...(old ? immutable('data', revision.data, old.data) : []),
    ]
  },
}
