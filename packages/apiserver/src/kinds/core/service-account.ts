import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, column, list, nameColumn } from '../columns.ts'

export const serviceaccounts: BuiltinKind = {
  columns: [nameColumn, column('Secrets', (o) => list(o, 'secrets').length), ageColumn],
}
