import { type Clock, VirtualClock } from '@capstan/kube'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'
import { Documents } from './documents.ts'

/** A clock on which each call of `pauseIfDue` pauses once. Counts the pauses. */
function yieldingClock(): Clock & { readonly pauses: number } {
  const clock = new VirtualClock()
  let pauses = 0
  let isDue = false
  return {
    now: () => clock.now(),
    elapsed: () => clock.elapsed(),
    schedule: (after, callback) => clock.schedule(after, callback),
    yieldIfDue() {
      isDue = !isDue
      if (!isDue) return undefined
      pauses++
      return Promise.resolve()
    },
    get pauses() {
      return pauses
    },
  }
}

/** Returns the documents of one resource that is served in `versions` versions, with their clock and the served resources. */
async function documentsOf(versions: number) {
  const { server } = await testServer()
  const { resources } = server.engine
  const widget = resources.list().find(({ plural }) => plural === 'widgets')!
  const widgetVersions = Array.from({ length: versions }, (_, index) => ({ ...widget, version: `v${index + 1}` }))
  const served = { ...resources, generation: 1, list: () => widgetVersions, schemas: () => new Map() }
  const clock = yieldingClock()
  return { clock, served, documents: new Documents(served as never, clock) }
}

test.each(['json', 'protobuf'] as const)(
  'OpenAPI v2 as %s is created in pieces, with more than seven pauses for each version of a resource',
  async (encoding) => {
    const { clock, documents } = await documentsOf(100)
    await documents.swagger(encoding, '1.36')
    expect(clock.pauses).toBeGreaterThan(100 * 7)
  },
)

test('concurrent requests for OpenAPI v2 share one document', async () => {
  const { documents } = await documentsOf(3)
  expect(documents.swagger('json', '1.36')).toBe(documents.swagger('json', '1.36'))
})

test('OpenAPI v2 is created again after the resources have changed', async () => {
  const { documents, served } = await documentsOf(3)
  const [before, laterVersions] = [documents.swagger('json', '1.36'), served.list().slice(1)]
  Object.assign(served, { generation: 2, list: () => laterVersions })
  expect(JSON.parse((await documents.swagger('json', '1.36')).bytes.toString()).paths).not.toHaveProperty([
    '/apis/shop.example.com/v1/widgets',
  ])
  expect(JSON.parse((await before).bytes.toString()).paths).toHaveProperty(['/apis/shop.example.com/v1/widgets'])
})

test('the index of OpenAPI v3 is created in pieces', async () => {
  const { clock, documents } = await documentsOf(100)
  await documents.openAPIIndex()
  expect(clock.pauses).toBeGreaterThan(100)
})

test('OpenAPI v3 has no document at longer paths than those of group versions', async () => {
  const { documents } = await documentsOf(1)
  expect(await documents.openAPI('apis/shop.example.com/v1')).toBeDefined()
  expect(await documents.openAPI('apis/shop.example.com/v1/widgets')).toBeUndefined()
})

test.each([
  ['the status subresource', { statusSubresource: false }],
  ['the scale subresource', { scale: undefined }],
  ['the kind of lists', { listKind: 'Widgets' }],
  ['the scope', { namespaced: false }],
])('OpenAPI v3 is created again after %s changes, although the schema is the same', async (_, change) => {
  const { documents, served } = await documentsOf(1)
  const before = await documents.openAPI('apis/shop.example.com/v1')
  const changed = served.list().map((resource) => ({ ...resource, ...change }))
  Object.assign(served, { generation: 2, list: () => changed })
  const created = new Documents(served as never, new VirtualClock()).openAPI('apis/shop.example.com/v1')
  const after = await documents.openAPI('apis/shop.example.com/v1')
  expect(after).toEqual(await created)
  expect(after).not.toEqual(before)
})

test('OpenAPI v3 is not created again after a change of fields that it does not contain', async () => {
  const { documents, served } = await documentsOf(1)
  const before = await documents.openAPI('apis/shop.example.com/v1')
  const changed = served.list().map((resource) => ({ ...resource, shortNames: ['w'], categories: ['all'], columns: [] }))
  Object.assign(served, { generation: 2, list: () => changed })
  expect(await documents.openAPI('apis/shop.example.com/v1')).toBe(before)
})
