import { VirtualClock } from '@capstan/kube'
import { testServer, aWidget, Widget } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'

test.each([
  ['a create', 'create'],
  ['an update', 'update'],
] as const)('other requests run between the stages of %s that takes long', async (_, verb) => {
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
  const body = verb === 'create' ? { ...stored, metadata: { name: 'new' } } : { ...stored, spec: { replicas: 2 } }
  const { group, version, plural } = Widget
  const name = verb === 'create' ? {} : { name: 'stored' }
  pauses = 0
  await server.engine.execute({ verb, group, version, plural, namespace: 'default', ...name, body, options: {} } as never, {
    name: 'admin',
    groups: ['system:masters'],
    agent: 'test',
  })
  // After decoding, managed fields, admission, the schema, and the strategy.
  expect(pauses).toBe(5)
})
