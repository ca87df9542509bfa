/** Validates times, with the error messages of Go's parser. Upstream: metav1.Time and metav1.MicroTime, time.Parse. */

/** A part of a time. `layout` stands for the part in Go's time layouts and errors, such as `2006` for the year. */
interface Part {
  readonly layout: string
  readonly pattern: RegExp
  /** Name of a number in Go's error, such as `month` in `month out of range`, and the limits of the number. */
  readonly range?: readonly [name: string, least: number, most: number]
}

const separator = (text: string): Part => ({ layout: text, pattern: new RegExp(`^${text}`) })
const untilSecond: readonly Part[] = [
  { layout: '2006', pattern: /^\d{4}/ },
  separator('-'),
  { layout: '01', pattern: /^\d\d/, range: ['month', 1, 12] },
  separator('-'),
  { layout: '02', pattern: /^\d\d/ },
  separator('T'),
  { layout: '15', pattern: /^\d\d?/, range: ['hour', 0, 23] },
  separator(':'),
  { layout: '04', pattern: /^\d\d/, range: ['minute', 0, 59] },
  separator(':'),
  { layout: '05', pattern: /^\d\d/, range: ['second', 0, 59] },
]
const zone: Part = { layout: 'Z07:00', pattern: /^(?:Z|[+-]\d\d:\d\d)/ }
const layouts: { readonly [name in 'Time' | 'MicroTime']: readonly Part[] } = {
  Time: [...untilSecond, { layout: '', pattern: /^(?:[.,]\d+)?/ }, zone],
  MicroTime: [...untilSecond, { layout: '.000000', pattern: /^[.,]\d{6}/ }, zone],
}

const day = '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))'
const clock = '(?:[01]\\d|2[0-3]):[0-5]\\d'
const common = (fraction: string): RegExp => new RegExp(`^\\d{4}-${day}T${clock}:[0-5]\\d${fraction}(?:Z|[+-]${clock})$`)
/** Patterns that match nearly all valid times, because parsing part by part is ten times slower. */
const commonTimes = { Time: common('(?:\\.\\d+)?'), MicroTime: common('\\.\\d{6}') }

/**
 * Returns the error for an invalid time; `undefined` for a valid one. With `micro`, `text` must be a MicroTime, which has exactly six
 * fractional digits; otherwise a Time, with any number of fractional digits.
 */
export function timeProblem(text: string, micro: boolean): string | undefined {
  const name = micro ? 'MicroTime' : 'Time'
  if (commonTimes[name].test(text)) return undefined
  const parts = layouts[name]
  const head = `parsing time ${JSON.stringify(text)}`
  const unparsable = (rest: string, layout: string): string =>
    `${head} as ${JSON.stringify(parts.map((part) => part.layout).join(''))}: cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(layout)}`
  let rest = text
  for (const { layout, pattern, range } of parts) {
    const value = pattern.exec(rest)?.[0]
    if (value === undefined) return unparsable(rest, layout)
    if (range && (Number(value) < range[1] || Number(value) > range[2])) return `${head}: ${range[0]} out of range`
    // Go's limits: 24 hours and 60 minutes are in range.
    if (layout === zone.layout && Number(value.slice(1, 3)) > 24) return `${head}: time zone offset hour out of range`
    if (layout === zone.layout && Number(value.slice(4, 6)) > 60) return `${head}: time zone offset minute out of range`
    rest = rest.slice(value.length)
  }
  if (rest !== '') return `${head}: extra text: ${JSON.stringify(rest)}`
  if (!isDay(text.slice(0, 10))) return `${head}: day out of range`
  // Go also accepts hours of one digit, fractions after a comma and offsets such as +24:00. They are rejected here, because other parts of
  // Capstan cannot read them.
  return Number.isNaN(Date.parse(text)) ? unparsable(text, '2006') : undefined
}

/** Reports whether a date exists. `Date.parse` also accepts dates such as February 30. */
function isDay(date: string): boolean {
  const midnight = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date)
}
