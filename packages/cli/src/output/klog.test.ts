import { expect, test } from 'vitest'
import { jsonLine, textLine } from './klog.ts'

const record = {
  at: Date.UTC(2026, 10, 22, 17, 14, 56, 78),
  level: 'info',
  message: 'Machine created',
  fields: { controller: 'machine', Machine: { namespace: 'default', name: 'm1' }, count: 3 },
  pid: 42,
} as const

// The expected formats are those of the examples in component-base/logs and of klog's documentation.
test('formats text as a klog line', () => {
  expect(textLine(record)).toBe(
    'I1122 17:14:56.078000      42 capstan] "Machine created" controller="machine" Machine="default/m1" count=3',
  )
  expect(textLine({ ...record, level: 'error', message: 'a "quote"\nand a line', fields: { err: 'x y' } })).toBe(
    'E1122 17:14:56.078000      42 capstan] "a \\"quote\\"\\nand a line" err="x y"',
  )
})

test('formats a text value with several lines as klog does', () => {
  const line = (err: string) => textLine({ ...record, message: 'm', fields: { err, count: 1 } })
  expect(line('x\n y')).toBe('I1122 17:14:56.078000      42 capstan] "m" err=<\n\tx\n\t y\n > count=1')
  expect(line('x\n')).toBe('I1122 17:14:56.078000      42 capstan] "m" err=<\n\tx\n > count=1')
})

test("formats JSON with upstream's keys", () => {
  expect(JSON.parse(jsonLine(record))).toEqual({
    ts: record.at,
    v: 0,
    msg: 'Machine created',
    controller: 'machine',
    Machine: { namespace: 'default', name: 'm1' },
    count: 3,
  })
  expect(JSON.parse(jsonLine({ ...record, level: 'error', fields: { err: 'boom' } }))).toEqual({
    ts: record.at,
    msg: 'Machine created',
    err: 'boom',
  })
  expect(JSON.parse(jsonLine({ ...record, level: 'debug', fields: {} }))).toMatchObject({ v: 4 })
})
