import { createHash } from 'node:crypto'
import { type Random, seededRandom } from '@capstan/kube'

/** Returns a UUID that is computed from `purpose`: texts such as the uid of a Cluster and a field path. */
export function stableUid(...purpose: readonly string[]): string {
  const hex = createHash('sha256').update(JSON.stringify(purpose)).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}

/**
 * Returns deterministic randomness for generated names. The seed is computed from `purpose`, texts that identify the object: a reconcile
 * after a crash generates the same name, and finds the created object instead of creating a second one. For an object of a Cluster, the
 * first text is the uid of the Cluster, so that a recreated Cluster gets other names.
 */
export const stableRandom = (...purpose: readonly string[]): Random =>
  seededRandom(createHash('sha256').update(JSON.stringify(purpose)).digest().readUInt32BE(0))
