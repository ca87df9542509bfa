import { type KubeObject, seededRandom } from '@capstan/kube'
import { expect, test } from 'vitest'
import { Table } from './table.ts'

/** An object that contains its key and the turn in which it was written. */
const objectOf = (key: string, turn: number): KubeObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: key, resourceVersion: String(turn) } }) as KubeObject

test.each([
  ['after every change', 1, 1000],
  ['after every 7 changes', 7, 1000],
  ['after every 200 changes', 200, 2000],
  ['after more changes than it keeps unsorted', 10_000, 20_000],
])('lists of a table that is read %s are sorted by key', (_, interval, turns) => {
  const random = seededRandom(1)
  const randomBelow = (limit: number) => Math.floor(random.next() * limit)
  const table = Table.empty()
  const expected = new Map<string, KubeObject>()
  for (let turn = 1; turn <= turns; turn++) {
    const key = `${['', 'a', 'ab', 'b'][randomBelow(4)]}/${randomBelow(turns / 5)}`
    if (randomBelow(3) === 0) {
      table.remove(key)
      expected.delete(key)
    } else {
      const object = objectOf(key, turn)
      table.put(key, object)
      expected.set(key, object)
    }
    if (turn % interval !== 0) continue
    const keys = [...expected.keys()].sort()
    expect(table.size).toBe(keys.length)
    expect(table.list()).toEqual(keys.map((key) => expected.get(key)))
    const inNamespace = keys.filter((key) => key.startsWith('a/'))
    expect(table.copy().list('a')).toEqual(inNamespace.map((key) => expected.get(key)))
  }
})
