import { type Column, column } from '@capstan/kube'

/** Columns of the pool that an IPAddress or IPAddressClaim refers to. */
export const poolColumns = (role: string): Column[] => [
  column('Pool Name', '.spec.poolRef.name', { description: `Name of the pool ${role}` }),
  column('Pool Kind', '.spec.poolRef.kind', { description: `Kind of the pool ${role}` }),
]
