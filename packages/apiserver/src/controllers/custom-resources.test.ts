import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createClient,
  CustomResourceDefinition,
  draft,
  freeze,
  type JSONSchema,
  orAbsent,
  unknownKind,
  VirtualClock,
} from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { openDurable } from '../store/durable.ts'
import {
  at,
  aWidget,
  namespace,
  quiet,
  rejection,
  type TestServer,
  testServer,
  Widget,
} from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

const version = (name: string, fields: object = {}) => ({
  name,
  served: true,
  storage: false,
  schema: { openAPIV3Schema: { type: 'object' as const, 'x-kubernetes-preserve-unknown-fields': true } },
  ...fields,
})
const crdOf = (plural: string, kind: string, versions = [version('v1', { storage: true })]) => ({
  metadata: { name: `${plural}.t.example.com` },
  spec: { group: 't.example.com', names: { plural, kind }, scope: 'Namespaced' as const, versions },
})
const createCRD = (plural: string, kind: string, versions?: ReturnType<typeof version>[]) =>
  t.client.create(CustomResourceDefinition, crdOf(plural, kind, versions))
const conditions = async (plural: string) =>
  (await t.client.get(CustomResourceDefinition, { name: `${plural}.t.example.com` })).status?.conditions?.map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  )
const Foo = (apiVersion = 't.example.com/v1') => unknownKind({ apiVersion, kind: 'Foo', plural: 'foos' })
const aFoo = (name: string) => ({ metadata: { name, namespace }, spec: { a: 1 } })

describe('a CustomResourceDefinition', () => {
  test('is served when its create request returns, before its conditions are set', async () => {
    const created = await createCRD('foos', 'Foo')
    expect(created).toMatchObject({
      metadata: { generation: 1 },
      spec: { names: { listKind: 'FooList', singular: 'foo' }, conversion: { strategy: 'None' } },
      status: { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: ['v1'] },
    })
    await t.client.create(Foo(), aFoo('x'))
    await quiet()
    expect(await conditions('foos')).toEqual([
      'NamesAccepted=True NoConflicts: no conflicts found',
      'Established=True InitialNamesAccepted: the initial names have been accepted',
    ])
  })

  test('whose names are taken waits until they are free', async () => {
    await createCRD('foos', 'Foo')
    await createCRD('bars', 'Foo')
    await quiet()
    expect(await conditions('bars')).toEqual([
      'NamesAccepted=False ListKindConflict: "FooList" is already in use',
      'Established=False NotAccepted: not all names are accepted',
    ])
    expect(t.server.engine.resources.find('t.example.com', 'v1', 'bars')).toBeUndefined()
    await t.client.delete(CustomResourceDefinition, { name: 'foos.t.example.com' })
    await quiet()
    expect(await conditions('bars')).toEqual([
      'NamesAccepted=True NoConflicts: no conflicts found',
      'Established=True InitialNamesAccepted: the initial names have been accepted',
    ])
    expect(t.server.engine.resources.find('t.example.com', 'v1', 'bars')).toBeDefined()
  })

  test('uses a changed schema at once', async () => {
    const before = t.server.engine.resources.generation
    const name = 'widgets.shop.example.com'
    const path = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/maximum'
    await t.client.patch(CustomResourceDefinition, { name }, { type: 'json', operations: [{ op: 'replace', path, value: 3 }] })
    expect(t.server.engine.resources.generation).toBe(before + 1)
    expect(await rejection(t.client.create(Widget, aWidget('w', { replicas: 4 })))).toContain('less than or equal to 3')
  })

  test('shares the schema object of a kind declared in this process, also after other fields change', async () => {
    const name = 'widgets.shop.example.com'
    const schema = async () => (await t.client.get(CustomResourceDefinition, { name })).spec.versions[0]?.schema?.openAPIV3Schema
    await quiet()
    expect(await schema()).toBe(Widget.schema)
    const body = { spec: { names: { shortNames: ['w'] } } }
    await t.client.patch(CustomResourceDefinition, { name }, { type: 'merge', body })
    await quiet()
    expect(await schema()).toBe(Widget.schema)
    expect(t.server.engine.resources.find('shop.example.com', 'v1', 'widgets')?.schema).toBe(Widget.schema)
  })

  test('copies a schema object that is not frozen', async () => {
    const schema = { type: 'object', properties: { spec: { type: 'object' } } } as const
    const created = await createCRD('foos', 'Foo', [version('v1', { storage: true, schema: { openAPIV3Schema: schema } })])
    expect(created.spec.versions[0]?.schema?.openAPIV3Schema).toEqual(schema)
    expect(Object.isFrozen(schema)).toBe(false)
  })

  test('with an invalid schema is rejected each time', async () => {
    const schema = freeze<JSONSchema>({ type: 'object', properties: { spec: { type: 'object', properties: { a: {} } } } })
    const createInvalid = () => createCRD('foos', 'Foo', [version('v1', { storage: true, schema: { openAPIV3Schema: schema } })])
    const first = await rejection(createInvalid())
    expect(first).toContain('properties[a].type: Required value')
    expect(await rejection(createInvalid())).toBe(first)
  })

  test('is rejected if its status subresource does not allow an otherwise valid schema', async () => {
    const schema = freeze<JSONSchema>({ type: 'object', properties: {}, maxProperties: 5 })
    const fields = { storage: true, schema: { openAPIV3Schema: schema } }
    const served = await createCRD('foos', 'Foo', [version('v1', fields)])
    expect(served.spec.versions).toHaveLength(1)
    expect(await rejection(createCRD('bars', 'Bar', [version('v1', { ...fields, subresources: { status: {} } })]))).toContain(
      'fields are allowed at the root of the schema if the status subresource is enabled',
    )
  })

  test('with a new default sets it when it serves objects that were stored earlier', async () => {
    const stored = await t.client.create(Widget, aWidget('w'))
    const name = 'widgets.shop.example.com'
    const path = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/default'
    await t.client.patch(CustomResourceDefinition, { name }, { type: 'json', operations: [{ op: 'add', path, value: 'green' }] })
    const read = await t.client.get(Widget, at('w'))
    expect(read).toMatchObject({ spec: { color: 'green' }, metadata: { resourceVersion: stored.metadata.resourceVersion } })
    expect((await t.client.list(Widget)).items[0]).toBe(read)
    expect(await t.client.update(Widget, read)).toBe(read)
  })

  test('of several versions serves every object in each served version', async () => {
    await createCRD('foos', 'Foo', [version('v1', { storage: true }), version('v2'), version('v3', { served: false })])
    const created = await t.client.create(Foo('t.example.com/v2'), aFoo('x'))
    expect(created.apiVersion).toBe('t.example.com/v2')
    const read = await t.client.get(Foo('t.example.com/v2'), at('x'))
    expect(await t.client.get(Foo('t.example.com/v2'), at('x'))).toBe(read)
    expect((await t.client.get(Foo(), at('x'))).apiVersion).toBe('t.example.com/v1')
    expect(t.server.store.get({ resource: 'foos.t.example.com', ...at('x') })?.apiVersion).toBe('t.example.com/v1')
    expect(await rejection(t.client.list(Foo('t.example.com/v3')))).toBe(
      '404 NotFound: the server could not find the requested resource',
    )
  })

  test('records the versions in which objects may be stored, and rejects the removal of such a version', async () => {
    const crd = draft(await createCRD('foos', 'Foo', [version('v1', { storage: true }), version('v2')]))
    const update = async (storage: string, names: string[]) => {
      const { metadata } = await t.client.get(CustomResourceDefinition, { name: crd.metadata.name })
      crd.metadata = draft(metadata)
      crd.spec.versions = names.map((name) => version(name, { storage: name === storage }))
      return t.client.update(CustomResourceDefinition, crd)
    }
    await quiet()
    expect((await update('v2', ['v1', 'v2'])).status?.storedVersions).toEqual(['v1', 'v2'])
    expect(await rejection(update('v2', ['v2']))).toContain(
      'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions',
    )
  })

  test.each([
    ['scope', { scope: 'Cluster' }, 'spec.scope: Invalid value: "Cluster": field is immutable'],
    ['kind', { names: { kind: 'Fooz' } }, 'spec.names.kind: Invalid value: "Fooz": field is immutable'],
    ['group', { group: 'x.example.com' }, 'spec.group: Invalid value: "x.example.com": field is immutable'],
  ])('keeps its %s once it is established', async (_, spec, text) => {
    await createCRD('foos', 'Foo')
    await quiet()
    const name = 'foos.t.example.com'
    expect(await rejection(t.client.patch(CustomResourceDefinition, { name }, { type: 'merge', body: { spec } }))).toBe(
      `422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "${name}" is invalid: ${text}`,
    )
  })

  test('that is deleted deletes its objects, and waits for those with finalizers', async () => {
    const name = 'foos.t.example.com'
    await createCRD('foos', 'Foo')
    await t.client.create(Foo(), aFoo('free'))
    await t.client.create(Foo(), { ...aFoo('held'), metadata: { name: 'held', namespace, finalizers: ['example.com/hold'] } })
    await quiet()
    const pending = await t.client.delete(CustomResourceDefinition, { name })
    expect(pending?.status?.conditions?.at(-1)).toMatchObject({ type: 'Terminating', reason: 'InstanceDeletionPending' })
    await quiet()
    expect((await conditions('foos'))?.at(-1)).toBe(
      'Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress',
    )
    expect((await t.client.list(Foo())).items.map(({ metadata }) => metadata.name)).toEqual(['held'])
    expect(await rejection(t.client.create(Foo(), aFoo('late')))).toBe(
      '403 Forbidden: foos.t.example.com "late" is forbidden: create not allowed while custom resource definition is terminating',
    )
    await t.client.patch(Foo(), at('held'), { type: 'merge', body: { metadata: { finalizers: null } } })
    await quiet()
    expect(await orAbsent(t.client.get(CustomResourceDefinition, { name }))).toBeUndefined()
    expect(await rejection(t.client.list(Foo()))).toBe('404 NotFound: the server could not find the requested resource')
  })

  const url = 'https://127.0.0.1/convert'
  test.each<[title: string, webhook: object | undefined, problem: string]>([
    ['that is complete is accepted', { conversionReviewVersions: ['v1'], clientConfig: { url } }, ''],
    [
      'without a clientConfig is rejected',
      { conversionReviewVersions: ['v1'] },
      'webhookClientConfig: Required value: required when strategy is set to Webhook',
    ],
    ['without a version is rejected', { clientConfig: { url } }, 'conversionReviewVersions: Required value'],
    [
      'of only unknown versions is rejected',
      { conversionReviewVersions: ['v9'], clientConfig: { url } },
      'conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
    ],
    [
      'with neither a URL nor a Service is rejected',
      { conversionReviewVersions: ['v1'], clientConfig: {} },
      'webhookClientConfig: Required value: exactly one of url or service is required',
    ],
  ])('with a conversion webhook %s', async (_, webhook, problem) => {
    const crd = crdOf('foos', 'Foo', [version('v1', { storage: true }), version('v2')])
    const conversion = { strategy: 'Webhook', webhook } as NonNullable<CustomResourceDefinition['spec']['conversion']>
    const message = await rejection(t.client.create(CustomResourceDefinition, { ...crd, spec: { ...crd.spec, conversion } }))
    const rejected = `422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "foos.t.example.com" is invalid: spec.conversion.${problem}`
    expect(message).toBe(problem === '' ? 'accepted' : rejected)
  })
})

test('CustomResourceDefinitions and objects exist after a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-restart-'))
  try {
    let stores = await openDurable(folder, { clock: new VirtualClock() })
    const first = await testServer({ store: await stores.store('main') })
    const created = await first.client.create(Widget, aWidget('w', { replicas: 7 }))
    await first.server.close()
    await stores.close()

    stores = await openDurable(folder, { clock: new VirtualClock() })
    const second = await testServer({ store: await stores.store('main'), customResources: [] })
    const client = createClient(second.server.transport())
    expect(await client.get(Widget, at('w'))).toEqual(created)
    await second.server.close()
    await stores.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
