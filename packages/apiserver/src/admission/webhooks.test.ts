import {
  ClusterRole,
  ConfigMap,
  createClient,
  CustomResourceDefinition,
  isRecord,
  MutatingWebhookConfiguration,
  Namespace,
  Pod,
  readJSON,
  unknownKind,
  ValidatingWebhookConfiguration,
  type Webhook,
  writeJSON,
} from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  aWidget,
  at,
  namespace,
  quiet,
  rejection,
  testServer,
  type TestServer,
  Widget,
} from '@capstan/kubernetes-kinds/test-server'
import type { WebhookTransport } from './webhook-caller.ts'

interface Received {
  readonly path: string
  readonly timeout: string | null
  readonly request: { readonly [field: string]: any } // oxlint-disable-line typescript/no-explicit-any
}
/** `response` of an AdmissionReview, HTTP status of a failed call, `never` for no reply, or (`raw`) the whole body. */
type Reply = object | number | 'never' | { readonly raw: unknown }

/** An API server whose webhooks are functions, one for each path. Records the requests to them. */
class ServerWithWebhooks implements WebhookTransport {
  readonly received: Received[] = []
  readonly replies = new Map<string, (received: Received) => Reply>()
  hosted!: TestServer

  static async make(): Promise<ServerWithWebhooks> {
    const serverWithWebhooks = new ServerWithWebhooks()
    serverWithWebhooks.hosted = await testServer({ webhooks: { transport: serverWithWebhooks } })
    return serverWithWebhooks
  }

  async post(target: { url: URL }, body: string) {
    const { request } = readJSON(body) as { request: Received['request'] }
    const received = { path: target.url.pathname, timeout: target.url.searchParams.get('timeout'), request }
    this.received.push(received)
    const reply = this.replies.get(received.path)?.(received) ?? { allowed: true }
    if (reply === 'never') return new Promise<never>(() => {})
    if (typeof reply === 'number') return { status: reply, contentType: 'application/json', body: Buffer.from('{}') }
    const review =
      isRecord(reply) && 'raw' in reply
        ? reply.raw
        : { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: request.uid, ...reply } }
    return { status: 200, contentType: 'application/json', body: Buffer.from(writeJSON(review)) }
  }
  close() {}

  async add(type: 'mutating' | 'validating', name: string, reply: (received: Received) => Reply, fields: Partial<Webhook> = {}) {
    this.replies.set(`/${name}`, reply)
    const kind = type === 'mutating' ? MutatingWebhookConfiguration : ValidatingWebhookConfiguration
    const webhook: Webhook = {
      name: `${name}.example.com`,
      clientConfig: { url: `https://127.0.0.1:9443/${name}` },
      rules: [{ operations: ['*'], apiGroups: ['shop.example.com'], apiVersions: ['*'], resources: ['widgets', 'widgets/*'] }],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      ...fields,
    }
    await this.hosted.client.create(kind, { metadata: { name }, webhooks: [webhook] })
  }
}

const patch = (...operations: object[]): Reply => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(writeJSON(operations)).toString('base64'),
})

let hooks: ServerWithWebhooks
beforeEach(async () => {
  hooks = await ServerWithWebhooks.make()
})

const create = (name = 'a', spec: Partial<Widget['spec']> = {}) => hooks.hosted.client.create(Widget, aWidget(name, spec))

describe('a mutating webhook', () => {
  test('changes the written object, and the changed fields get no field manager', async () => {
    await hooks.add('mutating', 'paint', () => patch({ op: 'add', path: '/spec/color', value: 'red' }))
    const created = await create()
    expect(created.spec.color).toBe('red')
    expect(JSON.stringify(created.metadata.managedFields)).not.toContain('f:color')
    expect(await hooks.hosted.client.get(Widget, at('a'))).toEqual(created)
  })

  test('receives the AdmissionReview of a create as from a real server', async () => {
    await hooks.add('mutating', 'look', () => ({ allowed: true }))
    await hooks.hosted.client.create(Widget, aWidget('a'), { fieldManager: 'fm' })
    const { request, timeout } = hooks.received[0]!
    const resource = { group: 'shop.example.com', version: 'v1', resource: 'widgets' }
    const kind = { group: 'shop.example.com', version: 'v1', kind: 'Widget' }
    expect(timeout).toBe('10s')
    expect(request).toMatchObject({
      kind,
      resource,
      requestKind: kind,
      requestResource: resource,
      name: 'a',
      namespace,
      operation: 'CREATE',
      userInfo: { username: 'system:admin', groups: ['system:masters', 'system:authenticated'] },
      object: { metadata: { name: 'a', managedFields: [{ manager: 'fm' }] }, spec: { replicas: 1 } },
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'fm' },
    })
    expect(request.object.metadata).not.toHaveProperty('uid')
    expect(request).not.toHaveProperty('subResource')
  })

  test('receives uid and extra attributes of the user', async () => {
    await hooks.add('mutating', 'look', () => ({ allowed: true }))
    const jane = { name: 'jane', uid: '7', groups: ['ops'], extra: { scopes: ['view', 'edit'] } }
    await createClient(hooks.hosted.server.transport(jane)).create(Widget, aWidget('a'))
    const { name, ...attributes } = jane
    expect(hooks.received[0]!.request['userInfo']).toEqual({ username: name, ...attributes })
  })

  test('may return a long patch: the server yields to the event loop between its operations', async () => {
    let yields = 0
    Object.assign(hooks.hosted.clock, { yieldIfDue: () => void yields++ })
    const free = Array.from({ length: 300 }, (_, index) => ({ op: 'add', path: `/spec/free/k${index}`, value: 1 }))
    await hooks.add('mutating', 'add', () => patch({ op: 'add', path: '/spec/free', value: {} }, ...free))
    const before = yields
    await create()
    expect(yields - before).toBeGreaterThan(300)
  })

  test('receives an object with generateName before its name is generated', async () => {
    await hooks.add('mutating', 'look', () => ({ allowed: true }))
    await hooks.hosted.client.create(Widget, { metadata: { generateName: 'w-', namespace }, spec: { replicas: 1 } })
    expect(hooks.received[0]!.request).not.toHaveProperty('name')
    expect(hooks.received[0]!.request.object.metadata).toMatchObject({ generateName: 'w-' })
  })

  test('cannot add unknown fields or a status, and its result is defaulted', async () => {
    await hooks.add('mutating', 'odd', () =>
      patch(
        { op: 'add', path: '/spec/unheardOf', value: 1 },
        { op: 'remove', path: '/spec/replicas' },
        { op: 'add', path: '/status', value: { phase: 'Done' } },
      ),
    )
    const created = await create('a', { replicas: 5 })
    expect(created.spec).toEqual({ replicas: 1 })
    expect(created.status).toBeUndefined()
  })

  test('whose result violates the schema causes an error', async () => {
    await hooks.add('mutating', 'break', () => patch({ op: 'replace', path: '/spec/replicas', value: 1000 }))
    expect(await rejection(create())).toBe(
      '422 Invalid: Widget.shop.example.com "a" is invalid: spec.replicas: Invalid value: 1000: spec.replicas in body should be less than or equal to 100',
    )
  })

  test('that sets a value of the wrong type in a built-in kind causes an error', async () => {
    const rules = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }]
    await hooks.add('mutating', 'break', () => patch({ op: 'add', path: '/data', value: 5 }), { rules })
    expect(await rejection(hooks.hosted.client.create(ConfigMap, { metadata: at('a') }))).toBe(
      '500 InternalError: Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string',
    )
  })

  test('cannot rename the object', async () => {
    await create('a')
    await hooks.add('mutating', 'rename', () => patch({ op: 'replace', path: '/metadata/name', value: 'b' }))
    const change = hooks.hosted.client.patch(Widget, at('a'), { type: 'merge', body: { spec: { color: 'red' } } })
    expect(await rejection(change)).toBe('400 BadRequest: the name of the object (b) does not match the name on the URL (a)')
  })

  test('is called after those whose configurations have an alphabetically earlier name, and receives their changes', async () => {
    const append = (letter: string) => (received: Received) =>
      patch({ op: 'add', path: '/spec/color', value: `${received.request.object.spec.color ?? ''}${letter}` })
    await hooks.add('mutating', 'b', append('b'))
    await hooks.add('mutating', 'a', append('a'))
    expect((await create()).spec.color).toBe('ab')
  })

  test('with reinvocationPolicy IfNeeded is called again after a later webhook changed the object', async () => {
    const first = (received: Received) =>
      patch({ op: 'add', path: '/spec/color', value: `${received.request.object.spec.color ?? ''}1` })
    await hooks.add('mutating', 'a', first, { reinvocationPolicy: 'IfNeeded' })
    await hooks.add('mutating', 'b', () => patch({ op: 'replace', path: '/spec/replicas', value: 7 }))
    expect((await create()).spec).toEqual({ color: '11', replicas: 7 })
    expect(hooks.received.map(({ path }) => path)).toEqual(['/a', '/b', '/a'])
  })

  test('for the scale subresource receives a Scale, and may change it', async () => {
    await create()
    await hooks.add('mutating', 'scale', () => patch({ op: 'replace', path: '/spec/replicas', value: 3 }), {
      rules: [{ operations: ['UPDATE'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/scale'] }],
    })
    const body = { spec: { replicas: 9 } }
    await hooks.hosted.client.patch(Widget, at('a'), { type: 'merge', body }, { subresource: 'scale' })
    expect((await hooks.hosted.client.get(Widget, at('a'))).spec.replicas).toBe(3)
    expect(hooks.received[0]!.request).toMatchObject({
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      subResource: 'scale',
      object: { kind: 'Scale', spec: { replicas: 9 } },
      oldObject: { kind: 'Scale', spec: { replicas: 1 } },
    })
  })
})

test.each(['mutating', 'validating'] as const)(
  'the server yields to the event loop while it encodes a long object for a %s webhook',
  async (type) => {
    let yields = 0
    Object.assign(hooks.hosted.clock, { yieldIfDue: () => void yields++ })
    const yieldsOf = async (name: string) => {
      const before = yields
      await create(name, { free: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1])) })
      return yields - before
    }
    const withoutWebhook = await yieldsOf('a')
    await hooks.add(type, 'look', () => ({ allowed: true }))
    expect(await yieldsOf('b')).toBeGreaterThan(withoutWebhook + 15)
  },
)

test('a mutating webhook receives and sets integers beyond 2^53 with all digits', async () => {
  const exact = unknownKind({ apiVersion: 'exact.example.com/v1', kind: 'Exact', plural: 'exacts' })
  const properties = { spec: { type: 'object' as const, 'x-kubernetes-preserve-unknown-fields': true } }
  await hooks.hosted.client.create(CustomResourceDefinition, {
    metadata: { name: 'exacts.exact.example.com' },
    spec: {
      group: 'exact.example.com',
      names: { kind: 'Exact', plural: 'exacts' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties } } }],
    },
  })
  await quiet()
  const rules = [{ operations: ['*'], apiGroups: ['exact.example.com'], apiVersions: ['*'], resources: ['exacts'] }]
  const set = ({ request }: Received) => patch({ op: 'add', path: '/spec/next', value: request.object.spec.first - 1n })
  await hooks.add('mutating', 'next', set, { rules })
  const created = await hooks.hosted.client.create(exact, { metadata: at('a'), spec: { first: 2n ** 63n - 1n } })
  expect(created).toMatchObject({ spec: { first: 2n ** 63n - 1n, next: 2n ** 63n - 2n } })
})

describe('a webhook', () => {
  test('is called for creates, updates, status updates and deletions', async () => {
    await hooks.add('validating', 'look', () => ({ allowed: true }))
    const { client } = hooks.hosted
    await create()
    await client.patch(Widget, at('a'), { type: 'merge', body: { spec: { color: 'red' } } }, { fieldManager: 'fm' })
    await client.patch(Widget, at('a'), { type: 'merge', body: { status: { phase: 'x' } } }, { subresource: 'status' })
    await client.delete(Widget, at('a'), { propagationPolicy: 'Background' })
    expect(hooks.received.map(({ request }) => [request.operation, request.subResource, request.options.kind])).toEqual([
      ['CREATE', undefined, 'CreateOptions'],
      ['UPDATE', undefined, 'UpdateOptions'],
      ['UPDATE', 'status', 'UpdateOptions'],
      ['DELETE', undefined, 'DeleteOptions'],
    ])
    const [created, , , deleted] = hooks.received
    expect(created!.request.object.metadata.uid).toBeTruthy()
    expect(deleted!.request).toMatchObject({ object: null, oldObject: { metadata: { name: 'a' } } })
    expect(deleted!.request.options).toMatchObject({ propagationPolicy: 'Background' })
  })

  test('receives one request without a name for each object of a deleted collection', async () => {
    await create('a')
    await create('b')
    await hooks.add('validating', 'look', () => ({ allowed: true }))
    await hooks.hosted.client.deleteCollection(Widget, { namespace })
    expect(hooks.received.map(({ request }) => [request.operation, request.name, request.oldObject?.metadata.name])).toEqual([
      ['DELETE', undefined, 'a'],
      ['DELETE', undefined, 'b'],
    ])
  })

  test('is called for an eviction, and not for the deletion that follows', async () => {
    const { client } = hooks.hosted
    await client.create(Pod, { metadata: at('p'), spec: { containers: [{ name: 'c', image: 'i' }] } })
    const rules = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods', 'pods/*'] }]
    await hooks.add('validating', 'look', () => ({ allowed: true }), { rules })
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: at('p') }
    const pods = { group: '', version: 'v1', plural: 'pods', ...at('p') } as const
    await client.transport.send({ verb: 'create', ...pods, subresource: 'eviction', body })
    expect(hooks.received.map(({ request }) => [request.operation, request.subResource])).toEqual([['CREATE', 'eviction']])
  })

  const denial = 'admission webhook "val.example.com" denied the request'
  const failing = 'Internal error occurred: failed calling webhook "val.example.com": '
  const review = (fields: object) => ({ raw: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', ...fields } })
  test.each<[title: string, reply: (received: Received) => Reply, expected: string]>([
    ['denies without a message', () => ({ allowed: false }), `400 : ${denial} without explanation`],
    ['denies with a message', () => ({ allowed: false, status: { message: 'nope because' } }), `400 : ${denial}: nope because`],
    [
      'denies with code and reason',
      () => ({ allowed: false, status: { message: 'm', code: 409, reason: 'Conflict' } }),
      `409 Conflict: ${denial}: m`,
    ],
    [
      'denies with code and reason, without a message',
      () => ({ allowed: false, status: { reason: 'Forbidden', code: 403 } }),
      `403 Forbidden: ${denial}: Forbidden`,
    ],
    [
      'denies with an unknown reason',
      () => ({ allowed: false, status: { message: 'm', reason: 'constructor' } }),
      `400 : ${denial}: m`,
    ],
    ['denies with code 200', () => ({ allowed: false, status: { code: 200 } }), `400 : ${denial} without explanation`],
    [
      'fails',
      () => 500,
      `500 InternalError: ${failing}failed to call webhook: an error on the server ("unknown") has prevented the request from succeeding`,
    ],
    [
      'is not found',
      () => 404,
      `500 InternalError: ${failing}failed to call webhook: the server could not find the requested resource`,
    ],
    [
      'responds with the uid of another request',
      () => review({ response: { uid: 'B', allowed: true } }),
      `500 InternalError: ${failing}received invalid webhook response: expected response.uid="UID", got "B"`,
    ],
    [
      'responds without a response object',
      () => review({}),
      `500 InternalError: ${failing}received invalid webhook response: webhook response was absent`,
    ],
    [
      'responds with another kind',
      ({ request }) => ({ raw: { apiVersion: 'v1', kind: 'Pod', response: { uid: request.uid, allowed: true } } }),
      `500 InternalError: ${failing}received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v1, Kind=Pod`,
    ],
    [
      'responds without a kind',
      ({ request }) => ({ raw: { apiVersion: 'admission.k8s.io/v1', response: { uid: request.uid, allowed: true } } }),
      `500 InternalError: ${failing}received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1, Kind=`,
    ],
    [
      'is validating and returns a patch',
      () => patch({ op: 'remove', path: '/spec' }),
      `500 InternalError: ${failing}received invalid webhook response: validating webhook may not return response.patch`,
    ],
  ])('that %s prevents the write', async (_, reply, expected) => {
    await hooks.add('validating', 'val', reply)
    const error = await rejection(create())
    expect(error.replace(/uid="[0-9a-f-]{36}"/, 'uid="UID"')).toBe(expected)
    expect(await rejection(hooks.hosted.client.get(Widget, at('a')))).toContain('NotFound')
  })

  // Upstream: the decoder of k8s.io/apiserver, pkg/util/webhook, adds missing fields; VerifyAdmissionResponse checks them only for v1.
  test.each([
    ['apiVersion and kind', {}],
    ['apiVersion', { kind: 'AdmissionReview' }],
    ['kind', { apiVersion: 'admission.k8s.io/v1beta1' }],
  ])('with version v1beta1 may respond without %s', async (_, type) => {
    const reply = () => ({ raw: { ...type, response: { allowed: true } } })
    await hooks.add('validating', 'val', reply, { admissionReviewVersions: ['v1beta1'] })
    expect(await rejection(create())).toBe('accepted')
  })

  // Upstream: VerifyAdmissionResponse in k8s.io/apiserver, pkg/admission/plugin/webhook/request.
  test.each([
    ['without a type', undefined],
    ['with the type JSONPatch', 'JSONPatch'],
    ['with the type Merge', 'Merge'],
  ])('with version v1beta1 may return a JSON patch %s', async (_, patchType) => {
    const operations = writeJSON([{ op: 'add', path: '/spec/color', value: 'red' }])
    const response = { allowed: true, patchType, patch: Buffer.from(operations).toString('base64') }
    await hooks.add('mutating', 'mut', () => ({ raw: { response } }), { admissionReviewVersions: ['v1beta1'] })
    expect((await create()).spec.color).toBe('red')
  })

  test.each<[title: string, reply: () => Reply, text: string]>([
    [
      'a patch without its type',
      () => ({ allowed: true, patch: 'W10=' }),
      'failed calling webhook "mut.example.com": received invalid webhook response: webhook returned response.patch but not response.patchType',
    ],
    [
      'a patch that does not apply',
      () => patch({ op: 'replace', path: '/spec/none/x', value: 1 }),
      'replace operation does not apply: doc is missing path: /spec/none/x: missing value',
    ],
    [
      'a patch that is not JSON',
      () => ({ allowed: true, patch: Buffer.from('{').toString('base64'), patchType: 'JSONPatch' }),
      'failed calling webhook "mut.example.com": received undecodable patch in webhook response: unexpected end of JSON input',
    ],
    [
      'a patch that is not a list',
      () => ({ allowed: true, patch: Buffer.from('{}').toString('base64'), patchType: 'JSONPatch' }),
      'failed calling webhook "mut.example.com": received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch',
    ],
    [
      'a patch that is neither a list nor an object',
      () => ({ allowed: true, patch: Buffer.from('true').toString('base64'), patchType: 'JSONPatch' }),
      'failed calling webhook "mut.example.com": received undecodable patch in webhook response: json: cannot unmarshal bool into Go value of type jsonpatch.Patch',
    ],
    [
      'a patch of another type',
      () => ({ allowed: true, patch: 'W10=', patchType: 'Merge' }),
      'failed calling webhook "mut.example.com": received invalid webhook response: unsupported patch type "Merge"',
    ],
  ])('that returns %s causes an internal error', async (_, reply, text) => {
    await hooks.add('mutating', 'mut', reply)
    expect(await rejection(create())).toBe(`500 InternalError: Internal error occurred: ${text}`)
  })

  test('that is unresponsive causes a timeout without delaying other requests', async () => {
    await hooks.add('validating', 'slow', () => 'never', { timeoutSeconds: 2 })
    const waiting = rejection(create())
    await quiet()
    await hooks.hosted.client.create(ConfigMap, { metadata: { name: 'other', namespace } })
    hooks.hosted.clock.step(hooks.hosted.clock.now() + 2000)
    expect(await waiting).toBe(
      '500 InternalError: Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post "https://127.0.0.1:9443/slow?timeout=2s": context deadline exceeded',
    )
  })

  test('with failurePolicy Ignore may fail, but its denial rejects the write', async () => {
    let reply: Reply = 500
    await hooks.add('validating', 'lax', () => reply, { failurePolicy: 'Ignore' })
    await create()
    reply = { allowed: false }
    expect(await rejection(create('b'))).toContain('denied the request')
  })

  test('behind a Service cannot be reached without a resolver', async () => {
    const clientConfig = { service: { namespace: 'n', name: 's', path: '/v' } }
    await hooks.add('validating', 'svc', () => ({ allowed: true }), { clientConfig })
    expect(await rejection(create())).toContain('Post "https://s.n.svc:443/v?timeout=10s": service "s" cannot be reached')
  })

  test('may return warnings', async () => {
    await hooks.add('validating', 'warn', () => ({ allowed: true, warnings: ['mind the gap'] }))
    const { version, group, plural } = Widget
    const response = await hooks.hosted.server.engine.execute(
      {
        verb: 'create',
        group,
        version,
        plural,
        namespace,
        body: { apiVersion: `${group}/${version}`, kind: 'Widget', ...aWidget('a') },
      },
      { name: 'u', groups: [], agent: 'test' },
    )
    expect(response.warnings).toEqual(['mind the gap'])
  })

  test('without side effects is called for dry runs', async () => {
    await hooks.add('validating', 'dry', () => ({ allowed: true }))
    await hooks.hosted.client.create(Widget, aWidget('a'), { dryRun: true })
    expect(hooks.received[0]!.request).toMatchObject({ dryRun: true, options: { dryRun: ['All'] } })
  })

  test('is not called for webhook configurations, so that they can be repaired', async () => {
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }]
    await hooks.add('validating', 'all', () => ({ allowed: false }), { rules })
    await hooks.hosted.client.delete(ValidatingWebhookConfiguration, { name: 'all' })
    await create()
    expect(hooks.received).toEqual([])
  })

  test.each<[title: string, expression: string, fields: Partial<Webhook>, expected: string]>([
    ['about the object, true', 'object.spec.replicas > 3', {}, 'denied the request'],
    ['about the object, false', 'object.spec.replicas > 7', {}, 'accepted'],
    ['about a label', 'has(object.metadata.labels) && object.metadata.labels["a-b/c"] == "d"', {}, 'accepted'],
    ['about the options', 'has(request.options.fieldManager)', {}, 'accepted'],
    ['about the user', '!("system:masters" in request.userInfo.groups)', {}, 'accepted'],
    ['about the Namespace object', 'namespaceObject.metadata.name == "elsewhere"', {}, 'accepted'],
    ['about permissions', "authorizer.requestResource.check('create').allowed()", {}, 'denied the request'],
    [
      'about the permissions of a service account',
      "authorizer.serviceAccount('a', 'b').path('/x').check('get').allowed()",
      {},
      'denied the request',
    ],
    [
      'about more permissions than the cost limit allows',
      "[1, 2, 3].all(x, authorizer.group('').resource('pods').check('get').allowed())",
      {},
      'validation failed due to running out of cost budget',
    ],
    ['about the namespace of the request', 'has(request.namespace) && request.namespace == "default"', {}, 'denied the request'],
    ['that names a namespace other than that of the request', 'request.namespace == "elsewhere"', {}, 'accepted'],
    ['about the operation', 'request.operation == "CREATE" && oldObject == null', {}, 'denied the request'],
    [
      'that fails',
      'object.spec.nothing == 1',
      {},
      `403 Forbidden: widgets.shop.example.com "a" is forbidden: expression 'object.spec.nothing == 1' resulted in error: no such key: nothing`,
    ],
    ['that fails, with failurePolicy Ignore', 'object.spec.nothing == 1', { failurePolicy: 'Ignore' }, 'accepted'],
  ])('is called depending on a match condition %s', async (_, expression, fields, expected) => {
    await hooks.add('validating', 'cel', () => ({ allowed: false }), { matchConditions: [{ name: 'c', expression }], ...fields })
    expect(await rejection(create('a', { replicas: 5 }))).toContain(expected)
    expect(hooks.received).toHaveLength(expected === 'denied the request' ? 1 : 0)
  })

  // Upstream: the namespace of a request for a Namespace is the name of the Namespace.
  test('for a Namespace receives its name as name and as namespace; for other cluster-scoped objects, no namespace', async () => {
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['namespaces', 'clusterroles'] }]
    await hooks.add('validating', 'look', () => ({ allowed: true }), { rules })
    await hooks.hosted.client.create(Namespace, { metadata: { name: 'a' } })
    await hooks.hosted.client.create(ClusterRole, { metadata: { name: 'b' }, rules: [] })
    expect(hooks.received.map(({ request }) => [request['name'], request['namespace']])).toEqual([
      ['a', 'a'],
      ['b', undefined],
    ])
  })

  test('is called only in the selected namespaces', async () => {
    const namespaceSelector = { matchLabels: { team: 'a' } }
    await hooks.add('validating', 'ns', () => ({ allowed: false }), { namespaceSelector })
    await create()
    await hooks.hosted.client.patch(
      Namespace,
      { name: namespace },
      { type: 'merge', body: { metadata: { labels: { team: 'a' } } } },
    )
    expect(await rejection(create('b'))).toContain('denied the request')
  })
})
