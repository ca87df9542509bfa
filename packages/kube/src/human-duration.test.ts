import { expect, test } from 'vitest'
import { ageText, humanDuration } from './human-duration.ts'

const [s, m, h, d, y] = [1000, 60_000, 3_600_000, 86_400_000, 365 * 86_400_000] as const

test.each([
  [-5 * s, '<invalid>'],
  [-1 * s, '0s'],
  [0, '0s'],
  [119 * s, '119s'],
  [2 * m, '2m'],
  [3 * m + 12 * s, '3m12s'],
  [10 * m + 30 * s, '10m'],
  [179 * m, '179m'],
  [3 * h, '3h'],
  [7 * h + 59 * m, '7h59m'],
  [47 * h, '47h'],
  [2 * d, '2d'],
  [7 * d + 23 * h, '7d23h'],
  [729 * d, '729d'],
  [2 * y, '2y'],
  [3 * y + 4 * d, '3y4d'],
  [9 * y, '9y'],
])('%d ms are printed as %s', (ms, text) => {
  expect(humanDuration(ms)).toBe(text)
})

test('the age is the time since a timestamp, and <invalid> for an invalid timestamp', () => {
  expect(ageText('soon', 0)).toBe('<invalid>')
  expect(ageText('1970-01-01T00:00:00Z', 5000)).toBe('5s')
})
