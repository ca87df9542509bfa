import type { Kind, ObjectKey } from '@capstan/kube'
import { keyText } from '@capstan/kube'

/** Why a condition is not known after a phase failed: details are for operators, in the log. */
export const SeeLogs = 'Please check controller logs for errors'

/** The failures of a pass as one error that the loop logs and retries by. */
export function phaseErrors(kind: Kind, key: ObjectKey, errors: readonly unknown[]): AggregateError {
  const texts = errors.map((err) => (err instanceof Error ? err.message : String(err)))
  return new AggregateError(errors, `Cannot reconcile ${kind.kind} ${keyText(key)}: ${texts.join('; ')}`)
}
