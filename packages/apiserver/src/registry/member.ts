/** Members of objects by path, for selectors and printers. */
import { isNumeric, isRecord } from '@capstan/kube'

export const memberAt = (object: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, member) => (isRecord(value) ? value[member] : undefined), object)

/** Returns a scalar member as text; the empty string for absent members, objects and lists. */
export function memberText(object: unknown, path: readonly string[]): string {
  const value = memberAt(object, path)
  return typeof value === 'string' || isNumeric(value) || typeof value === 'boolean' ? String(value) : ''
}
