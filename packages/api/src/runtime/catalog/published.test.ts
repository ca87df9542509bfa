import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { hookCatalog } from '../hooks/catalog.ts'
import { hooksOpenApi } from '../openapi.ts'
import { hookText } from './catalog.ts'
import { preflight } from './preflight.ts'
import { publishedCatalog } from './published.ts'

const catalogTexts = hookCatalog.map(hookText).sort()
const upstream: unknown = JSON.parse(readFileSync(new URL('../../../testdata/hooks-openapi.json', import.meta.url), 'utf8'))

test.each([
  ["upstream's document", upstream],
  ['our own document', hooksOpenApi(hookCatalog, 'v1.14.0')],
])('the catalog read from %s contains all hooks, with the upper-case letters of their names', (_, document) => {
  expect(publishedCatalog(document)!.hooks.map(hookText).sort()).toEqual(catalogTexts)
})

test('a hook marked as deprecated in the document is deprecated', () => {
  const [deprecatedHook, ...otherHooks] = hookCatalog.filter(({ name }) => name === 'BeforeClusterCreate')
  const deprecated = { ...deprecatedHook!, deprecated: { release: 'v1.15.0', date: '2027-04-20' } }
  const target = publishedCatalog(hooksOpenApi([deprecated, ...otherHooks], 'v1.16.0'))!
  const { group, version, name: hook } = deprecated
  expect(preflight([{ name: 'gate.x', group, version, hook }], target)).toEqual([
    { handler: 'gate.x', kind: 'deprecated', message: `${hookText(deprecated)} is deprecated in v1.16.0` },
  ])
})

test.each([
  ['a list', []],
  ['an object that is not an OpenAPI document', { release: 'v1' }],
  ['a document without paths', { paths: {} }],
  ['no document', undefined],
])('returns undefined for %s', (_, document) => expect(publishedCatalog(document)).toBeUndefined())
