import type { ContractField } from '@capstan/api'
import { readField } from '@capstan/api'
import type { External } from './get.ts'

/** What a pass knows of a referenced object. `unread` is also what a failed read leaves. */
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

/** A contract field of a provider's object, wherever its contract version keeps it. */
export const read = <T>({ object, contract }: External, field: ContractField<T>): T | undefined =>
  readField(object, field, contract)

export const found = (what: Observed): External | undefined => (what.state === 'found' ? what.external : undefined)
