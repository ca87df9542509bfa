import type { ContractEndpoint, ContractField } from '@capstan/api'
import { readField } from '@capstan/api'
import type { External } from './get.ts'

/** State of a referenced object in one reconcile. `unread` is also the state after a failed read. */
export type Observed =
  | { readonly state: 'unread'; readonly error?: unknown }
  /** There is no reference. */
  | { readonly state: 'none' }
  /** The object does not exist. */
  | { readonly state: 'missing' }
  | Found

export interface Found {
  readonly state: 'found'
  readonly external: External
  /** How the object breaks the contract, set by `readContract`. Errors of other functions, such as `readTyped`, are not recorded here. */
  invalid?: string
}

export const unread: Observed = { state: 'unread' }

export const toObserved = (external: External | undefined): Observed =>
  external ? { state: 'found', external } : { state: 'missing' }

/** Reads a contract field of a provider's object, at the path of its contract version. */
export const read = <T>({ object, contract }: External, field: ContractField<T>): T | undefined =>
  readField(object, field, contract)

/**
 * Reads a contract field and checks its type.
 * @throws TypeError that names the field: with a value of the wrong type, the API server would reject the whole status write
 */
export function readTyped<T extends string | boolean>(
  external: External,
  field: ContractField<T>,
  type: T extends string ? 'string' : 'boolean',
): T | undefined {
  const value = read<T>(external, field)
  if (value === undefined || typeof value === type) return value
  throw new TypeError(
    `${field.paths[external.contract]}: expected a ${type}, got ${Array.isArray(value) ? 'list' : typeof value}`,
  )
}

/** Limits of host and port in `Cluster.spec.controlPlaneEndpoint`, to which endpoints are copied. */
const maxHostLength = 512
const isPort = (port: number): boolean => Number.isInteger(port) && port >= 1 && port <= 65_535

/**
 * Reads an endpoint of a provider's object.
 * @throws TypeError when the endpoint, its host or its port has the wrong type, or host or port exceeds the limits of a Cluster's endpoint
 */
export function readEndpoint(external: External, field: ContractField<ContractEndpoint>): ContractEndpoint | undefined {
  const endpoint = read(external, field)
  if (endpoint === undefined) return undefined
  const path = field.paths[external.contract]
  if (typeof endpoint !== 'object') throw new TypeError(`${path}: expected an object, got ${typeof endpoint}`)
  const { host = '', port = 0 } = endpoint
  if (typeof host !== 'string') throw new TypeError(`${path}.host: expected a string, got ${typeof host}`)
  if (typeof port !== 'number') throw new TypeError(`${path}.port: expected a number, got ${typeof port}`)
  if (host.length > maxHostLength)
    throw new TypeError(`${path}.host: expected at most ${maxHostLength} characters, got ${host.length}`)
  if (port !== 0 && !isPort(port)) throw new TypeError(`${path}.port: expected a number from 1 to 65535, got ${port}`)
  return endpoint
}

/**
 * Returns whether a boolean contract field is true; `undefined` when the provider reports something else than a boolean. As upstream, the
 * v1beta1 conditions that depend on the field then keep their values.
 */
export function isReached(external: External, field: ContractField<boolean>): boolean | undefined {
  try {
    return readTyped(external, field, 'boolean') ?? false
  } catch {
    return undefined
  }
}

export const externalOf = (observed: Observed): External | undefined =>
  observed.state === 'found' ? observed.external : undefined

/** Returns how the object breaks the contract; `undefined` when no error is known. */
export const invalidOf = (observed: Observed): string | undefined => (observed.state === 'found' ? observed.invalid : undefined)
