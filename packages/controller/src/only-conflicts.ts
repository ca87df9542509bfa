import { isReason } from '@capstan/kube'

/**
 * Whether a pass failed for no other reason than that somebody else wrote first: the next pass knows what they wrote, and there is
 * nothing for a person to see. Whatever was said before it: which step a conflict came up in makes it no other thing.
 */
export function onlyConflicts(err: unknown): boolean {
  if (isReason(err, 'Conflict')) return true
  if (err instanceof AggregateError) return err.errors.length > 0 && err.errors.every(onlyConflicts)
  return err instanceof Error && err.cause !== undefined && onlyConflicts(err.cause)
}
