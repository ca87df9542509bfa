import { Secret } from '@capstan/kube'
import { type BuiltinKind, declaredIn } from '../builtin-kind.ts'
import { ageColumn, column, count, field, nameColumn, text } from '../columns.ts'

export const secrets: BuiltinKind<Secret> = {
  ...declaredIn(Secret),
  selectableFields: { type: field('type') },
  columns: [nameColumn, column('Type', (o) => text(o, 'type')), column('Data', (o) => count(o, 'data')), ageColumn],
}
