import { StatusError } from '@capstan/kube'

/**
 * Parses a resourceVersion; 0 when it is absent or empty. @throws StatusError when it is not a number: without a reason, as upstream does for
 * gets and watches
 */
export function parseRevision(resourceVersion: string | undefined): number {
  if (!resourceVersion) return 0
  if (/^\d+$/.test(resourceVersion)) return Number(resourceVersion)
  throw new StatusError('', invalidRevisionText(resourceVersion))
}

/** Error text for a resourceVersion that is not a number. */
export const invalidRevisionText = (resourceVersion: string): string => {
  const quoted = JSON.stringify(resourceVersion)
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`
}
