import { type Column, column } from '@capstan/kube'

/**
 * Returns the columns of the pool to which an IPAddress or IPAddressClaim refers. `purpose` completes the descriptions, for example
 * `to allocate an address from`.
 */
export const poolColumns = (purpose: string): Column[] => [
  column('Pool Name', '.spec.poolRef.name', { description: `Name of the pool ${purpose}` }),
  column('Pool Kind', '.spec.poolRef.kind', { description: `Kind of the pool ${purpose}` }),
]
