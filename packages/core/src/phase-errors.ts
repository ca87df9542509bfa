import type { Kind, ObjectKey } from '@capstan/kube'
import { keyText } from '@capstan/kube'

/** The failures of a pass as one error that the loop logs and retries by. */
export function phaseErrors(kind: Kind, key: ObjectKey, errors: readonly unknown[]): AggregateError {
  const texts = errors.map((err) => (err instanceof Error ? err.message : String(err)))
  return new AggregateError(errors, `Cannot reconcile ${kind.kind} ${keyText(key)}: ${texts.join('; ')}`)
}
