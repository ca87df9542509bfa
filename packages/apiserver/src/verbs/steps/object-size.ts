/** Size limit of objects. Upstream: etcd's --max-request-bytes, which limits the request that stores the object. */
import { StatusError, writeJSON } from '@capstan/kube'

/** Maximum length of an object's JSON in bytes of UTF-8: 1.5 MiB. */
export const MaxObjectBytes = 1.5 * 1024 * 1024

/**
 * Rejects an object whose JSON is longer than `MaxObjectBytes`.
 *
 * @throws StatusError with the text of etcd and without a reason, as upstream
 */
export function rejectTooLarge(object: object): void {
  // A character takes at most six bytes of JSON, so an object with few characters need not be encoded.
  if (charactersLeft(object, MaxObjectBytes / 6) > 0) return
  if (Buffer.byteLength(writeJSON(object)) > MaxObjectBytes) throw new StatusError('', 'etcdserver: request is too large')
}

/**
 * Returns `budget` minus an upper bound of the characters of `value` in JSON, where an escape sequence counts as one character. Stops when
 * the budget is used up.
 */
function charactersLeft(value: unknown, budget: number): number {
  if (typeof value === 'string') return budget - value.length - 3
  if (typeof value !== 'object' || value === null) return budget - 25
  let remaining = budget - 3
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && remaining > 0; index++) remaining = charactersLeft(value[index], remaining)
    return remaining
  }
  for (const key in value) {
    remaining = charactersLeft((value as Record<string, unknown>)[key], remaining - key.length - 3)
    if (remaining <= 0) return remaining
  }
  return remaining
}
