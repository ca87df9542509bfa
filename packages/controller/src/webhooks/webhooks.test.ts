import {
  admission,
  type ConversionContext,
  defineKind,
  forbidden,
  invalid,
  type KubeObject,
  type Reader,
  s,
  StatusError,
  unknownKind,
} from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { admissionPath, webhookHandler } from './handler.ts'

const Old = defineKind({
  group: 'shop.example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: s.object({ size: s.int32().optional() }),
})
const Older = { ...Old, version: 'v0' }
const Widget = defineKind({
  group: 'shop.example.com',
  version: 'v2',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  spec: s.object({ width: s.int32().optional() }),
  versions: [
    {
      kind: Old,
      /** Removes the labels. */
      toStored({ metadata, spec }: { spec?: { size?: number } } & KubeObject) {
        const { labels: _, ...withoutLabels } = metadata
        return { metadata: withoutLabels, spec: { width: spec!.size! * 10 } }
      },
      fromStored: ({ spec }: { spec?: { width?: number } } & KubeObject) => ({ spec: { size: spec!.width! / 10 } }),
    },
    {
      kind: Older,
      toStored() {
        throw new Error('v0 is no longer supported')
      },
      fromStored: () => ({ spec: {} }),
    },
    {
      kind: { ...Old, version: 'v0alpha1' },
      toStored: () => ({}),
      /** Requests the version of a kind that `references` does not return. */
      fromStored: (_: KubeObject, { apiVersionOf }: ConversionContext) => ({
        spec: { shelf: apiVersionOf({ group: 'shop.example.com', kind: 'Shelf' }) },
      }),
    },
  ] as never,
})
type Sized = KubeObject & { spec: { width?: number } }

/** Kinds with the plural of Widget. Their schemas allow no Widget, because they require `spec.depth`. */
const namesakes = [
  { group: 'other.example.com', version: 'v2' },
  { group: 'shop.example.com', version: 'v3' },
].map((groupVersion) =>
  defineKind({
    ...groupVersion,
    kind: 'Widget',
    plural: 'widgets',
    scope: 'Namespaced',
    spec: s.object({ depth: s.int32() }),
  }),
)

const handle = webhookHandler({
  kinds: [...namesakes, Widget],
  admission: {
    reader: {} as Reader,
    of: [
      admission<Sized>({
        kind: Widget as never,
        default(widget, { warn }) {
          if (widget.metadata.name === 'unlucky') throw new Error('out of luck')
          widget.spec.width ??= 1
          if (widget.spec.width > 10) warn('wide')
        },
        validate: ({ spec }) => (spec.width! < 0 ? [invalid('spec.width', spec.width, 'must not be negative')] : []),
      }),
      admission<Sized>({
        kind: Widget as never,
        operations: ['DELETE'],
        validate: ({ metadata }) => (metadata.name === 'kept' ? [forbidden('metadata.name', 'it is needed')] : []),
      }),
      admission<Sized>({
        kind: Widget as never,
        validate({ metadata }) {
          if (metadata.name === 'conflict') throw new StatusError('Conflict', 'the object has been modified')
          if (metadata.name === 'broken') throw new Error('out of order')
          return []
        },
      }),
    ],
  },
})

interface ReviewResponse {
  response: { uid: string; allowed?: boolean; patch?: string; warnings?: string[]; status?: { code: number; message: string } }
}
const post = (path: string, body: string) =>
  handle(new Request(`https://h${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }))
const postReview = async (path: string, request: object) => {
  const response = await post(path, JSON.stringify({ request: { uid: 'u', ...request } }))
  return (await response.json()) as ReviewResponse & { response: { convertedObjects?: unknown[]; result?: object } }
}
const widget = (name: string, spec: object = {}, version = 'v2') => ({
  apiVersion: `shop.example.com/${version}`,
  kind: 'Widget',
  metadata: { name, namespace: 'default' },
  spec,
})

describe('admission', () => {
  const validate = async (operation: string, name: string, width: number) => {
    const object = widget(name, { width })
    const objects = operation === 'DELETE' ? { object: null, oldObject: object } : { object, oldObject: object }
    return (await postReview('/validate-shop-example-com-v2-widget', { operation, ...objects })).response
  }

  test('returns defaults as a patch, and returns warnings', async () => {
    const path = '/mutate-shop-example-com-v2-widget'
    const { response } = await postReview(path, { operation: 'CREATE', object: widget('a') })
    expect({ ...response, patch: JSON.parse(atob(response.patch!)) }).toEqual({
      uid: 'u',
      allowed: true,
      patchType: 'JSONPatch',
      patch: [{ op: 'add', path: '/spec/width', value: 1 }],
    })
    const wide = await postReview(path, { operation: 'UPDATE', object: widget('a', { width: 11 }), oldObject: widget('a') })
    expect(wide.response).toEqual({ uid: 'u', allowed: true, warnings: ['wide'] })
  })

  test('when defaulting fails, allows an object that violates the schema, because the API server rejects it, and reports the error for another object', async () => {
    const { spec: _, ...bare } = widget('a')
    const path = '/mutate-shop-example-com-v2-widget'
    expect((await postReview(path, { operation: 'CREATE', object: bare })).response).toEqual({ uid: 'u', allowed: true })
    const broken = await postReview(path, { operation: 'CREATE', object: widget('unlucky') })
    expect(broken.response.status?.message).toBe('out of luck')
  })

  test.each([
    ['CREATE', 'a', 1],
    ['CREATE', 'kept', 1],
    ['DELETE', 'a', -1],
  ])('allows %s of %s with width %i', async (operation, name, width) => {
    const response = await validate(operation, name, width)
    expect([response.allowed, response.status]).toEqual([true, undefined])
  })

  test.each([
    ['CREATE', 'a', -1, 'Widget.shop.example.com "a" is invalid: spec.width: Invalid value: -1: must not be negative'],
    ['DELETE', 'kept', 1, 'Widget.shop.example.com "kept" is invalid: metadata.name: Forbidden: it is needed'],
    ['UPDATE', 'conflict', 1, 'the object has been modified'],
    ['UPDATE', 'broken', 1, 'out of order'],
  ])('rejects %s of %s with width %i: %s', async (operation, name, width, message) => {
    const response = await validate(operation, name, width)
    expect([response.allowed, response.status?.message]).toEqual([false, message])
  })

  test('uses the paths of upstream', () => {
    const kind = unknownKind({ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', plural: 'machinesets' })
    const admitted = { kind, admissions: [] }
    expect(admissionPath('default', admitted)).toBe('/mutate-cluster-x-k8s-io-v1beta2-machineset')
    expect(admissionPath('validate', admitted)).toBe('/validate-cluster-x-k8s-io-v1beta2-machineset')
  })
})

describe('conversion', () => {
  const convert = async (version: string, ...objects: object[]) =>
    (await postReview('/convert', { desiredAPIVersion: `shop.example.com/${version}`, objects })).response

  test('converts to newer, older and the same version', async () => {
    const old = widget('a', { size: 2 }, 'v1')
    const stored = widget('a', { width: 20 })
    expect(await convert('v2', old, stored)).toEqual({
      uid: 'u',
      convertedObjects: [stored, stored],
      result: { status: 'Success' },
    })
    expect((await convert('v1', stored)).convertedObjects).toEqual([old])
    expect((await convert('v0', old)).convertedObjects).toEqual([widget('a', {}, 'v0')])
  })

  test('keeps the metadata that the conversion to the stored version returns', async () => {
    const old = widget('a', { size: 2 }, 'v1')
    const labelled = { ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }
    expect((await convert('v0', labelled)).convertedObjects).toEqual([widget('a', {}, 'v0')])
  })

  test('converts a list that is larger than the limit of an AdmissionReview', async () => {
    const annotations = { long: 'x'.repeat(16 * 1024) }
    const objects = Array.from({ length: 500 }, (_, index) => {
      const object = widget(`w${index}`, { width: 20 })
      return { ...object, metadata: { ...object.metadata, annotations } }
    })
    expect((await convert('v1', ...objects)).convertedObjects).toHaveLength(500)
  })

  test.each([
    ['v3', widget('a'), 'Widget of shop.example.com/v2 cannot be converted to shop.example.com/v3'],
    ['v2', widget('a', {}, 'v9'), 'Widget of shop.example.com/v9 cannot be converted to shop.example.com/v2'],
    ['v2', widget('a', {}, 'v0'), 'v0 is no longer supported'],
    ['v0alpha1', widget('a'), 'references() of Widget shop.example.com/v0alpha1 does not return Shelf.shop.example.com'],
  ])('to %s fails with the reason if it is impossible', async (version, object, message) => {
    expect(await convert(version, object)).toEqual({ uid: 'u', convertedObjects: [], result: { status: 'Failure', message } })
  })
})

test('a request to another path is rejected with 404', async () => {
  const response = await post('/elsewhere', '{}')
  expect([response.status, await response.text()]).toEqual([404, '404 page not found\n'])
})

// The expected responses are those of controller-runtime v0.24.1.
describe('a request that is not a complete AdmissionReview', () => {
  const [mutate, validate] = ['/mutate-shop-example-com-v2-widget', '/validate-shop-example-com-v2-widget'] as const
  const json = { 'content-type': 'application/json' }
  const notReviewed = (code: number, message: string) => ({
    response: { uid: '', allowed: false, status: { metadata: {}, message, code } },
  })
  const reviewed = (uid: string, message: string) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed: false, status: { metadata: {}, message, code: 400 } },
  })
  const tooLarge = 'request entity is too large; limit is 7340032 bytes'
  const notJSON = "couldn't get version/kind; json parse error: "
  const notObject =
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
  const notRequest = 'Go struct field unversionedAdmissionReview.AdmissionReview.request of type v1.AdmissionRequest'

  test.each([
    ['no body', { method: 'GET' }, notReviewed(400, 'request body is empty')],
    ['an empty body', { body: '', headers: json }, notReviewed(400, 'request body is empty')],
    ['no content type', { body: new Blob(['{}']) }, notReviewed(400, 'contentType=, expected application/json')],
    [
      'another content type',
      { body: '{}', headers: { 'content-type': 'application/json; charset=utf-8' } },
      notReviewed(400, 'contentType=application/json; charset=utf-8, expected application/json'),
    ],
    ['a body as large as the limit', { body: ' '.repeat(7 * 1024 * 1024), headers: json }, notReviewed(413, tooLarge)],
    ['a truncated object', { body: '{', headers: json }, notReviewed(400, `${notJSON}unexpected end of JSON input`)],
    [
      'text after the object',
      { body: '{"request":{}} x', headers: json },
      notReviewed(400, `${notJSON}invalid character 'x' after top-level value`),
    ],
    ['a list', { body: '[]', headers: json }, notReviewed(400, `${notJSON}json: cannot unmarshal array into ${notObject}`)],
    ['plain text', { body: 'x', headers: json }, notReviewed(400, `${notJSON}json: cannot unmarshal string into ${notObject}`)],
    [
      'a `request` of another type',
      { body: '{"request":1}', headers: json },
      notReviewed(400, `json: cannot unmarshal number into ${notRequest}`),
    ],
  ])('with %s is rejected by the mutating and the validating webhook', async (_, init, expected) => {
    for (const path of [mutate, validate]) {
      const response = await handle(new Request(`https://h${path}`, { method: 'POST', ...init }))
      expect([response.status, await response.json()]).toEqual([200, expected])
    }
  })

  const noContent = 'there is no content to decode'
  test.each([
    [validate, '{}', reviewed('', 'unknown operation ""')],
    [validate, 'null', reviewed('', 'unknown operation ""')],
    [validate, '{"request":null}', reviewed('', 'unknown operation ""')],
    [validate, '{"request":{"uid":"u","operation":"NO"}}', reviewed('u', 'unknown operation "NO"')],
    [validate, '{"request":{"uid":"u","operation":"CREATE"}}', reviewed('u', noContent)],
    [validate, '{"request":{"uid":"u","operation":"DELETE","oldObject":null}}', reviewed('u', noContent)],
    [validate, '{"request":{"uid":"u","operation":"UPDATE","object":{"metadata":{}}}}', reviewed('u', noContent)],
    [mutate, '{}', reviewed('', noContent)],
    [mutate, '{"request":{"uid":"u","operation":"CREATE"}}', reviewed('u', noContent)],
  ])('%s rejects %s', async (path, body, expected) => {
    const response = await post(path, body)
    expect([response.status, await response.json()]).toEqual([200, expected])
  })

  test('is allowed by the mutating webhook for a deletion', async () => {
    const { response } = await postReview(mutate, { operation: 'DELETE' })
    expect(response).toEqual({ uid: 'u', allowed: true })
  })
})

test.each([
  [400, 'there is no valid request in the body', ''],
  [400, 'there is no valid request in the body', 'null'],
  [400, 'there is no valid request in the body', '{}'],
  [400, 'there is no valid request in the body', '{"request": 1}'],
  [400, 'there is no valid request in the body', '{"request": {"objects": 1}}'],
  [400, 'the body is not JSON', '{'],
  [413, 'request entity is too large; limit is 67108864 bytes', ' '.repeat(64 * 1024 * 1024 + 1)],
])('a conversion is rejected with %i: %s', async (status, text, body) => {
  const response = await post('/convert', body)
  expect(response.status).toBe(status)
  expect(await response.text()).toContain(text)
})

test('a conversion without objects succeeds', async () => {
  const { response } = await postReview('/convert', { desiredAPIVersion: 'shop.example.com/v1' })
  expect(response).toEqual({ uid: 'u', convertedObjects: [], result: { status: 'Success' } })
})
