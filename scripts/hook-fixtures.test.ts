import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { hookCatalog } from '@capstan/api'
import { expect, test } from 'vitest'
import { acceptedResponses, rejectedResponses } from './hook-responses.ts'
import { hookFixtures } from './hook-fixtures.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

test('packages/extension/fixtures contains the JSON files that npm run gen generates, and no others', async () => {
  const files = Object.fromEntries(await hookFixtures())
  const paths = globSync('packages/extension/fixtures/**/*.json', { cwd: root })
  expect(Object.fromEntries(paths.sort().map((path) => [path, readFileSync(`${root}${path}`, 'utf8')]))).toEqual(files)
})

test('every hook has fixture responses, except six lifecycle hooks', () => {
  const hooksWithResponses = new Set([...acceptedResponses, ...rejectedResponses].map(({ hook }) => hook.name))
  const hooksWithoutResponses = [
    'BeforeControlPlaneUpgrade',
    'AfterControlPlaneUpgrade',
    'BeforeWorkersUpgrade',
    'AfterWorkersUpgrade',
    'AfterClusterUpgrade',
    'BeforeClusterDelete',
  ]
  expect(hookCatalog.map(({ name }) => name).filter((name) => !hooksWithResponses.has(name))).toEqual(hooksWithoutResponses)
})

test('accepted responses have unique names, and rejected responses, too', () => {
  for (const list of [acceptedResponses, rejectedResponses]) expect(new Set(list.map(({ name }) => name)).size).toBe(list.length)
})
