import { describe, expect, test } from 'vitest'
import { timeProblem } from './go-time.ts'

const timeLayout = '2006-01-02T15:04:05Z07:00'
const microTimeLayout = '2006-01-02T15:04:05.000000Z07:00'

// Expected errors: time.Parse of Go 1.25.
describe('timeProblem of a Time', () => {
  test.each(['2024-02-29T00:00:00Z', '2024-01-01T23:59:59.123Z', '2024-01-01T00:00:00+23:59', '0000-02-29T00:00:00Z'])(
    'accepts %s',
    (text) => expect(timeProblem(text, false)).toBeUndefined(),
  )

  test.each([
    ['2024-02-30T00:00:00Z', ': day out of range'],
    ['2023-02-29T00:00:00Z', ': day out of range'],
    ['2024-04-31T00:00:00Z', ': day out of range'],
    ['2024-01-32T00:00:00Z', ': day out of range'],
    ['2024-01-00T00:00:00Z', ': day out of range'],
    ['2024-13-01T00:00:00Z', ': month out of range'],
    ['2024-02-30T24:00:00Z', ': hour out of range'],
    ['2024-01-01T24:00:00Z', ': hour out of range'],
    ['2024-01-01T23:60:00Z', ': minute out of range'],
    ['2024-01-01T23:00:60Z', ': second out of range'],
    ['2024-01-01T00:00:00+25:00', ': time zone offset hour out of range'],
    ['2024-01-01T00:00:00+01:61', ': time zone offset minute out of range'],
    ['2024-01-01T00:00:00ZZ', ': extra text: "Z"'],
    ['', ` as "${timeLayout}": cannot parse "" as "2006"`],
    ['yesterday', ` as "${timeLayout}": cannot parse "yesterday" as "2006"`],
    ['2024-01-01', ` as "${timeLayout}": cannot parse "" as "T"`],
    ['2024-1-1T00:00:00Z', ` as "${timeLayout}": cannot parse "1-1T00:00:00Z" as "01"`],
    ['2024-01-01t00:00:00Z', ` as "${timeLayout}": cannot parse "t00:00:00Z" as "T"`],
    ['2024-01-01T00:00:00z', ` as "${timeLayout}": cannot parse "z" as "Z07:00"`],
    ['2024-01-01T00:00:00.Z', ` as "${timeLayout}": cannot parse ".Z" as "Z07:00"`],
  ])('returns the error of Go for %j', (text, problem) =>
    expect(timeProblem(text, false)).toBe(`parsing time ${JSON.stringify(text)}${problem}`),
  )
})

describe('timeProblem of a MicroTime', () => {
  test('accepts six digits after the second', () => expect(timeProblem('2024-01-01T00:00:00.123456Z', true)).toBeUndefined())

  test.each([
    ['2024-02-30T00:00:00.123456Z', ': day out of range'],
    ['2024-01-01T24:00:00Z', ': hour out of range'],
    ['2024-01-01T00:00:00.123456+25:00', ': time zone offset hour out of range'],
    ['2024-01-01T00:00:00Z', ` as "${microTimeLayout}": cannot parse "Z" as ".000000"`],
    ['2024-02-30T00:00:00.123Z', ` as "${microTimeLayout}": cannot parse ".123Z" as ".000000"`],
    ['2024-01-01T00:00:00.1234567Z', ` as "${microTimeLayout}": cannot parse "7Z" as "Z07:00"`],
  ])('returns the error of Go for %j', (text, problem) =>
    expect(timeProblem(text, true)).toBe(`parsing time ${JSON.stringify(text)}${problem}`),
  )
})
