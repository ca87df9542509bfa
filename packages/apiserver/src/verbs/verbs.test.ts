import {
  ConfigMap,
  createClient,
  type Client,
  CustomResourceDefinition,
  defineKind,
  customResourceDefinition,
  Namespace,
  s,
  seededRandom,
  VirtualClock,
} from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { type ApiServer, createApiServer } from '../server.ts'

const Widget = defineKind({
  group: 'shop.example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: s.object({ replicas: s.int32().default(1) }),
  status: s.object({ phase: s.string().optional() }),
})

let server: ApiServer
let client: Client
beforeEach(async () => {
  server = createApiServer({
    clock: new VirtualClock(),
    random: seededRandom(1),
    customResources: [customResourceDefinition(Widget)],
  })
  await server.ready
  client = createClient(server.transport())
})

const namespace = 'default'

describe('a create', () => {
  test('fills in what the server decides', async () => {
    const made = await client.create(ConfigMap, { metadata: { name: 'a', namespace }, data: { k: 'v' } })
    expect(made).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' } })
    expect(await client.get(ConfigMap, { namespace, name: 'a' })).toBe(made)
    expect(await client.list(Namespace)).toMatchObject({ items: [{ metadata: { name: 'default' } }, {}, {}, {}] })
  })
  test('of a custom resource', async () => {
    const made = await client.create(Widget, { metadata: { generateName: 'a-', namespace }, spec: { replicas: 1 } })
    expect(made.metadata.name).toMatch(/^a-[a-z0-9]{5}$/)
    expect(made.metadata.generation).toBe(1)
    const patched = await client.patch(Widget, made.metadata as never, { type: 'merge', body: { spec: { replicas: 2 } } })
    expect(patched.metadata.generation).toBe(2)
    expect(await client.delete(Widget, made.metadata as never)).toBeUndefined()
    expect(await client.get(CustomResourceDefinition, { name: 'widgets.shop.example.com' })).toMatchObject({
      status: { conditions: [{ type: 'NamesAccepted' }, { type: 'Established', status: 'True' }] },
    })
  })
})
