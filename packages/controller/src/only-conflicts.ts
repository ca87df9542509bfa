import { isReason } from '@capstan/kube'

/**
 * Returns whether a reconcile failed only because of conflicting writes. Such a reconcile is retried with the current object, so the
 * failure need not be reported to users. The causes of an error are searched as well, because steps wrap errors.
 */
export function onlyConflicts(err: unknown): boolean {
  if (isReason(err, 'Conflict')) return true
  if (err instanceof AggregateError) return err.errors.length > 0 && err.errors.every(onlyConflicts)
  return err instanceof Error && err.cause !== undefined && onlyConflicts(err.cause)
}
