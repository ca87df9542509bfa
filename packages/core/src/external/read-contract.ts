import { messageOf, TerminalError } from '@capstan/kube'
import type { External } from './get.ts'
import type { Found } from './observed.ts'

/**
 * Reads contract fields of a provider's object with `readFields`.
 * @throws TerminalError when a field is invalid: a retry does not help, and a change of the object enqueues its owner. The error's
 * message is also kept as `found.invalid`, for conditions
 */
export function readContract<T>(found: Found, readFields: (object: object, contract: External['contract']) => T): T {
  const { object, contract } = found.external
  try {
    return readFields(object, contract)
  } catch (err) {
    const { kind, metadata } = object
    found.invalid = `${kind} ${metadata.namespace}/${metadata.name} breaks the contract: ${messageOf(err)}`
    throw new TerminalError(found.invalid)
  }
}
