import { admission, ConfigMap, invalid, Namespace, Pod, Secret } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { at, aWidget, namespace, rejection, type TestServer, testServer, Widget } from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

describe('a create', () => {
  test('returns the stored object with the fields that the server sets', async () => {
    const created = await t.client.create(Widget, aWidget('w', { color: 'red' }))
    expect(created).toMatchObject({
      apiVersion: 'shop.example.com/v1',
      kind: 'Widget',
      metadata: { name: 'w', namespace, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { replicas: 1, color: 'red' },
    })
    expect(created.metadata.managedFields).toMatchObject([
      { manager: 'test', operation: 'Update', fieldsV1: { 'f:spec': { '.': {}, 'f:color': {}, 'f:replicas': {} } } },
    ])
    expect(await t.client.get(Widget, at('w'))).toBe(created)
    expect(Object.isFrozen(created.spec)).toBe(true)
  })

  test('does not change the given object', async () => {
    const object = Object.freeze({ metadata: Object.freeze({ name: 'w', namespace }), spec: Object.freeze({ replicas: 3 }) })
    await t.client.create(Widget, object)
    expect(object).toEqual({ metadata: { name: 'w', namespace }, spec: { replicas: 3 } })
  })

  test('counts the bytes of annotations, not their characters', async () => {
    const annotations = { a: 'é'.repeat(140_000) }
    expect(await rejection(t.client.create(ConfigMap, { metadata: { ...at('c'), annotations } }))).toContain(
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    )
  })

  test('drops the status of a custom resource, and replaces the status of a Pod with the initial status', async () => {
    const widget = await t.client.create(Widget, { ...aWidget('w'), status: { phase: 'Given' } })
    const pod = await t.client.create(Pod, {
      metadata: at('p'),
      spec: { containers: [{ name: 'c', image: 'i' }] },
      status: { phase: 'Running' },
    })
    expect([widget.status, pod.status]).toEqual([undefined, { phase: 'Pending', qosClass: 'BestEffort' }])
  })

  test('moves stringData of a secret to data', async () => {
    const secret = await t.client.create(Secret, { metadata: at('s'), stringData: { k: 'grüße' }, data: { b: 'Yg==' } })
    expect(secret).toMatchObject({ type: 'Opaque', data: { b: 'Yg==', k: 'Z3LDvMOfZQ==' } })
    expect(secret).not.toHaveProperty('stringData')
  })

  test('generates a name from generateName', async () => {
    const { metadata } = await t.client.create(ConfigMap, { metadata: { generateName: 'gen-', namespace } })
    expect(metadata.name).toMatch(/^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  })

  test('fails when each generated name is taken', async () => {
    const { client } = await testServer({ random: { next: () => 0.5 } })
    const createGenerated = () => client.create(ConfigMap, { metadata: { generateName: 'g-', namespace } })
    await createGenerated()
    expect(await rejection(createGenerated())).toMatch(
      /^409 AlreadyExists: configmaps "g-.{5}" already exists, the server was not able to generate a unique name for the object$/,
    )
  })

  test('as a dry run accepts a resourceVersion', async () => {
    const copied = aWidget('dry', {}, { resourceVersion: '5' })
    expect((await t.client.create(Widget, copied, { dryRun: true })).metadata.resourceVersion).toBe('5')
  })

  test('as a dry run returns the object and does not store it', async () => {
    const { revision } = t.server.store
    const result = await t.client.create(Widget, aWidget('dry'), { dryRun: true })
    expect(result).toMatchObject({ metadata: { generation: 1 }, spec: { replicas: 1 } })
    expect(result.metadata.uid).toBeTruthy()
    expect(result.metadata.resourceVersion).toBeUndefined()
    expect(t.server.store.revision).toBe(revision)
  })

  test('is rejected in a namespace that is being deleted', async () => {
    await t.client.create(Namespace, { metadata: { name: 'going', finalizers: ['example.com/hold'] } })
    await t.client.delete(Namespace, { name: 'going' })
    expect(await rejection(t.client.create(ConfigMap, { metadata: { name: 'c', namespace: 'going' } }))).toBe(
      '403 Forbidden: configmaps "c" is forbidden: unable to create new content in namespace going because it is being terminated',
    )
  })
})

describe('a create is rejected', () => {
  const subdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

  test.each([
    [
      'in a missing namespace',
      { metadata: { name: 'w', namespace: 'nope' }, spec: {} },
      '404 NotFound: namespaces "nope" not found',
    ],
    [
      'with an invalid name',
      aWidget('UP'),
      `422 Invalid: Widget.shop.example.com "UP" is invalid: metadata.name: Invalid value: "UP": ${subdomain}`,
    ],
    [
      'without a name',
      { metadata: { namespace }, spec: {} },
      '422 Invalid: Widget.shop.example.com "" is invalid: metadata.name: Required value: name or generateName is required',
    ],
    [
      'with a resourceVersion',
      aWidget('w', {}, { resourceVersion: '5' }),
      '500 : resourceVersion should not be set on objects to be created',
    ],
    [
      'with a resourceVersion and an invalid spec, and the error names only the spec',
      aWidget('w', { replicas: 101 }, { resourceVersion: '5' }),
      '422 Invalid: Widget.shop.example.com "w" is invalid: spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal to 100',
    ],
    [
      'with a value of a wrong type',
      aWidget('w', { replicas: 'x' as never }),
      '422 Invalid: Widget.shop.example.com "w" is invalid: [spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string", .spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64]',
    ],
    [
      'with a value out of bounds',
      aWidget('w', { replicas: 101 }),
      '422 Invalid: Widget.shop.example.com "w" is invalid: spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal to 100',
    ],
    [
      'with a wrong type in metadata',
      aWidget('w', {}, { labels: { a: 1 as never } }),
      '400 BadRequest: Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
    ],
    [
      'with two controller references',
      aWidget(
        'w',
        {},
        { ownerReferences: ['x', 'y'].map((name) => ({ apiVersion: 'v1', kind: 'K', name, uid: name, controller: true })) },
      ),
      '422 Invalid: Widget.shop.example.com "w" is invalid: metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"K","name":"x","uid":"x","controller":true},{"apiVersion":"v1","kind":"K","name":"y","uid":"y","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for K/x and K/y',
    ],
  ])('%s', async (_, object, text) => {
    expect(await rejection(t.client.create(Widget, object as never))).toBe(text)
  })

  test('when the object exists', async () => {
    await t.client.create(Widget, aWidget('w'))
    expect(await rejection(t.client.create(Widget, aWidget('w')))).toBe(
      '409 AlreadyExists: widgets.shop.example.com "w" already exists',
    )
  })

  test('when a built-in kind gets a value of a wrong type', async () => {
    expect(await rejection(t.client.create(ConfigMap, { metadata: at('c'), data: 5 as never }))).toBe(
      '400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string',
    )
  })
})

test.each([
  [{ creationTimestamp: 'bad' }, 'parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006"'],
  [{ deletionTimestamp: '2020-01-01' }, 'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'],
  [{ creationTimestamp: 5 }, /^json: cannot unmarshal number into /],
])('an object with %j is rejected', async (metadata, problem) => {
  const error = await rejection(t.client.create(ConfigMap, { metadata: { ...at('c'), ...metadata } as never }))
  const [, text] = /^400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: (.*)$/.exec(error) ?? []
  expect(text).toEqual(typeof problem === 'string' ? problem : expect.stringMatching(problem))
})

test('a finalizer without a domain, unless it is one of Kubernetes, causes a warning for the write that adds it to a custom resource', async () => {
  const executeWrite = async (verb: 'create' | 'update', metadata: object) => {
    const type = { apiVersion: 'shop.example.com/v1', kind: 'Widget' }
    const body = { ...type, ...aWidget('w'), metadata: { ...at('w'), ...metadata } }
    const nameField = verb === 'update' ? { name: 'w' } : {}
    const request = { verb, group: 'shop.example.com', version: 'v1', plural: 'widgets', namespace, ...nameField, body } as const
    return t.server.engine.execute(request, { name: 'me', groups: [], agent: 'test' })
  }
  const created = await executeWrite('create', { finalizers: ['plain', 'example.com/hold', 'orphan'] })
  const text = (name: string) =>
    `metadata.finalizers: "${name}": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`
  expect(created.warnings).toEqual([text('plain')])
  const { resourceVersion } = (created.body as Widget).metadata
  expect((await executeWrite('update', { resourceVersion, finalizers: ['plain', 'other'] })).warnings).toEqual([text('other')])
})

describe('unknown fields', () => {
  const body = {
    apiVersion: 'shop.example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', bogus: 1 },
    spec: { wat: 1 },
    extra: 1,
  }
  const send = (fieldValidation?: 'Strict' | 'Warn' | 'Ignore') =>
    t.server.engine.execute(
      {
        verb: 'create',
        group: 'shop.example.com',
        version: 'v1',
        plural: 'widgets',
        namespace,
        body,
        options: fieldValidation ? { fieldValidation } : {},
      },
      { name: 'me', groups: [], agent: 'test' },
    )

  test.each([
    [undefined, ['unknown field "metadata.bogus"', 'unknown field "extra"', 'unknown field "spec.wat"']],
    ['Ignore', []],
  ] as const)('are dropped with field validation %s, with warnings %j', async (mode, warnings) => {
    const response = await send(mode)
    expect(response).toMatchObject({ code: 201, warnings, body: { spec: { replicas: 1 } } })
    expect(response.body).not.toHaveProperty('extra')
    expect(response.body).not.toHaveProperty('metadata.bogus')
    expect(response.body).not.toHaveProperty('spec.wat')
  })

  test('are rejected with field validation Strict, and the error names all of them', async () => {
    expect(await rejection(send('Strict'))).toBe(
      '400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.bogus", unknown field "extra", unknown field "spec.wat"',
    )
  })
})

test('mutating admission does not see the uid and the times that the client set', async () => {
  const seen: object[] = []
  const look = admission({
    kind: Widget,
    default({ metadata: { uid, creationTimestamp, deletionTimestamp } }) {
      seen.push({ uid, creationTimestamp, deletionTimestamp })
    },
  })
  const { client } = await testServer({ admission: [look] })
  const time = '2020-01-01T00:00:00Z'
  await client.create(Widget, aWidget('w', {}, { uid: 'mine', creationTimestamp: time, deletionTimestamp: time }))
  expect(seen).toEqual([{}])
})

test('admission without a validation function sets defaults', async () => {
  const defaults = admission({
    kind: Widget,
    default(widget) {
      widget.spec.color ??= 'blue'
    },
  })
  const { client } = await testServer({ admission: [defaults] })
  expect((await client.create(Widget, aWidget('w'))).spec.color).toBe('blue')
})

test('admission sets defaults that no field manager owns, returns warnings, and rejects invalid objects', async () => {
  const rules = admission({
    kind: Widget,
    default(widget) {
      widget.spec.color ??= 'blue'
    },
    validate(widget, request) {
      if (widget.spec.color === 'beige') request.warn('beige is going out of fashion')
      return widget.spec.color === 'pink' && request.operation === 'CREATE'
        ? [invalid('spec.color', 'pink', 'must not be pink')]
        : []
    },
  })
  const { server, client } = await testServer({ admission: [rules] })
  const created = await client.create(Widget, aWidget('w'))
  expect(created.spec.color).toBe('blue')
  expect(JSON.stringify(created.metadata.managedFields)).not.toContain('f:color')
  expect(await rejection(client.create(Widget, aWidget('p', { color: 'pink' })))).toBe(
    '422 Invalid: Widget.shop.example.com "p" is invalid: spec.color: Invalid value: "pink": must not be pink',
  )
  const request = { verb: 'create', group: 'shop.example.com', version: 'v1', plural: 'widgets', namespace } as const
  const body = { apiVersion: 'shop.example.com/v1', kind: 'Widget', ...aWidget('b', { color: 'beige' }) }
  expect(await server.engine.execute({ ...request, body }, { name: '', groups: [], agent: '' })).toMatchObject({
    warnings: ['beige is going out of fashion'],
  })
})
