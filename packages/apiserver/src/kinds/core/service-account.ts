import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, nameColumn } from '../columns.ts'

export const serviceaccounts: BuiltinKind = {
  returnsDeleted: true,
  columns: [nameColumn, ageColumn],
}
