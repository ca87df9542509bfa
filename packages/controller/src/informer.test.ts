import { ConfigMap, type KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { indexByLabel } from './indexes.ts'
import { Informer } from './informer.ts'

const inZone = (name: string, zone: string | undefined, revision: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    creationTimestamp: '2026-01-01T00:00:00Z',
    resourceVersion: `${revision}`,
    ...(zone === undefined ? {} : { labels: { zone } }),
  },
})

const byZone = indexByLabel(ConfigMap, 'zone')
const namesOf = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name).join(' ')

function anInformer() {
  const informer = new Informer(ConfigMap)
  informer.accept({ kind: 'replaced', objects: [inZone('a', 'north', 1), inZone('b', 'north', 2)], resourceVersion: '2' })
  return {
    informer,
    indexed: (zone: string) => namesOf(informer.byIndex(byZone, `default/${zone}`)),
    labelled: (zone: string) => namesOf(informer.byLabel('zone', zone)),
  }
}

test('a changed object is removed from its old index value and added to the new value', () => {
  const { informer, indexed, labelled } = anInformer()
  expect([indexed('north'), labelled('north')]).toEqual(['a b', 'a b'])
  informer.accept({ kind: 'applied', object: inZone('a', 'south', 3) })
  expect([indexed('north'), labelled('north')]).toEqual(['b', 'b'])
  expect([indexed('south'), labelled('south')]).toEqual(['a', 'a'])
  informer.accept({ kind: 'applied', object: inZone('a', undefined, 4) })
  expect([indexed('south'), labelled('south')]).toEqual(['', ''])
})

test('an object that is deleted, or missing from a new list, is removed from its index values', () => {
  const { informer, indexed, labelled } = anInformer()
  expect([indexed('north'), labelled('north')]).toEqual(['a b', 'a b'])
  informer.accept({ kind: 'replaced', objects: [inZone('b', 'north', 2), inZone('c', 'south', 4)], resourceVersion: '4' })
  expect([indexed('north'), labelled('north')]).toEqual(['b', 'b'])
  expect([indexed('south'), labelled('south')]).toEqual(['c', 'c'])
  informer.accept({ kind: 'deleted', object: inZone('b', 'north', 5) })
  expect([indexed('north'), labelled('north')]).toEqual(['', ''])
})

test('events of the first list are initial, and events of later changes are not', () => {
  const informer = new Informer(ConfigMap)
  const changes: [string, boolean][] = []
  informer.subscribe(({ key, initial }) => changes.push([key.name, initial]))
  informer.accept({ kind: 'replaced', objects: [inZone('a', 'north', 1)], resourceVersion: '1' })
  informer.accept({ kind: 'applied', object: inZone('b', 'north', 2) })
  expect(changes).toEqual([
    ['a', true],
    ['b', false],
  ])
})
