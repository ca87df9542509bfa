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
])('publishedCatalog returns all hooks of %s, with upper-case letters in their names', (_, document) => {
  expect(publishedCatalog(document)!.hooks.map(hookText).sort()).toEqual(catalogTexts)
})

test('preflight reports a handler of a hook that the document marks as deprecated', () => {
  const hookInCatalog = hookCatalog.find(({ name }) => name === 'BeforeClusterCreate')!
  const deprecated = { ...hookInCatalog, deprecated: { release: 'v1.15.0', date: '2027-04-20' } }
  const target = publishedCatalog(hooksOpenApi([deprecated], 'v1.16.0'))!
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
])('publishedCatalog returns undefined for %s', (_, document) => expect(publishedCatalog(document)).toBeUndefined())
