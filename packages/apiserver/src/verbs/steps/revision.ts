import { StatusError } from '@capstan/kube'

/** A resourceVersion as a number; 0 when there is none. @throws StatusError without a reason, as upstream does for gets and watches */
export function parseRevision(resourceVersion: string | undefined): number {
  if (!resourceVersion) return 0
  if (/^\d+$/.test(resourceVersion)) return Number(resourceVersion)
  throw new StatusError('', unreadable(resourceVersion))
}

/** What is wrong with a resourceVersion that is no number. */
export const unreadable = (resourceVersion: string): string => {
  const quoted = JSON.stringify(resourceVersion)
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`
}
