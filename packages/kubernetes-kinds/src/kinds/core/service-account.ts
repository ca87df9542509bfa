import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, nameColumn } from '../columns.ts'

const enforce = 'kubernetes.io/enforce-mountable-secrets'

export const serviceaccounts: BuiltinKind = {
  returnsDeleted: true,
  warnings: ({ metadata }, old) =>
    metadata.annotations?.[enforce] === undefined || old?.metadata.annotations?.[enforce] !== undefined
      ? []
      : [
          `metadata.annotations[${enforce}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
        ],
  columns: [nameColumn, ageColumn],
}
