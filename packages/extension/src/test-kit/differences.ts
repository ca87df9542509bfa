/** Compares JSON values by path, also inside patches, which are base64 of JSON. */
import { equal, isRecord } from '@capstan/kube'

export interface Difference {
  /** Path of the value: `items[0].patch[1].value`. */
  readonly path: string
  /** Absent when there was no value. */
  readonly before?: unknown
  /** Absent when there is no value anymore. */
  readonly after?: unknown
}

/** Returns one difference for each value that differs, at its deepest path. Members of objects are compared in the order of their names. */
export function differences(before: unknown, after: unknown, path = ''): Difference[] {
  if (equal(before, after)) return []
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return names.flatMap((name) => differences(before[name], after[name], path === '' ? name : `${path}.${name}`))
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const indexes = Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index)
    return indexes.flatMap((index) => differences(before[index], after[index], `${path}[${index}]`))
  }
  if (typeof before === 'string' && typeof after === 'string') {
    const [patchBefore, patchAfter] = [patchIn(before), patchIn(after)]
    // Two encodings of the same patch are equal.
    if (patchBefore !== undefined && patchAfter !== undefined) return differences(patchBefore, patchAfter, path)
  }
  return [{ path, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) }]
}

/** Formats a difference with labels for the two values, such as `message: "a" on tape, "b" now`. */
export const differenceText = ({ path, before, after }: Difference, [was, is]: readonly [string, string]): string =>
  `${path === '' ? 'the response' : path}: ${formatValue(before)} ${was}, ${formatValue(after)} ${is}`

function formatValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  return text.length > 120 ? `${text.slice(0, 117)}...` : text
}

function patchIn(text: string): unknown {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64').toString())
    return typeof value === 'object' ? value : undefined
  } catch {
    return undefined
  }
}
