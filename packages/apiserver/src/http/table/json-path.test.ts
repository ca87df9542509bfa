import { expect, test } from 'vitest'
import { jsonPath } from './json-path.ts'

const object = {
  metadata: { labels: { 'a.b/c': 'dotted', plain: 'x' }, annotations: {} },
  spec: { replicas: 0, list: [{ port: 1 }, { port: 2, deep: { name: 'n' } }], nothing: null },
  status: {
    conditions: [
      { type: 'Ready', status: 'True', observed: 3 },
      { type: 'Paused', status: 'False', observed: 5 },
    ],
  },
}

test.each<[string, unknown[]]>([
  ['.spec.replicas', [0]],
  ['spec.replicas', [0]],
  ['{.spec.replicas}', [0]],
  ['$.spec.replicas', [0]],
  ['.spec.absent.deeper', []],
  ['.spec.nothing', [null]],
  ['.spec.list[0].port', [1]],
  ['.spec.list[-1].port', [2]],
  ['.spec.list[9].port', []],
  ['.spec.list[*].port', [1, 2]],
  ['.spec.list[1:].port', [2]],
  ['.metadata.labels.a\\.b/c', ['dotted']],
  [".metadata.labels['a\\.b/c']", ['dotted']],
  ['.metadata.labels["plain"]', ['x']],
  ['.metadata.labels.*', ['dotted', 'x']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type=='Paused')].status", ['False']],
  ['.status.conditions[?(@.type != "Ready")].type', ['Paused']],
  ['.status.conditions[?(@.observed > 3)].type', ['Paused']],
  ['.status.conditions[?(@.absent)].type', []],
  ['..name', ['n']],
  ['.metadata.toString', []],
])('%s finds %j', (path, values) => {
  expect(jsonPath(path)(object)).toEqual(values)
})

test('a path with several `..` finds a deeply nested value once', () => {
  let deep: object = { name: 'n' }
  for (let depth = 0; depth < 400; depth++) deep = { a: deep }
  expect(jsonPath('..a..a..a..a..a..name')(deep)).toEqual(['n'])
})

test.each(['.a[', '.a[x]', '.a[?(@.b==]', '.a..', '.a[?(@.b==c)]'])('%s is rejected', (path) => {
  expect(() => jsonPath(path)).toThrow(/Cannot read JSONPath/)
})

test('spaces in a filter are ignored, even a million of them', () => {
  // A parser whose time is quadratic in the length would exceed the timeout of the test.
  expect(() => jsonPath(`.list[?(@${' '.repeat(1_000_000)}x)]`)).not.toThrow()
  expect(jsonPath('.status.conditions[?( @.observed >= 4 )].type')(object)).toEqual(['Paused'])
})
