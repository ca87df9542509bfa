/** How large an object may be. Upstream: etcd's --max-request-bytes, which counts the object as it is stored. */
import { StatusError, writeJSON } from '@capstan/kube'

export const MaxObjectBytes = 1.5 * 1024 * 1024

/** @throws StatusError in the words of etcd, with no reason, as upstream passes them on */
export function refuseTooLarge(object: object): void {
  // No character takes more than six bytes of JSON: almost every object is known to be small without being written out.
  if (charactersLeft(object, MaxObjectBytes / 6) > 0) return
  if (Buffer.byteLength(writeJSON(object)) > MaxObjectBytes) throw new StatusError('', 'etcdserver: request is too large')
}

/** What is left of `budget` after `value`, counted as characters of JSON; stops once nothing is. */
function charactersLeft(value: unknown, budget: number): number {
  if (typeof value === 'string') return budget - value.length - 3
  if (typeof value !== 'object' || value === null) return budget - 25
  let left = budget - 3
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && left > 0; at++) left = charactersLeft(value[at], left)
    return left
  }
  for (const key in value) {
    left = charactersLeft((value as Record<string, unknown>)[key], left - key.length - 3)
    if (left <= 0) return left
  }
  return left
}
