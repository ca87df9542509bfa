import { ConfigMap } from '@capstan/kube'
import { type BuiltinKind, declaredIn } from '../builtin-kind.ts'
import { ageColumn, column, count, nameColumn } from '../columns.ts'

export const configmaps: BuiltinKind<ConfigMap> = {
  ...declaredIn(ConfigMap),
  columns: [nameColumn, column('Data', (o) => count(o, 'data', 'binaryData')), ageColumn],
}
