import {
  createClient,
  type Client,
  CustomResourceDefinition,
  type Input,
  isRecord,
  type JSONSchema,
  type KubeObject,
  readJSON,
  unknownKind,
  type UnknownObject,
  ValidatingWebhookConfiguration,
  writeJSON,
} from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import type { WebhookTransport } from '../admission/webhook-caller.ts'
import { collected, namespace, quiet, rejection, testServer, type TestServer } from '@capstan/kubernetes-kinds/test-server'

const group = 't.example.com'
const kindIn = (version: string) => unknownKind({ apiVersion: `${group}/${version}`, kind: 'Conv', plural: 'convs' })
const [V1, V2] = [kindIn('v1'), kindIn('v2')]

const schemaOf = (properties: { [name: string]: JSONSchema }) => ({
  openAPIV3Schema: { type: 'object' as const, properties: { spec: { type: 'object' as const, properties } } },
})

/** Returns a CRD with a field that is `spec.size` in v1 and `spec.width` in v2. Only v2 has `spec.color`, with a default. */
function convCRD(storage: 'v1' | 'v2', conversion: 'Webhook' | 'None'): Input<CustomResourceDefinition> {
  const webhook = { clientConfig: { url: 'https://127.0.0.1:9443/convert' }, conversionReviewVersions: ['v1'] }
  return {
    metadata: { name: `convs.${group}` },
    spec: {
      group,
      names: { kind: 'Conv', plural: 'convs' },
      scope: 'Namespaced',
      versions: [
        { name: 'v1', served: true, storage: storage === 'v1', schema: schemaOf({ size: { type: 'integer' } }) },
        {
          name: 'v2',
          served: true,
          storage: storage === 'v2',
          schema: schemaOf({ width: { type: 'integer' }, color: { type: 'string', default: 'red' } }),
        },
      ],
      conversion: conversion === 'None' ? { strategy: 'None' } : { strategy: 'Webhook', webhook },
    },
  }
}

interface Request {
  readonly uid: string
  readonly desiredAPIVersion: string
  readonly objects: readonly UnknownObject[]
}

interface Review {
  readonly uid: string
  readonly resource: { readonly version: string }
  readonly oldObject: UnknownObject | null
}

/**
 * An API server with the CRD. As the server's transport to webhooks, it responds itself: it converts objects of the CRD, and allows all
 * admission requests.
 */
class ConvertingServer implements WebhookTransport {
  /** Requests to the conversion webhook. */
  readonly calls: Request[] = []
  /** Admission requests. */
  readonly reviews: Review[] = []
  /** Changes the response of the conversion webhook. */
  changeResponse: (response: { [field: string]: unknown; convertedObjects: UnknownObject[] }) => unknown = (response) => response
  /** HTTP status of the conversion webhook. */
  code = 200
  hosted!: TestServer
  client!: Client

  static async make(storage: 'v1' | 'v2' = 'v2', conversion: 'Webhook' | 'None' = 'Webhook'): Promise<ConvertingServer> {
    const server = new ConvertingServer()
    server.hosted = await testServer({ webhooks: { transport: server } })
    server.client = createClient(server.hosted.server.transport({ agent: 'test' }))
    await server.client.create(CustomResourceDefinition, convCRD(storage, conversion))
    await quiet()
    return server
  }

  async post(_: unknown, body: string) {
    const { kind, request } = readJSON(body) as { kind: string; request: Request | Review }
    if (!('objects' in request)) {
      this.reviews.push(request)
      const review = { apiVersion: 'admission.k8s.io/v1', kind, response: { uid: request.uid, allowed: true } }
      return { status: 200, contentType: 'application/json', body: Buffer.from(writeJSON(review)) }
    }
    this.calls.push(request)
    const response = {
      uid: request.uid,
      result: { status: 'Success' },
      convertedObjects: request.objects.map((object) => convertTo(object, request.desiredAPIVersion)),
    }
    const review = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response: this.changeResponse(response) }
    return { status: this.code, contentType: 'application/json', body: Buffer.from(writeJSON(review)) }
  }
  close() {}

  /** Returns the number of calls of the conversion webhook during `work`. */
  async callsOf(work: Promise<unknown>): Promise<number> {
    const before = this.calls.length
    await work
    return this.calls.length - before
  }

  stored() {
    return this.hosted.server.store.get({ resource: `convs.${group}`, namespace, name: 'a' }) as UnknownObject | undefined
  }
}

function convertTo(object: UnknownObject, apiVersion: string): UnknownObject {
  const spec = isRecord(object.spec) ? object.spec : {}
  const { size, width, ...otherFields } = spec as { size?: number; width?: number }
  const value = size ?? width
  const sizeField = value === undefined ? {} : apiVersion.endsWith('v2') ? { width: value } : { size: value }
  return { ...object, apiVersion, metadata: { ...object.metadata }, spec: { ...otherFields, ...sizeField } }
}

const conv = (spec: object, name = 'a') => ({ metadata: { name, namespace }, spec })
const at = { namespace, name: 'a' }

describe('objects of a CRD with a conversion webhook', () => {
  let server: ConvertingServer
  beforeEach(async () => {
    server = await ConvertingServer.make()
  })

  test('are stored in the storage version, and returned in the requested version', async () => {
    const created = await server.client.create(V1, conv({ size: 3 }))
    expect(created).toMatchObject({ apiVersion: `${group}/v1`, spec: { size: 3 } })
    expect(server.stored()).toMatchObject({ apiVersion: `${group}/v2`, spec: { width: 3 } })
    expect((await server.client.get(V2, at)).spec).toEqual({ width: 3, color: 'red' })
    expect((await server.client.get(V1, at)).spec).toEqual({ size: 3 })
  })

  test('keep all digits of integers beyond 2^53 in each version', async () => {
    const { client } = server
    await client.create(V1, conv({ size: 9007199254740993n }))
    expect(server.stored()?.spec).toMatchObject({ width: 9007199254740993n })
    await client.patch(V1, at, { type: 'merge', body: { spec: { size: -9007199254740995n } } })
    expect(await client.get(V1, at)).toMatchObject({ spec: { size: -9007199254740995n } })
  })

  test('cause no webhook call when they are requested in the storage version', async () => {
    const work = async () => {
      await server.client.create(V2, conv({ width: 3 }))
      await server.client.patch(V2, at, { type: 'merge', body: { spec: { width: 4 } } })
      await server.client.list(V2, { namespace })
      await server.client.delete(V2, at)
    }
    expect(await server.callsOf(work())).toBe(0)
  })

  test('are listed with one webhook call for each page, which contains only the objects of the page', async () => {
    for (const name of ['a', 'b', 'c']) await server.client.create(V2, conv({ width: 1 }, name))
    expect(await server.callsOf(server.client.list(V1, { namespace }))).toBe(1)
    const { items } = await server.client.list(V1, { namespace })
    expect(items.map(({ metadata, spec }) => [metadata.name, spec])).toEqual(['a', 'b', 'c'].map((name) => [name, { size: 1 }]))
    const page = await server.client.list(V1, { namespace, limit: 2 })
    expect(page.items).toHaveLength(2)
    expect(page.metadata.remainingItemCount).toBe(1)
    expect(server.calls.at(-1)!.objects).toHaveLength(2)
  })

  test('are listed with several webhook calls if they are large; an error has the index of the object in the whole list', async () => {
    const size = 400_000
    for (const name of ['a', 'b', 'c', 'd']) {
      await server.client.create(V2, conv({ width: 1, ...(name === 'd' ? {} : { color: 'x'.repeat(size) }) }, name))
    }
    expect(await server.callsOf(server.client.list(V1, { namespace }))).toBe(2)
    expect(server.calls.slice(-2).map(({ objects }) => objects.length)).toEqual([3, 1])
    const { items } = await server.client.list(V1, { namespace })
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c', 'd'])
    server.changeResponse = (response) => ({
      ...response,
      convertedObjects: response.convertedObjects.map((object) => (object.metadata.name === 'd' ? {} : object)),
    })
    expect(await rejection(server.client.list(V1, { namespace }))).toContain('at index 3')
  })

  test.each<[string, (signal: AbortSignal) => Promise<unknown>]>([
    ['list', (signal) => server.client.list(V1, { namespace, signal })],
    [
      'watch',
      async (signal) => {
        const watch = await server.client.watch(V1, { namespace, signal })
        for await (const event of watch) return event
      },
    ],
  ])('are not converted any more when the request of a %s has ended', async (_, read) => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await server.client.create(V2, conv({ width: 1, color: 'x'.repeat(600_000) }, name))
    }
    const request = new AbortController()
    server.changeResponse = (response) => {
      request.abort()
      return response
    }
    expect(await server.callsOf(read(request.signal).catch(() => {}))).toBe(1)
  })

  test('are patched and deleted in a version that is not the storage version', async () => {
    await server.client.create(V2, conv({ width: 1, color: 'blue' }))
    await server.client.patch(V1, at, { type: 'merge', body: { spec: { size: 2 } } })
    expect((await server.client.get(V2, at)).spec).toMatchObject({ width: 2 })
    await server.client.delete(V1, at)
    expect(server.stored()).toBeUndefined()
  })

  test('need a forced apply to take over a field that another manager applied in another version', async () => {
    await server.client.apply(V1, { ...conv({ size: 1 }) }, { fieldManager: 'one' })
    await server.client.patch(V2, at, { type: 'merge', body: { spec: { color: 'green' } } }, { fieldManager: 'two' })
    const conflict = rejection(server.client.apply(V2, { ...conv({ width: 5 }) }, { fieldManager: 'three' }))
    expect(await conflict).toBe('409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.size')
    await server.client.apply(V2, { ...conv({ width: 5 }) }, { fieldManager: 'three', force: true })
    const { metadata, spec } = await server.client.get(V2, at)
    expect(spec).toEqual({ width: 5, color: 'green' })
    expect(metadata.managedFields?.map(({ manager, apiVersion }) => `${manager} ${apiVersion}`)).toEqual([
      `three ${group}/v2`,
      `two ${group}/v2`,
    ])
  })

  test.each(['create', 'change'])('can be applied in a dry run, which stores nothing: %s', async (effect) => {
    if (effect === 'change') await server.client.apply(V2, conv({ width: 1 }), { fieldManager: 'two' })
    const applied = await server.client.apply(V1, conv({ size: 5 }), { fieldManager: 'one', force: true, dryRun: true })
    expect(applied).toMatchObject({ apiVersion: `${group}/v1`, spec: { size: 5 } })
    expect(server.stored()?.spec).toEqual(effect === 'change' ? { width: 1, color: 'red' } : undefined)
  })

  test('lose their labels when the manager of the labels applies the object without labels in another version', async () => {
    const labels = { a: 'b' }
    await server.client.apply(V1, { ...conv({ size: 1 }), metadata: { ...at, labels } }, { fieldManager: 'one' })
    for (const dryRun of [true, false]) {
      const applied = await server.client.apply(V2, conv({ width: 2 }), { fieldManager: 'one', dryRun })
      expect(applied).toMatchObject({ metadata: at, spec: { width: 2 } })
      expect(applied.metadata.labels).toBeUndefined()
    }
  })

  test('are watched in the requested version, with one webhook call for all watchers', async () => {
    await server.client.create(V2, conv({ width: 1 }))
    const end = new AbortController()
    const watches = await Promise.all(
      [1, 2].map(async () => collected(await server.client.watch(V1, { namespace, signal: end.signal }))),
    )
    await quiet()
    const calls = server.callsOf(server.client.patch(V2, at, { type: 'merge', body: { spec: { width: 2 } } }).then(quiet))
    expect(await calls).toBe(1)
    await server.client.delete(V2, at)
    await quiet()
    for (const { seen } of watches) {
      expect(seen.map(({ type, object }) => [type, object.apiVersion, (object as UnknownObject).spec])).toEqual([
        ['ADDED', `${group}/v1`, { size: 1 }],
        ['MODIFIED', `${group}/v1`, { size: 2 }],
        ['DELETED', `${group}/v1`, { size: 2 }],
      ])
    }
    end.abort()
  })

  test('keep their metadata when the webhook changes it, except for labels and annotations', async () => {
    server.changeResponse = (response) => {
      for (const object of response.convertedObjects) {
        object.metadata = {
          ...object.metadata,
          labels: { seen: 'yes' },
          annotations: { a: 'b' },
          generation: 99,
          finalizers: ['x.example.com/y'],
        }
      }
      return response
    }
    const { metadata } = await server.client.create(V1, conv({ size: 3 }))
    expect([metadata.labels, metadata.annotations]).toEqual([{ seen: 'yes' }, { a: 'b' }])
    expect(metadata.generation).toBe(1)
    expect(metadata.finalizers).toBeUndefined()
  })

  const failed = '500 : conversion webhook for t.example.com/v2, Kind=Conv'
  test.each<[title: string, changeResponse: ConvertingServer['changeResponse'], text: string]>([
    ['fails', (r) => ({ ...r, result: { status: 'Failure', message: 'cannot' } }), 'failed: cannot'],
    ['fails without a message', (r) => ({ ...r, result: {} }), "failed: response.result.status was '', not 'Success'"],
    ['returns no objects', (r) => ({ ...r, convertedObjects: [] }), 'returned 0 objects, expected 1'],
    ['responds to another request', (r) => ({ ...r, uid: 'B' }), 'failed: expected response.uid="UID", got "B"'],
    [
      'renames the object',
      (r) => ({
        ...r,
        convertedObjects: r.convertedObjects.map((o) => ({ ...o, metadata: { ...o.metadata, name: 'renamed' } })),
      }),
      'returned invalid object: must have the same name: a != renamed',
    ],
    [
      'returns another kind',
      (r) => ({ ...r, convertedObjects: r.convertedObjects.map((o) => ({ ...o, kind: 'Other' })) }),
      'returned invalid object at index 0: invalid kind (expected Conv, received Other)',
    ],
    [
      'returns the object in the storage version',
      (r) => ({ ...r, convertedObjects: r.convertedObjects.map((o) => ({ ...o, apiVersion: `${group}/v2` })) }),
      'returned invalid object at index 0: invalid groupVersion (expected t.example.com/v1, received t.example.com/v2)',
    ],
  ])('cannot be read through a conversion webhook that %s', async (_, changeResponse, text) => {
    await server.client.create(V2, conv({ width: 1 }))
    server.changeResponse = changeResponse
    const message = await rejection(server.client.get(V1, at))
    expect(message.replace(/uid="[0-9a-f-]{36}"/, 'uid="UID"')).toBe(`${failed} ${text}`)
  })

  test('cannot be created in a dry run through a failing conversion webhook, except in the storage version', async () => {
    server.code = 500
    expect(await rejection(server.client.create(V1, conv({ size: 1 }), { dryRun: true }))).toBe(
      '500 : conversion webhook for t.example.com/v1, Kind=Conv failed: an error on the server ("unknown") has prevented the request from succeeding',
    )
    await server.client.create(V2, conv({ width: 1 }), { dryRun: true })
  })

  test('cannot be read through a failing conversion webhook, except in the storage version', async () => {
    await server.client.create(V2, conv({ width: 1 }))
    server.code = 500
    expect(await rejection(server.client.get(V1, at))).toBe(
      `${failed} failed: an error on the server ("unknown") has prevented the request from succeeding`,
    )
    expect((await server.client.get(V2, at)).spec).toMatchObject({ width: 1 })
  })
})

test.each(['v1', 'v2'] as const)(
  'admission webhooks get the old object of a deletion in the version of their rules (%s)',
  async (version) => {
    const server = await ConvertingServer.make()
    await server.client.create(V1, conv({ size: 1 }))
    await server.client.create(V1, conv({ size: 2 }, 'b'))
    await server.client.create(ValidatingWebhookConfiguration, {
      metadata: { name: 'hook' },
      webhooks: [
        {
          name: 'hook.example.com',
          clientConfig: { url: 'https://127.0.0.1:9443/validate' },
          rules: [{ operations: ['DELETE'], apiGroups: [group], apiVersions: [version], resources: ['convs'] }],
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    })
    await server.client.delete(V1, at)
    await server.client.delete(V2, { namespace, name: 'b' })
    expect(server.reviews.map(({ oldObject, resource }) => [resource.version, oldObject?.apiVersion, oldObject?.spec])).toEqual(
      [1, 2].map((value) => [
        version,
        `${group}/${version}`,
        version === 'v1' ? { size: value } : { width: value, ...(value === 2 ? { color: 'red' } : {}) },
      ]),
    )
  },
)

test('the error of a failed conversion for an admission webhook has its prefix twice, as in upstream', async () => {
  const server = await ConvertingServer.make()
  await server.client.create(ValidatingWebhookConfiguration, {
    metadata: { name: 'hook' },
    webhooks: [
      {
        name: 'hook.example.com',
        clientConfig: { url: 'https://127.0.0.1:9443/validate' },
        rules: [{ operations: ['CREATE'], apiGroups: [group], apiVersions: ['v2'], resources: ['convs'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  })
  server.changeResponse = (r) => ({ ...r, result: { status: 'Failure', message: 'cannot' } })
  const twice = 'Internal error occurred: Internal error occurred'
  expect(await rejection(server.client.create(V1, conv({ size: 1 })))).toBe(
    `500 InternalError: ${twice}: conversion webhook for ${group}/v1, Kind=Conv failed: cannot`,
  )
})

describe('when the storage version changes', () => {
  const migrated = async (conversion: 'Webhook' | 'None') => {
    const server = await ConvertingServer.make('v1', conversion)
    await server.client.create(V1, conv({ size: 1 }))
    const { spec } = convCRD('v2', conversion)
    await server.client.patch(CustomResourceDefinition, { name: `convs.${group}` }, { type: 'merge', body: { spec } })
    await quiet()
    return server
  }

  test('storedVersions lists the old and the new version, and objects stay unchanged until they are written', async () => {
    const server = await migrated('Webhook')
    const { status } = await server.client.get(CustomResourceDefinition, { name: `convs.${group}` })
    expect(status?.storedVersions).toEqual(['v1', 'v2'])
    expect(server.stored()).toMatchObject({ apiVersion: `${group}/v1` })
    expect(await server.callsOf(server.client.get(V1, at))).toBe(0)
    const read = await server.client.get(V2, at)
    expect(read.spec).toMatchObject({ width: 1 })
    await server.client.update(V2, read)
    expect(server.stored()).toMatchObject({ apiVersion: `${group}/v2`, spec: { width: 1 } })
  })

  test('a watch ends', async () => {
    const server = await ConvertingServer.make('v1')
    const watch = collected(await server.client.watch(V1, { namespace, signal: new AbortController().signal }))
    const { spec } = convCRD('v2', 'Webhook')
    await server.client.patch(CustomResourceDefinition, { name: `convs.${group}` }, { type: 'merge', body: { spec } })
    await quiet()
    expect(watch.ended).toBe(true)
  })

  test('without a webhook, fields that the requested version does not have are pruned', async () => {
    const server = await migrated('None')
    const read = (await server.client.get(V2, at)) as KubeObject & { spec?: object }
    expect(read.apiVersion).toBe(`${group}/v2`)
    expect(read.spec).toEqual({})
    expect(server.calls).toEqual([])
  })
})
