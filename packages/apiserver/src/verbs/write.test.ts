import { ConfigMap, VirtualClock } from '@capstan/kube'
import { testServer, aWidget, Widget } from '@capstan/kubernetes-kinds/test-server'
import { expect, test } from 'vitest'

/** A clock that requires a pause at every second call of `yieldIfDue`. Counts the pauses. */
class PausingClock extends VirtualClock {
  pauses = 0
  #isDue = false

  yieldIfDue(): Promise<void> | undefined {
    this.#isDue = !this.#isDue
    if (!this.#isDue) return undefined
    this.pauses++
    return Promise.resolve()
  }
}

test.each([
  ['a create', 'create', 0, 13],
  ['an update', 'update', 0, 13],
  // Three steps (check, compare, encode as managedFields) process 256 annotations at a time; copying processes 1,024 at a time.
  ['a create of many annotations', 'create', 2560, 13 + 3 * 10 + 2],
] as const)(
  '%s pauses between the pieces of its work, so that other requests can run',
  async (_, verb, annotations, expected) => {
    const clock = new PausingClock()
    const { client, server } = await testServer({ clock })
    const stored = await client.create(Widget, aWidget('stored'))
    const body =
      verb === 'create'
        ? { ...stored, metadata: { name: 'new', annotations: manyAnnotations(annotations) } }
        : { ...stored, spec: { replicas: 2 } }
    const { group, version, plural } = Widget
    const name = verb === 'create' ? {} : { name: 'stored' }
    clock.pauses = 0
    await server.engine.execute({ verb, group, version, plural, namespace: 'default', ...name, body, options: {} } as never, {
      name: 'admin',
      groups: ['system:masters'],
      agent: 'test',
    })
    expect(clock.pauses).toBe(expected)
  },
)

test('a create of a built-in kind pauses twice more than that of a custom resource: after the check of types and after the check of nulls', async () => {
  const clock = new PausingClock()
  const { client } = await testServer({ clock })
  const pausesOf = async (create: () => Promise<unknown>): Promise<number> => {
    clock.pauses = 0
    await create()
    return clock.pauses
  }
  const ofWidget = await pausesOf(() => client.create(Widget, aWidget('a')))
  const ofConfigMap = await pausesOf(() => client.create(ConfigMap, { metadata: { name: 'a', namespace: 'default' } }))
  expect(ofConfigMap - ofWidget).toBe(2)
})

const manyAnnotations = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, 'v']))

test('the validation of a Service with many source ranges pauses, so that other requests can run', async () => {
  const clock = new PausingClock()
  const { server } = await testServer({ clock })
  const pausesWith = async (ranges: number): Promise<number> => {
    clock.pauses = 0
    const loadBalancerSourceRanges = Array.from({ length: ranges }, () => '10.0.0.0/8')
    const spec = { type: 'LoadBalancer', ports: [{ port: 1 }], loadBalancerSourceRanges }
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec }
    const request = { verb: 'create', version: 'v1', group: '', plural: 'services', namespace: 'default', body }
    const caller = { name: 'admin', groups: ['system:masters'], agent: 'test' }
    await server.engine.execute({ ...request, options: { dryRun: true } } as never, caller)
    return clock.pauses
  }
  // Validation processes 256 ranges at a time. Three steps (copy, check of types, check of nulls) process 1,024 at a time.
  expect((await pausesWith(2560)) - (await pausesWith(1))).toBe(10 + 3 * 2)
})
