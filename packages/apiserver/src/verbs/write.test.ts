import { VirtualClock } from '@capstan/kube'
import { testServer, aWidget, Widget } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'

test.each([
  ['a create', 'create', 0, 13],
  ['an update', 'update', 0, 13],
  // 256 annotations at a time are checked, compared, and encoded as managedFields.
  ['a create of many annotations', 'create', 2560, 13 + 3 * 10],
] as const)('other requests run between the pieces of %s that takes long', async (_, verb, annotations, expected) => {
  let pauses = 0
  let isDue = false
  const clock = Object.assign(new VirtualClock(), {
    yieldIfDue() {
      isDue = !isDue
      if (!isDue) return undefined
      pauses++
      return Promise.resolve()
    },
  })
  const { client, server } = await testServer({ clock })
  const stored = await client.create(Widget, aWidget('stored'))
  const body =
    verb === 'create'
      ? { ...stored, metadata: { name: 'new', annotations: manyAnnotations(annotations) } }
      : { ...stored, spec: { replicas: 2 } }
  const { group, version, plural } = Widget
  const name = verb === 'create' ? {} : { name: 'stored' }
  pauses = 0
  await server.engine.execute({ verb, group, version, plural, namespace: 'default', ...name, body, options: {} } as never, {
    name: 'admin',
    groups: ['system:masters'],
    agent: 'test',
  })
  expect(pauses).toBe(expected)
})

const manyAnnotations = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, 'v']))
