import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  admission,
  ConfigMap,
  CustomResourceDefinition,
  customResourceDefinition,
  draft,
  forbidden,
  Namespace,
  Node,
  VirtualClock,
} from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { openDurable } from '../store/durable.ts'
import { at, aWidget, namespace, rejection, type TestServer, testServer, Widget } from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})
const patch = (body: unknown, options = {}) => t.client.patch(Widget, at('w'), { type: 'merge', body }, options)

describe('an update', () => {
  test('with an older resourceVersion is a conflict', async () => {
    const old = await t.client.create(Widget, aWidget('w'))
    await patch({ spec: { replicas: 2 } })
    expect(await rejection(t.client.update(Widget, { ...old, spec: { replicas: 3 } }))).toBe(
      '409 Conflict: Operation cannot be fulfilled on widgets.shop.example.com "w": the object has been modified; please apply your changes to the latest version and try again',
    )
  })

  test('of a custom resource requires a resourceVersion; an update of a ConfigMap does not', async () => {
    const widget = draft(await t.client.create(Widget, aWidget('w')))
    widget.metadata.resourceVersion = ''
    expect(await rejection(t.client.update(Widget, widget))).toBe(
      '422 Invalid: widgets.shop.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    )
    const configMap = draft(await t.client.create(ConfigMap, { metadata: at('c'), data: { a: '1' } }))
    configMap.metadata.resourceVersion = ''
    configMap.data = { b: '2' }
    expect((await t.client.update(ConfigMap, configMap)).data).toEqual({ b: '2' })
  })

  test('without changes returns the stored object and writes nothing', async () => {
    const before = await t.client.create(Widget, aWidget('w'))
    const { revision } = t.server.store
    expect(await t.client.update(Widget, before)).toBe(before)
    expect(await patch({ spec: { replicas: 1 } })).toBe(before)
    expect(t.server.store.revision).toBe(revision)
  })

  test('increases the generation for changes of the spec only', async () => {
    await t.client.create(Widget, aWidget('w'))
    const generations = [
      await patch({ metadata: { labels: { a: 'b' } } }),
      await patch({ spec: { replicas: 2 } }),
      await patch({ status: { phase: 'p' } }, { subresource: 'status' }),
      await patch({ metadata: { generation: 50 } }),
    ]
    expect(generations.map(({ metadata }) => metadata.generation)).toEqual([1, 2, 2, 2])
  })

  test('writes the spec, but not the status; the status subresource writes only the status', async () => {
    await t.client.create(Widget, aWidget('w'))
    const specAndStatus = { metadata: { labels: { a: 'b' } }, spec: { replicas: 2 }, status: { phase: 'x' } }
    expect(await patch(specAndStatus)).toMatchObject({ spec: { replicas: 2 } })
    expect((await t.client.get(Widget, at('w'))).status).toBeUndefined()
    const after = await patch(
      { ...specAndStatus, metadata: { labels: { c: 'd' } }, spec: { replicas: 9 } },
      { subresource: 'status' },
    )
    expect(after).toMatchObject({ spec: { replicas: 2 }, status: { phase: 'x' }, metadata: { labels: { a: 'b' } } })
    expect(after.metadata.labels).not.toHaveProperty('c')
  })

  test.each([
    [
      'change the name',
      { metadata: { name: 'x' } },
      '400 BadRequest: the name of the object (x) does not match the name on the URL (w)',
    ],
    [
      'change the namespace',
      { metadata: { namespace: 'x' } },
      '400 BadRequest: the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      'change the kind',
      { kind: 'X' },
      '422 Invalid: X.shop.example.com "w" is invalid: kind: Invalid value: "X": must be Widget',
    ],
    [
      'change the uid',
      { metadata: { uid: 'x' } },
      '422 Invalid: Widget.shop.example.com "w" is invalid: metadata.uid: Invalid value: "x": field is immutable',
    ],
    [
      'set deletionTimestamp',
      { metadata: { deletionTimestamp: '2000-01-01T00:00:00Z' } },
      '422 Invalid: Widget.shop.example.com "w" is invalid: metadata.deletionTimestamp: Invalid value: "2000-01-01T00:00:00Z": field is immutable',
    ],
  ])('that would %s is rejected', async (_, body, text) => {
    await t.client.create(Widget, aWidget('w'))
    expect(await rejection(patch(body))).toBe(text)
  })

  test('of an object that does not exist is NotFound', async () => {
    expect(await rejection(patch({ spec: {} }))).toBe('404 NotFound: widgets.shop.example.com "w" not found')
  })

  test('may leave invalid fields unchanged', async () => {
    const { store } = t.server
    const created = await t.client.create(Widget, aWidget('w'))
    const key = { resource: 'widgets.shop.example.com', ...at('w') }
    await store.commit({ key, previous: created, object: { ...draft(created), spec: { replicas: 500 } } as never })
    expect(await patch({ metadata: { labels: { a: 'b' } } })).toMatchObject({ spec: { replicas: 500 } })
    expect(await rejection(patch({ spec: { replicas: 501 } }))).toContain('should be less than or equal to 100')
  })

  test('as a dry run stores nothing', async () => {
    await t.client.create(Widget, aWidget('w'))
    expect(await patch({ spec: { replicas: 9 } }, { dryRun: true })).toMatchObject({
      spec: { replicas: 9 },
      metadata: { generation: 2 },
    })
    expect(await t.client.get(Widget, at('w'))).toMatchObject({ spec: { replicas: 1 } })
  })

  test('of a namespace keeps its label kubernetes.io/metadata.name', async () => {
    const patched = await t.client.patch(Namespace, { name: namespace }, { type: 'merge', body: { metadata: { labels: null } } })
    expect(patched.metadata.labels).toEqual({ 'kubernetes.io/metadata.name': 'default' })
  })

  test('of the status of a built-in kind may change labels', async () => {
    await t.client.create(Node, { metadata: { name: 'n' } })
    const body = { metadata: { labels: { a: 'b' } }, spec: { unschedulable: true }, status: { phase: 'x' } }
    const patched = await t.client.patch(Node, { name: 'n' }, { type: 'merge', body }, { subresource: 'status' })
    expect(patched).toMatchObject({ metadata: { labels: { a: 'b' } }, status: { phase: 'x' } })
    expect(patched.spec ?? {}).toEqual({})
  })
})

describe('many patches of one object at once', () => {
  const race = async ({ client }: TestServer) => {
    await client.create(Widget, aWidget('w'))
    const labels = Array.from({ length: 30 }, (_, i) => `l${i}`)
    await Promise.all(
      labels.map((label) => client.patch(Widget, at('w'), { type: 'merge', body: { metadata: { labels: { [label]: 'x' } } } })),
    )
    expect(Object.keys((await client.get(Widget, at('w'))).metadata.labels ?? {}).sort()).toEqual(labels.sort())
  }

  test('are all stored', () => race(t))

  test('are all stored in a durable store', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'capstan-race-'))
    const stores = await openDurable(folder, { clock: new VirtualClock() })
    try {
      await race(await testServer({ store: await stores.store('main') }))
    } finally {
      await stores.close()
      rmSync(folder, { recursive: true })
    }
  })
})

describe('a patch', () => {
  const send = (patchType: string, body: unknown, kind = Widget as { group: string; version: string; plural: string }) =>
    t.client.transport.send({
      verb: 'patch',
      group: kind.group,
      version: kind.version,
      plural: kind.plural,
      ...at('w'),
      patchType: patchType as never,
      body,
    })
  beforeEach(async () => {
    await t.client.create(Widget, aWidget('w', { free: { x: { y: 1, z: 2 } }, tags: ['a'] }))
  })

  test.each([
    ['merge', 'application/merge-patch+json', { spec: { free: { x: { y: null }, n: 1 } } }, { x: { z: 2 }, n: 1 }],
    [
      'JSON',
      'application/json-patch+json',
      [
        { op: 'test', path: '/spec/replicas', value: 1 },
        { op: 'move', from: '/spec/free/x', path: '/spec/free/m' },
      ],
      { m: { y: 1, z: 2 } },
    ],
  ])('of type %s changes the object', async (_, type, body, free) => {
    expect(await send(type, body)).toMatchObject({ spec: { free } })
  })

  test.each([
    [
      'a JSON patch that does not apply',
      'application/json-patch+json',
      [{ op: 'remove', path: '/spec/none' }],
      '422 Invalid: the server rejected our request due to an error in our request',
    ],
    [
      'a JSON patch that is not a list',
      'application/json-patch+json',
      {},
      '400 BadRequest: error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
    ],
    [
      'a merge patch that is not an object',
      'application/merge-patch+json',
      [],
      '400 BadRequest: error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
    ],
    [
      'a strategic merge patch of a custom resource',
      'application/strategic-merge-patch+json',
      {},
      '415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    ],
  ])('is rejected when it is %s', async (_, type, body, text) => {
    expect(await rejection(send(type, body))).toBe(text)
  })
})

describe('an apply', () => {
  const apply = (fieldManager: string, spec: object, options: { force?: boolean } = {}, metadata = {}) =>
    t.client.apply(Widget, aWidget('a', spec, metadata), { fieldManager, ...options })

  const applyWithoutName = (body: object, subresource?: string) =>
    t.client.transport.send({
      verb: 'patch',
      group: Widget.group,
      version: Widget.version,
      plural: Widget.plural,
      ...at('a'),
      ...(subresource === undefined ? {} : { subresource }),
      patchType: 'application/apply-patch+yaml',
      options: { fieldManager: 'm' },
      body: { apiVersion: 'shop.example.com/v1', kind: 'Widget', ...body },
    })

  test('to an existing object may omit the name', async () => {
    await apply('m', { color: 'red' })
    expect(await applyWithoutName({ spec: { color: 'blue' } })).toMatchObject({ spec: { color: 'blue' } })
    expect(await applyWithoutName({ status: { phase: 'x' } }, 'status')).toMatchObject({ status: { phase: 'x' } })
  })

  test('creates the object, changes its own fields, and removes fields that are no longer applied', async () => {
    expect(await apply('m1', { color: 'red', replicas: 2 })).toMatchObject({ spec: { color: 'red', replicas: 2 } })
    const after = await apply('m1', { replicas: 3 })
    expect(after.spec).toEqual({ replicas: 3 })
    expect(after.metadata.managedFields).toMatchObject([
      { manager: 'm1', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:replicas': {} } } },
    ])
  })

  test('conflicts with another field manager unless forced', async () => {
    await apply('m1', { color: 'red' })
    expect(await rejection(apply('m2', { color: 'blue' }))).toBe(
      '409 Conflict: Apply failed with 1 conflict: conflict with "m1": .spec.color',
    )
    expect(await apply('m2', { color: 'blue' }, { force: true })).toMatchObject({ spec: { color: 'blue' } })
  })

  test('of an unchanged configuration returns the stored object', async () => {
    const first = await apply('m1', { color: 'red' })
    expect(await apply('m1', { color: 'red' })).toBe(first)
  })

  test.each([
    [
      'without a fieldManager',
      () => apply('', {}),
      '422 Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    ],
    [
      'with an unknown field',
      () => apply('m', { zzz: 1 }),
      '500 : failed to create typed patch object (default/a; shop.example.com/v1, Kind=Widget): .spec.zzz: field not declared in schema',
    ],
    [
      'with a uid when there is no object',
      () => apply('m', {}, {}, { uid: 'u' }),
      '409 Conflict: Operation cannot be fulfilled on widgets.shop.example.com "a": uid mismatch: the provided object specified uid u, and no existing object was found',
    ],
    [
      'without a name when there is no object',
      () => applyWithoutName({ spec: {} }),
      '400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided',
    ],
    [
      'with null for a field that is not nullable',
      () => apply('m', { color: null }),
      '422 Invalid: Widget.shop.example.com "a" is invalid: spec.color: Invalid value: "null": spec.color in body must be of type string: "null"',
    ],
    [
      'with managedFields, even as an empty list',
      () => apply('m', {}, {}, { managedFields: [] }),
      '400 BadRequest: metadata.managedFields must be nil',
    ],
  ])('is rejected %s', async (_, request, text) => {
    expect(await rejection(request())).toBe(text)
  })

  test('by two managers at once to an absent object stores the fields of both', async () => {
    await Promise.all([apply('m1', { color: 'red' }), apply('m2', { replicas: 7 })])
    expect((await t.client.get(Widget, at('a'))).spec).toEqual({ color: 'red', replicas: 7 })
  })
})

describe('scale', () => {
  const target = { group: 'shop.example.com', version: 'v1', plural: 'widgets', ...at('w'), subresource: 'scale' }
  const scale = (body: unknown) =>
    t.client.transport.send({ verb: 'patch', ...target, patchType: 'application/merge-patch+json', body })
  beforeEach(async () => {
    await t.client.create(Widget, aWidget('w', { replicas: 2 }))
  })

  test('reads and changes the replicas of an object as a Scale', async () => {
    expect(await t.client.transport.send({ verb: 'get', ...target })).toMatchObject({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      spec: { replicas: 2 },
      status: { replicas: 0 },
    })
    expect(await scale({ spec: { replicas: 5 } })).toMatchObject({ spec: { replicas: 5 } })
    const { spec, metadata } = await t.client.get(Widget, at('w'))
    expect([spec.replicas, metadata.generation]).toEqual([5, 2])
    expect(metadata.managedFields?.map(({ subresource }) => subresource)).toContain('scale')
  })

  test('can be applied, after which the field manager owns the replicas; an object of another kind is rejected', async () => {
    const applyScale = (body: object, fieldManager: string, force = false) =>
      t.client.transport.send({
        verb: 'patch',
        ...target,
        patchType: 'application/apply-patch+yaml',
        body: { apiVersion: 'autoscaling/v1', kind: 'Scale', ...body },
        options: { fieldManager, force },
      })
    expect(await rejection(applyScale({ spec: { replicas: 4 } }, 'scaler'))).toBe(
      '409 Conflict: Apply failed with 1 conflict: conflict with "test" using shop.example.com/v1: .spec.replicas',
    )
    expect(await applyScale({ spec: { replicas: 4 } }, 'scaler', true)).toMatchObject({ kind: 'Scale', spec: { replicas: 4 } })
    const { spec, metadata } = await t.client.get(Widget, at('w'))
    expect(spec.replicas).toBe(4)
    expect(metadata.managedFields).toContainEqual(
      expect.objectContaining({
        manager: 'scaler',
        operation: 'Apply',
        subresource: 'scale',
        fieldsV1: { 'f:spec': { 'f:replicas': {} } },
      }),
    )
    expect(await rejection(applyScale({ kind: 'Widget' }, 'scaler'))).toMatch(
      /^400 BadRequest: wrong APIVersion or Kind in Scale/,
    )
  })

  test.each([
    [
      'a negative number of replicas',
      { spec: { replicas: -1 } },
      '422 Invalid: Widget.shop.example.com "w" is invalid: [spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer]',
    ],
    [
      'a number of replicas above the maximum of the kind',
      { spec: { replicas: 500 } },
      '422 Invalid: Widget.shop.example.com "w" is invalid: spec.replicas: Invalid value: 500: spec.replicas in body should be less than or equal to 100',
    ],
    [
      'a Scale with an older resourceVersion',
      { metadata: { resourceVersion: '1' }, spec: { replicas: 3 } },
      '409 Conflict: Operation cannot be fulfilled on widgets.shop.example.com "w": the object has been modified; please apply your changes to the latest version and try again',
    ],
  ])('%s is rejected', async (_, body, text) => {
    expect(await rejection(scale(body))).toBe(text)
  })

  test('calls the admission of the kind with the whole object', async () => {
    const even = {
      kind: Widget,
      default: (widget: Widget) => {
        widget.spec.color ??= 'grey'
      },
      validate: ({ spec }: Widget) => (spec.replicas % 2 === 0 ? [] : [forbidden('spec.replicas', `not ${spec.replicas}`)]),
    }
    t = await testServer({ admission: [admission(even)] })
    await t.client.create(Widget, aWidget('w', { replicas: 2 }))
    expect(await rejection(scale({ spec: { replicas: 3 } }))).toBe(
      '422 Invalid: Widget.shop.example.com "w" is invalid: spec.replicas: Forbidden: not 3',
    )
    expect(await scale({ spec: { replicas: 4 } })).toMatchObject({ spec: { replicas: 4 } })
    expect((await t.client.get(Widget, at('w'))).spec).toEqual({ replicas: 4, color: 'grey' })
  })

  test('of a custom resource without replicas cannot be read, but can be set', async () => {
    const { spec } = customResourceDefinition(Widget)
    const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' }
    await t.client.create(CustomResourceDefinition, {
      metadata: { name: 'gadgets.shop.example.com' },
      spec: {
        ...spec,
        names: { kind: 'Gadget', plural: 'gadgets' },
        versions: spec.versions.map((version) => ({
          ...version,
          schema: { openAPIV3Schema: { type: 'object' as const, 'x-kubernetes-preserve-unknown-fields': true } },
          subresources: { scale },
        })),
      },
    })
    const gadgets = { group: 'shop.example.com', version: 'v1', plural: 'gadgets', ...at('g') } as const
    const body = { apiVersion: 'shop.example.com/v1', kind: 'Gadget', metadata: { name: 'g' } }
    await t.client.transport.send({ verb: 'create', ...gadgets, body })
    expect(await rejection(t.client.transport.send({ verb: 'get', ...gadgets, subresource: 'scale' }))).toBe(
      '500 InternalError: Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    )
    const change = { patchType: 'application/merge-patch+json', body: { spec: { replicas: 3 } } } as const
    expect(await t.client.transport.send({ verb: 'patch', ...gadgets, subresource: 'scale', ...change })).toMatchObject({
      spec: { replicas: 3 },
    })
  })

  test('is not found for kinds without it, like any other unsupported subresource', async () => {
    const request = { verb: 'get', group: '', version: 'v1', plural: 'configmaps', ...at('c') } as const
    for (const subresource of ['scale', 'status', 'log']) {
      expect(await rejection(t.client.transport.send({ ...request, subresource }))).toBe(
        '404 NotFound: the server could not find the requested resource',
      )
    }
  })
})
