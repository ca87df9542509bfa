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

test('other requests run while a Service of many source ranges is validated', async () => {
  let pauses = 0
  let isDue = false
  const clock = Object.assign(new VirtualClock(), {
    yieldIfDue: () => ((isDue = !isDue) ? (pauses++, Promise.resolve()) : undefined),
  })
  const { server } = await testServer({ clock })
  const pausesWith = async (ranges: number): Promise<number> => {
    pauses = 0
    const loadBalancerSourceRanges = Array.from({ length: ranges }, () => '10.0.0.0/8')
    const spec = { type: 'LoadBalancer', ports: [{ port: 1 }], loadBalancerSourceRanges }
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec }
    const request = { verb: 'create', version: 'v1', group: '', plural: 'services', namespace: 'default', body }
    const caller = { name: 'admin', groups: ['system:masters'], agent: 'test' }
    await server.engine.execute({ ...request, options: { dryRun: true } } as never, caller)
    return pauses
  }
  // 256 of them at a time.
  expect((await pausesWith(2560)) - (await pausesWith(1))).toBe(10)
})
