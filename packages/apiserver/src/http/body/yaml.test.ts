import { expect, test } from 'vitest'
import { readYAML, formatYAML, parseYAML } from './yaml.ts'

test('scalars are parsed as in sigs.k8s.io/yaml: YAML 1.1 without dates and sexagesimal numbers', () => {
  const text = `
a: yes
b: "yes"
c: 0644
d: 1:30
e: 2026-01-02
f: 2026-01-02T03:04:05Z
g: 1_000
h: 1.20
i: ~
j: off
k: v1.36.0
l: 0x10
`
  expect(parseYAML(text)).toEqual({
    a: true,
    b: 'yes',
    c: 420,
    d: '1:30',
    e: '2026-01-02',
    f: '2026-01-02T03:04:05Z',
    g: 1000,
    h: 1.2,
    i: null,
    j: false,
    k: 'v1.36.0',
    l: 16,
  })
})

test('anchors and merge keys are resolved', () => {
  expect(parseYAML('a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n')).toEqual({ a: { b: 1 }, c: { b: 1, d: 2 } })
})

test('the last of duplicate keys wins, each repetition is reported, and invalid YAML is an error', () => {
  expect(readYAML('a: 1\nb:\n  - c: 1\n    "c": 2\na: 2\n')).toEqual({
    value: { a: 2, b: [{ c: 2 }] },
    duplicates: ['line 5: key "a" already set in map', 'line 4: key "c" already set in map'],
  })
  expect(() => parseYAML('a: [1\n')).toThrow(/^yaml: /)
})

test('strings that look like other types are quoted, and members are sorted', () => {
  const value = { z: 'yes', a: '0644', m: '2026-01-01T00:00:00Z', t: 'line\nline\n', n: '1:30' }
  expect(parseYAML(formatYAML(value))).toEqual(value)
  expect(formatYAML({ b: 1, a: 2 })).toBe('a: 2\nb: 1\n')
})
