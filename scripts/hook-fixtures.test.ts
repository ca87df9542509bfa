import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { hookCatalog } from '@capstan/api'
import { expect, it, test } from 'vitest'
import { acceptedResponses, rejectedResponses } from './hook-responses.ts'
import { hookFixtures } from './hook-fixtures.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

it('packages/extension/fixtures contains the generated files, and no others (otherwise run npm run gen)', async () => {
  const files = Object.fromEntries(await hookFixtures())
  const paths = globSync('packages/extension/fixtures/**/*.json', { cwd: root })
  expect(Object.fromEntries(paths.sort().map((path) => [path, readFileSync(`${root}${path}`, 'utf8')]))).toEqual(files)
})

test('every hook has its own responses or those of BeforeClusterCreate, and names of responses are unique', () => {
  const answered = new Set([...acceptedResponses, ...rejectedResponses].map(({ hook }) => hook.name))
  const hooksWithSharedResponses = [
    'BeforeControlPlaneUpgrade',
    'AfterControlPlaneUpgrade',
    'BeforeWorkersUpgrade',
    'AfterWorkersUpgrade',
    'AfterClusterUpgrade',
    'BeforeClusterDelete',
  ]
  expect(hookCatalog.map(({ name }) => name).filter((name) => !answered.has(name))).toEqual(hooksWithSharedResponses)
  for (const list of [acceptedResponses, rejectedResponses]) expect(new Set(list.map(({ name }) => name)).size).toBe(list.length)
})
