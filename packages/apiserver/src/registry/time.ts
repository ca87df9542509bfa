/** Errors of Go's parser of times. Upstream: metav1.Time and metav1.MicroTime. */

/** Error for a text that is not a time; `micro`: with the six digits of a MicroTime. */
export function timeProblem(text: string, micro: boolean): string | undefined {
  const parts = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d((?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/.exec(text)
  const isTime = parts !== null && !Number.isNaN(Date.parse(text))
  if (isTime && (!micro || parts[1]!.length === 7)) return undefined
  if (isTime) return microProblem(text, parts[1]! + parts[2]!)
  const layout = micro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
  return `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(text)} as "2006"`
}

/** Upstream: the layout has six digits, and the text must have as many. */
const microProblem = (text: string, rest: string): string =>
  `parsing time ${JSON.stringify(text)} as "2006-01-02T15:04:05.000000Z07:00": cannot parse ${JSON.stringify(rest)} as ".000000"`
