/** Reads members of objects by path, for example for field selectors and printer columns. */
import { isNumeric, isRecord } from '@capstan/kube'

/** Returns the member at a path; `undefined` if it is absent, or a parent is not an object. */
export const memberAt = (object: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, member) => (isRecord(value) ? value[member] : undefined), object)

/** Returns a string, number or boolean member as text; the empty string for an absent member, null, an object or a list. */
export function memberText(object: unknown, path: readonly string[]): string {
  const value = memberAt(object, path)
  return typeof value === 'string' || isNumeric(value) || typeof value === 'boolean' ? String(value) : ''
}
