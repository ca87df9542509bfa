import { type Column, column } from '@capstan/kube'

/** Returns the columns of the pool to which an IPAddress or IPAddressClaim refers. */
export const poolColumns = (role: string): Column[] => [
  column('Pool Name', '.spec.poolRef.name', { description: `Name of the pool ${role}` }),
  column('Pool Kind', '.spec.poolRef.kind', { description: `Kind of the pool ${role}` }),
]
