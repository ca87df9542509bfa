import { createHash } from 'node:crypto'
import { type Random, seededRandom } from '@capstan/kube'

/** A UUID that repeats itself for the same purpose. */
export function stableUid(...purpose: readonly string[]): string {
  const hex = createHash('sha256').update(JSON.stringify(purpose)).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}

/**
 * Chance that repeats itself for the same purpose: the end of a generated name, computed from what the object is for. A pass that
 * was stopped after it created an object comes to the same name again, and so finds the object instead of making a second one.
 * A purpose begins with the uid of the Cluster, so that another Cluster of the same name gets other names.
 */
export const stableRandom = (...purpose: readonly string[]): Random =>
  seededRandom(createHash('sha256').update(JSON.stringify(purpose)).digest().readUInt32BE(0))
