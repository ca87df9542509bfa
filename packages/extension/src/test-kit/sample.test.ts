import { type Schema, s } from '@capstan/kube'
import { expect, test } from 'vitest'
import { sampleOf } from './sample.ts'

test.each<[string, Schema, unknown]>([
  [
    'required fields, and no optional field without a default',
    s.object({ host: s.string(), rack: s.string().optional() }),
    { host: 'host' },
  ],
  [
    'nested objects',
    s.object({ host: s.object({ namespace: s.string(), name: s.string() }) }),
    { host: { namespace: 'default', name: 'demo' } },
  ],
  ['defaults', s.object({ cores: s.int32().default(4) }), { cores: 4 }],
  ['numbers in their range', s.object({ few: s.int32({ minimum: 3 }), none: s.int32({ maximum: 0 }) }), { few: 3, none: 0 }],
  ['a value of an enum', s.object({ size: s.enum('small', 'large') }), { size: 'small' }],
  [
    'strings of the required length',
    s.object({ a: s.string({ minLength: 3 }), longer: s.string({ maxLength: 2 }) }),
    { a: 'axx', longer: 'lo' },
  ],
  [
    'lists of the minimum length',
    s.object({ none: s.list(s.string()), one: s.list(s.string(), { minItems: 1 }) }),
    { none: [], one: ['one-1'] },
  ],
  [
    'maps, timestamps and booleans',
    s.object({ all: s.map(s.string()), at: s.timestamp(), on: s.boolean() }),
    { all: {}, at: '2026-01-01T00:00:00Z', on: false },
  ],
])('a sample has %s', (_, schema, expected) => expect(sampleOf(schema.json)).toEqual(expected))

test('sampleOf throws an error that names the field whose generated value is invalid', () =>
  expect(() =>
    sampleOf(s.object({ host: s.object({ mac: s.string({ pattern: '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' }) }) }).json),
  ).toThrow(/^host\.mac: /))
