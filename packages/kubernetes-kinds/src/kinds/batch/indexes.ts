/** Pod indexes of a job as text: `1,3-5,7`. Upstream: validateIndexesFormat. */

interface Malformed {
  readonly error: string
}

/** Counts the indexes in a text; returns an error for an invalid text. */
export function countIndexes(text: string, completions: number): number | Malformed {
  const intervals = intervalsOf(text, completions)
  return 'error' in intervals ? intervals : intervals.reduce((sum, [first, last]) => sum + last - first + 1, 0)
}

/** Returns an index that both texts contain; `undefined` if there is none, or a text is invalid. */
export function commonIndex(a: string, b: string, completions: number): number | undefined {
  const [left, right] = [intervalsOf(a, completions), intervalsOf(b, completions)]
  if ('error' in left || 'error' in right) return undefined
  let position = 0
  for (const [first, last] of left) {
    while (position < right.length && right[position]![1] < first) position++
    const candidate = right[position]
    if (candidate && candidate[0] <= last) return Math.max(first, candidate[0])
  }
  return undefined
}

function intervalsOf(text: string, completions: number): readonly (readonly [number, number])[] | Malformed {
  if (text === '') return []
  const intervals: (readonly [number, number])[] = []
  for (const part of text.split(',')) {
    const interval = intervalOf(part, completions)
    if ('error' in interval) return interval
    const previousLast = intervals.at(-1)?.[1]
    if (previousLast !== undefined && previousLast >= interval[0]) {
      return { error: `non-increasing order, previous: ${previousLast}, current: ${interval[0]}` }
    }
    intervals.push(interval)
  }
  return intervals
}

function intervalOf(text: string, completions: number): readonly [number, number] | Malformed {
  const limits = text.split('-')
  if (limits.length > 2) {
    const rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
    return { error: `the fragment ${JSON.stringify(text)} ${rule}` }
  }
  for (const limit of limits) {
    if (!/^\d+$/.test(limit)) return { error: `cannot convert string to integer for index: ${JSON.stringify(limit)}` }
    if (Number(limit) >= completions) return { error: `too large index: ${JSON.stringify(limit)}` }
  }
  const [first, last] = [Number(limits[0]), Number(limits.at(-1))]
  if (limits.length === 2 && first >= last) return { error: `non-increasing order, previous: ${first}, current: ${last}` }
  return [first, last]
}
