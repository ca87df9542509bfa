import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { layers, violations } from './layers.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

test('packages import only what the table allows', () => {
  expect(violations(root)).toEqual([])
})

test('the table names every package, and no other', () => {
  const packages = globSync('packages/*/package.json', { cwd: root }).map((path) => path.split('/')[1]!)
  expect(Object.keys(layers).sort()).toEqual(packages.sort())
})

test('core and local never import one another: they meet in the cluster', () => {
  expect(layers.core).not.toContain('local')
  expect(layers.local).not.toContain('core')
})
