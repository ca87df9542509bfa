import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { folderCycles, layers, violations } from './layers.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

test('packages import only packages that the table allows', () => {
  expect(violations(root)).toEqual([])
})

test('the table names every package, and nothing else', () => {
  const packages = globSync('packages/*/package.json', { cwd: root }).map((path) => path.split('/')[1]!)
  expect(Object.keys(layers).sort()).toEqual(packages.sort())
})

test('core and local never import each other', () => {
  expect(layers.core).not.toContain('local')
  expect(layers.local).not.toContain('core')
})

test('the generic server imports no built-in kinds', () => {
  expect(layers.apiserver).toEqual(['kube'])
  expect(layers['kubernetes-kinds']).toEqual(['kube', 'apiserver'])
})

test('folders of the API server have no import cycles', () => {
  expect(folderCycles(root)).toEqual([])
})
