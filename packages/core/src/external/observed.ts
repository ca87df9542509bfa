import type { ContractField } from '@capstan/api'
import { readField } from '@capstan/api'
import type { External } from './get.ts'

/** What a reconcile knows about a referenced object. `unread` is also the state after a failed read. */
export type Observed =
  | { readonly state: 'unread' }
  /** There is no reference. */
  | { readonly state: 'none' }
  /** The object does not exist. */
  | { readonly state: 'missing' }
  | { readonly state: 'found'; readonly external: External }

export const unread: Observed = { state: 'unread' }

export const observed = (external: External | undefined): Observed =>
  external ? { state: 'found', external } : { state: 'missing' }

/** Reads a contract field of a provider's object, at the path of its contract version. */
export const read = <T>({ object, contract }: External, field: ContractField<T>): T | undefined =>
  readField(object, field, contract)

export const found = (what: Observed): External | undefined => (what.state === 'found' ? what.external : undefined)
