import { expect, test } from 'vitest'
import { scheduleProblem } from './schedule.ts'

test.each([
  '* * * * *',
  '*/5 0-23/2 1,15 jan-MAR sun',
  '0 3 ? * MON-FRI',
  '5/15 * * * *',
  '@hourly',
  '@every 1h30m',
  'TZ=Europe/Paris 0 0 * * *',
  'CRON_TZ=UTC @daily',
])('%s is a schedule', (text) => {
  expect(scheduleProblem(text)).toBeUndefined()
})

test.each([
  ['', 'empty spec string'],
  ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
  ['@often', 'unrecognized descriptor: @often'],
  ['@every soon', 'failed to parse duration @every soon: time: invalid duration "soon"'],
  ['60 * * * *', 'end of range (60) above maximum (59): 60'],
  ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
  ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
  ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
  ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
  ['*/0 * * * *', 'step of range should be a positive number: */0'],
  ['x * * * *', 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
])('%j is not a schedule: %s', (text, problem) => {
  expect(scheduleProblem(text)).toBe(problem)
})
