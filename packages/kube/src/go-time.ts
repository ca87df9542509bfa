/** Errors for texts that are not times, in the form of the errors of Go's parser. Upstream: metav1.Time and metav1.MicroTime. */

/**
 * Returns the error for a text that is not a time. With `micro`, the text must be a MicroTime, whose fraction has six digits. Unless only
 * the fraction is wrong, the error states that the year cannot be parsed; Go's error states the first part that cannot be parsed. Unlike
 * Go's parser, accepts the hour 24 in `24:00:00`, and a day up to 31 that the month does not have.
 */
export function timeProblem(text: string, micro: boolean): string | undefined {
  const parts = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d((?:\.\d+)?)([Zz]|[+-]\d\d:\d\d)$/.exec(text)
  const isTime = parts !== null && !Number.isNaN(Date.parse(text))
  if (isTime && (!micro || parts[1]!.length === 7)) return undefined
  if (isTime) return microProblem(text, parts[1]! + parts[2]!)
  const layout = micro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
  return `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(text)} as "2006"`
}

/** Error for a fraction without exactly six digits. `unparsed` is the text from the fraction on. */
const microProblem = (text: string, unparsed: string): string =>
  `parsing time ${JSON.stringify(text)} as "2006-01-02T15:04:05.000000Z07:00": cannot parse ${JSON.stringify(unparsed)} as ".000000"`
