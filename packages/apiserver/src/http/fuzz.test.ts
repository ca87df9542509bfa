/**
 * Sends unusual requests, many of them mutated from realistic ones, and expects responses without an internal error. `CAPSTAN_FUZZ=100`
 * sends a hundred times as many requests; a failure prints its seed.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Logger, seededRandom, silent, VirtualClock } from '@capstan/kube'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApiServer, type ApiServer } from '@capstan/kubernetes-kinds'
import type { Identity } from '../auth/authenticate.ts'
import type { HttpHandler, HttpRequest } from './exchange.ts'
import { createHandler } from './handler.ts'

const runFactor = Number(process.env.CAPSTAN_FUZZ ?? 1)
const runs = {
  seed: runFactor === 1 ? 1 : Date.now() % 2 ** 31,
  numRuns: 150 * runFactor,
  interruptAfterTimeLimit: 600_000 * runFactor,
}
const admin: Identity = { kind: 'user', name: 'admin', groups: ['system:masters'] }

const gadgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.shop.example.com' },
  spec: {
    group: 'shop.example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.replicas' }],
        selectableFields: [{ jsonPath: '.spec.color' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                'x-kubernetes-validations': [
                  { rule: 'self.replicas <= 10 || has(self.color)', message: 'too many', fieldPath: '.replicas' },
                ],
                properties: {
                  replicas: { type: 'integer', minimum: 0, default: 1 },
                  color: { type: 'string', pattern: '^[a-z]+$', maxLength: 20 },
                  when: { type: 'string', format: 'date-time', nullable: true },
                  port: { 'x-kubernetes-int-or-string': true },
                  tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
                  parts: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: { name: { type: 'string' }, size: { type: 'number', default: 2.5 } },
                    },
                  },
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  labels: { type: 'object', additionalProperties: { type: 'string' } },
                  template: {
                    type: 'object',
                    'x-kubernetes-embedded-resource': true,
                    'x-kubernetes-preserve-unknown-fields': true,
                  },
                },
              },
              status: { type: 'object', properties: { replicas: { type: 'integer' }, phase: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

const metadata = {
  name: 'a',
  namespace: 'default',
  labels: { app: 'a' },
  annotations: { note: 'b' },
  finalizers: ['example.com/keep'],
  ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: '1', controller: true, blockOwnerDeletion: true }],
  managedFields: [
    {
      manager: 'm',
      operation: 'Apply',
      apiVersion: 'v1',
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:a': {}, '.': {} } },
    },
  ],
}
const container = {
  name: 'c',
  image: 'i',
  ports: [{ containerPort: 80, protocol: 'TCP' }],
  env: [{ name: 'A', value: 'b' }],
  resources: { requests: { cpu: '100m', memory: '1Gi' } },
}
const template = {
  metadata: { labels: { app: 'a' } },
  spec: { containers: [container], volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }] },
}

/** Sample objects, by the path of their collection. */
const samples: { readonly [path: string]: object } = {
  '/api/v1/namespaces/default/configmaps': {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { a: 'b' },
    binaryData: { c: 'aGVsbG8=' },
  },
  '/api/v1/namespaces/default/secrets': {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    type: 'Opaque',
    data: { a: 'aGVsbG8=' },
    stringData: { b: 'c' },
  },
  '/api/v1/namespaces/default/pods': { apiVersion: 'v1', kind: 'Pod', metadata, spec: template.spec },
  '/api/v1/namespaces/default/services': {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { type: 'ClusterIP', selector: { app: 'a' }, ports: [{ name: 'h', port: 80, targetPort: 'http', protocol: 'TCP' }] },
  },
  '/apis/apps/v1/namespaces/default/deployments': {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'a' } },
      template,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 1 } },
    },
  },
  '/apis/coordination.k8s.io/v1/namespaces/default/leases': {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata,
    spec: { holderIdentity: 'h', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z' },
  },
  '/apis/rbac.authorization.k8s.io/v1/clusterroles': {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'a' },
    aggregationRule: {
      clusterRoleSelectors: [{ matchLabels: { a: 'b' }, matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }],
    },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'], resourceNames: ['a'] }],
  },
  '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations': {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'a' },
    webhooks: [
      {
        name: 'a.example.com',
        clientConfig: { url: 'https://127.0.0.1:1/x', caBundle: 'aGVsbG8=' },
        rules: [
          { apiGroups: ['none.example.com'], apiVersions: ['v1'], resources: ['nothing'], operations: ['CREATE'], scope: '*' },
        ],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        matchConditions: [{ name: 'm', expression: 'object.metadata.name != "x"' }],
        failurePolicy: 'Ignore',
        timeoutSeconds: 1,
        namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
      },
    ],
  },
  '/apis/authorization.k8s.io/v1/subjectaccessreviews': {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: 'bob', groups: ['g'], resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } },
  },
  '/apis/shop.example.com/v1/namespaces/default/gadgets': {
    apiVersion: 'shop.example.com/v1',
    kind: 'Gadget',
    metadata,
    spec: {
      replicas: 2,
      color: 'red',
      when: '2026-01-01T00:00:00Z',
      port: '80%',
      tags: ['a'],
      parts: [{ name: 'p', size: 1 }],
      free: { a: [{}] },
      labels: { a: 'b' },
      template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
    },
    status: { replicas: 1, phase: 'x' },
  },
}
const collections = Object.keys(samples)

let server: ApiServer
let handler: HttpHandler
const internalErrors: unknown[] = []
const log: Logger = { ...silent, error: (text, fields) => internalErrors.push(fields?.err ?? text), child: () => log } as Logger

let usedBefore: number
beforeAll(async () => {
  usedBefore = await inUse()
  const clock = new VirtualClock()
  server = createApiServer({ clock, random: seededRandom(1), customResources: [gadgets as never], log, authorization: ['RBAC'] })
  await server.ready
  handler = createHandler({ engine: server.engine, issuer: server.issuer, clock, log })
  for (const [path, sample] of Object.entries(samples)) {
    const kept = {
      ...sample,
      metadata: {
        ...(sample as { metadata?: object }).metadata,
        name: 'kept',
        finalizers: [],
        ownerReferences: [],
        managedFields: [],
      },
    }
    await send({ method: 'POST', url: path, body: JSON.stringify(kept) })
  }
})
afterAll(() => server.close())

interface TestRequest {
  readonly method?: string
  readonly url: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string | Uint8Array
}

async function send({ method = 'GET', url, headers = {}, body = '' }: TestRequest, identity = admin) {
  const abort = new AbortController()
  const request: HttpRequest = {
    method,
    url,
    headers: { 'content-type': 'application/json', ...headers },
    signal: abort.signal,
    streamSignal: abort.signal,
    body: () => Promise.resolve(Buffer.from(body)),
  }
  const response = await handler(request, identity)
  if (typeof response.body === 'string' || Buffer.isBuffer(response.body))
    return { status: response.status, headers: response.headers, text: response.body.toString() }
  const parts: Buffer[] = []
  setImmediate(() => abort.abort())
  for await (const part of response.body) parts.push(part)
  return { status: response.status, headers: response.headers, text: Buffer.concat(parts).toString() }
}

/** Sends a request, and expects a response without an internal error. An error response in JSON must be a Status. */
async function expectNoInternalError(request: TestRequest): Promise<void> {
  internalErrors.length = 0
  const { status, headers, text } = await send(request)
  expect(internalErrors.map((err) => (err instanceof Error ? err.stack : err))).toEqual([])
  if (status < 400 || headers['content-type'] !== 'application/json') return
  const body = JSON.parse(text) as { kind: string; status: string; message: string; code: number }
  expect(body).toMatchObject({ kind: 'Status', status: 'Failure', code: status })
  expect(body.message).not.toMatch(
    /^Internal error occurred: (?!.*webhook)|\[object|is not a function|Cannot (?:read|destructure)/,
  )
}

/** Unusual values. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      -1,
      1.5,
      1e21,
      -0,
      2 ** 53,
      '',
      ' ',
      'a',
      '\0',
      '\u{1F600}',
      '\ud800',
      'a\nb',
      '$',
      '*',
      '.',
      '/',
      '..',
      '{}',
      [],
      {},
      [null],
      [[]],
      [{}],
      { a: null },
    ),
  },
  fc.constantFrom<unknown>(
    '1Gi',
    '-5',
    '1e3',
    '99999999999999999999',
    '1m',
    '2026-13-45T99:99:99Z',
    'P1D',
    '10.0.0.0/33',
    '::',
    'aGVsbG8',
    '%',
    '100%',
    'x'.repeat(300),
    'A/B/C',
    'self',
    'v1',
    'delete',
    'replace',
  ),
  fc.constantFrom<unknown>(
    { constructor: {} },
    { toString: 1 },
    { hasOwnProperty: 'x' },
    { prototype: [] },
    { length: 5 },
    JSON.parse('{"then":1}') as object,
    { toJSON: 1 },
    { valueOf: null },
    { $patch: 'delete' },
    { $retainKeys: [] },
    { '$deleteFromPrimitiveList/a': [1] },
    { '$setElementOrder/a': 1 },
  ),
  fc.jsonValue({ maxDepth: 3 }),
)
const keys = fc.oneof(
  fc.constantFrom(
    '',
    'name',
    'namespace',
    'constructor',
    'toString',
    'hasOwnProperty',
    'then',
    'toJSON',
    'length',
    '0',
    '-1',
    'a.b',
    'a/b',
    '~1',
    '$patch',
    '$retainKeys',
    'f:a',
    'k:{"name":"a"}',
    'v:1',
    '.',
    'x-kubernetes-validations',
    'pattern',
    'default',
    'items',
    'properties',
    'additionalProperties',
    'allOf',
    'not',
    'rule',
    'expression',
  ),
  fc.string({ maxLength: 5 }),
)

/** Generates objects that differ from the sample in up to four places. */
const slightlyChanged = (sample: object): fc.Arbitrary<object> =>
  fc
    .array(fc.record({ at: fc.nat(1000), how: fc.constantFrom('replace', 'remove', 'add', 'twice'), key: keys, value: junk }), {
      minLength: 1,
      maxLength: 4,
    })
    .map((changes) => {
      const copy = structuredClone(sample)
      for (const { at, how, key, value } of changes) change(copy, at, how, key, value)
      return copy
    })

function change(root: object, at: number, how: string, key: string, value: unknown): void {
  const places: [Record<string, unknown>, string][] = []
  const walk = (container: object) => {
    for (const [name, part] of Object.entries(container)) {
      places.push([container as Record<string, unknown>, name])
      if (typeof part === 'object' && part !== null) walk(part)
    }
  }
  walk(root)
  const place = places[at % (places.length || 1)]
  if (!place) return
  const [container, name] = place
  const part = container[name]
  if (how === 'replace') container[name] = structuredClone(value)
  else if (how === 'remove') delete container[name]
  else if (how === 'twice' && Array.isArray(part)) part.push(...(structuredClone(part) as unknown[]))
  else if (typeof part === 'object' && part !== null && !Array.isArray(part))
    (part as Record<string, unknown>)[key] = structuredClone(value)
}

/** Generates texts with up to four edits of a few characters. */
const mutated = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      texts,
      fc.array(
        fc.record({
          at: fc.nat(10_000),
          cut: fc.nat(3),
          put: fc.oneof(
            fc.string({ maxLength: 3 }),
            fc.constantFrom(
              '"',
              '{',
              '[',
              ']',
              '}',
              ',',
              ':',
              '\\',
              '\\u0000',
              '0',
              '-',
              'e999',
              'null',
              '&a',
              '*a',
              '<<: *a',
              '|',
              '>',
              '- ',
              '\t',
              '\n',
              '!!binary',
              '---',
              '%',
              '#',
              "'",
            ),
          ),
        }),
        { maxLength: 4 },
      ),
    )
    .map(([text, edits]) =>
      edits.reduce(
        (now, { at, cut, put }) => now.slice(0, at % (now.length + 1)) + put + now.slice((at % (now.length + 1)) + cut),
        text,
      ),
    )

const sampleAt = fc
  .constantFrom(...collections)
  .chain((path) => slightlyChanged(samples[path]!).map((object) => ({ path, object })))
const json = (object: object) => JSON.stringify(object)
const property = <T>(arbitrary: fc.Arbitrary<T>, requestOf: (value: T) => TestRequest) =>
  fc.assert(
    fc.asyncProperty(arbitrary, (value) => expectNoInternalError(requestOf(value))),
    runs,
  )

const limit = 240_000 * runFactor

test('creates of slightly invalid objects cause no internal error', { timeout: limit }, () =>
  property(sampleAt, ({ path, object }) => ({ method: 'POST', url: path, body: json(object) })),
)

test('updates to slightly invalid objects cause no internal error', { timeout: limit }, () =>
  property(fc.tuple(sampleAt, fc.constantFrom('', '/status', '/scale')), ([{ path, object }, subresource]) => {
    const kept = { ...object, metadata: { ...(object as { metadata?: object }).metadata, name: 'kept' } }
    return { method: 'PUT', url: `${path}/kept${subresource}`, body: json(kept) }
  }),
)

test('valid and slightly invalid JSON cause no internal error', { timeout: limit }, () =>
  property(fc.tuple(fc.constantFrom(...collections), fc.nat()), ([path]) => ({
    method: 'POST',
    url: path,
    body: json(samples[path]!),
  })).then(() =>
    property(
      fc.constantFrom(...collections).chain((path) => mutated(fc.constant(json(samples[path]!))).map((body) => ({ path, body }))),
      ({ path, body }) => ({ method: 'POST', url: path, body }),
    ),
  ),
)

const yamlSample =
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\n  labels: &l {a: "b", c: \'d\'}\n  annotations: *l\ndata:\n  a: |\n    text\n  b: >-\n    folded\n  c: yes\n'
test('slightly invalid YAML causes no internal error', { timeout: limit }, () =>
  property(mutated(fc.constant(yamlSample)), (body) => ({
    method: 'POST',
    url: '/api/v1/namespaces/default/configmaps',
    headers: { 'content-type': 'application/yaml' },
    body,
  })),
)

const pointer = fc.oneof(
  fc.constantFrom(
    '',
    '/',
    '/spec',
    '/spec/replicas',
    '/metadata',
    '/metadata/name',
    '/metadata/labels/app',
    '/metadata/finalizers/-',
    '/metadata/finalizers/0',
    '/metadata/managedFields',
    '/spec/parts/-',
    '/spec/parts/0/name',
    '/data',
    '/data/a',
    '/kind',
    '/status',
    '/spec/tags/99999999999',
    '/spec/tags/-1',
    '/spec/tags/01',
    '/constructor',
    '/metadata/constructor/prototype',
    'no slash',
    '/~2',
    '/~0~1',
  ),
  fc.array(keys, { maxLength: 3 }).map((parts) => `/${parts.join('/')}`),
)
const operation = fc.record(
  {
    op: fc.oneof(fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'), junk),
    path: fc.oneof(pointer, junk),
    from: fc.oneof(pointer, junk),
    value: junk,
  },
  { requiredKeys: [] },
)
const patches: [string, fc.Arbitrary<unknown>][] = [
  ['application/json-patch+json', fc.oneof(fc.array(operation, { maxLength: 5 }), junk)],
  ['application/merge-patch+json', fc.oneof(...collections.map((path) => slightlyChanged(samples[path]!)), junk)],
  ['application/strategic-merge-patch+json', fc.oneof(...collections.map((path) => slightlyChanged(samples[path]!)), junk)],
  ['application/apply-patch+yaml', fc.oneof(...collections.map((path) => slightlyChanged(samples[path]!)), junk)],
]
test.each(patches)('patches of type %s cause no internal error', { timeout: limit }, (type, bodies) =>
  property(
    fc.tuple(
      fc.constantFrom(...collections),
      bodies,
      fc.constantFrom('kept', 'new'),
      fc.constantFrom('', '/status', '/scale'),
      fc.boolean(),
    ),
    ([path, body, name, subresource, force]) => {
      const query = type.startsWith('application/apply') ? `?fieldManager=f&force=${force}` : ''
      const named =
        typeof body === 'object' && body !== null && 'metadata' in body && typeof body.metadata === 'object'
          ? { ...body, metadata: { ...body.metadata, name } }
          : body
      return {
        method: 'PATCH',
        url: `${path}/${name}${subresource}${query}`,
        headers: { 'content-type': type },
        body: JSON.stringify(named) ?? '',
      }
    },
  ),
)

test(
  'slightly invalid CustomResourceDefinitions, and slightly invalid objects of their kinds, cause no internal error',
  { timeout: limit },
  () =>
    fc.assert(
      fc.asyncProperty(
        slightlyChanged(gadgets),
        slightlyChanged(samples['/apis/shop.example.com/v1/namespaces/default/gadgets']!),
        async (definition, object) => {
          const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
          const text = json(definition).replaceAll('gadget', 'thing').replaceAll('Gadget', 'Thing')
          await expectNoInternalError({ method: 'POST', url, body: text })
          await expectNoInternalError({
            method: 'POST',
            url: '/apis/shop.example.com/v1/namespaces/default/things',
            body: json(object).replaceAll('Gadget', 'Thing'),
          })
          await expectNoInternalError({ url: '/openapi/v3/apis/shop.example.com/v1' })
          await expectNoInternalError({
            url: '/apis/shop.example.com/v1/namespaces/default/things',
            headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
          })
          await expectNoInternalError({ method: 'DELETE', url: '/apis/shop.example.com/v1/namespaces/default/things' })
          await expectNoInternalError({ method: 'DELETE', url: `${url}/things.shop.example.com` })
          for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
        },
      ),
      { ...runs, numRuns: 60 * runFactor },
    ),
)

const token = fc.constantFrom(
  'self',
  'oldSelf',
  'has',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '.',
  ',',
  '?',
  ':',
  '==',
  '!=',
  '<',
  '&&',
  '||',
  '!',
  '+',
  '-',
  '*',
  '/',
  '%',
  'in',
  '1',
  '1u',
  '-1',
  '1.5',
  '0',
  '9223372036854775808',
  '"a"',
  "b'c'",
  "r'\\d'",
  '"""x"""',
  'true',
  'null',
  'size',
  'all',
  'exists',
  'map',
  'filter',
  'x',
  'matches',
  'int',
  'string',
  'duration',
  'timestamp',
  'quantity',
  'url',
  'ip',
  'cidr',
  'type',
  'dyn',
  'optional',
  '?.',
  '[?',
  'self.replicas',
  'self.color',
  'self.tags',
  'self.free',
  '.exists(x, x',
  '.map(x, x',
  '.matches("',
  '\n',
  '//',
  '__a__',
  'while',
  '\u{1F600}',
)
const expressions = fc.oneof(
  fc.array(token, { maxLength: 14 }).map((tokens) => tokens.join(' ')),
  mutated(
    fc.constantFrom(
      'self.replicas <= 10 || has(self.color)',
      'self.tags.all(t, t.matches("^[a-z]+$")) && size(self.tags) < 5',
      'duration("1h") > duration("1m") ? true : self.color in ["a"]',
      'quantity("1Gi").isGreaterThan(quantity("1Mi")) && url("https://a/b").getHost() == "a"',
      'self.parts.map(p, p.size).sum() > 1.0',
      'oldSelf.orValue({}).replicas == 1',
    ),
  ),
  fc.nat(2000).map((depth) => `${'('.repeat(depth)}1${')'.repeat(depth)} == 1`),
  fc.nat(2000).map((depth) => `${'!'.repeat(depth)}true`),
  fc.nat(500).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)} == []`),
  fc.nat(2000).map((count) =>
    Array(count + 1)
      .fill('true')
      .join(' && '),
  ),
  fc.nat(6).map((depth) => `${'self.tags.all(x, '.repeat(depth)}true${')'.repeat(depth)}`),
)
const regexes = fc.oneof(
  fc.constantFrom(
    '(a+)+$',
    '(a|a)*b',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
    '(.*)*x',
    'a{1000}',
    '(a{100}){100}',
    '(((a{100}){100}){100})',
    '\\p{L}+',
    '(?i)a',
    '(?=a)',
    '\\1',
    '[',
    '(',
    'a**',
    '\\',
    '[z-a]',
    '(?P<n>a)',
    '(?<n>a)',
    '\\C',
    '\\Q',
    '[[:alpha:]]',
    '\\x{10FFFF}',
    '\\x{110000}',
    'x*'.repeat(500),
  ),
  mutated(fc.constantFrom('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', '^(\\d{4})-(\\d{2})$', '(?s).*')),
)
test('unusual rules and patterns of CustomResourceDefinitions cause no internal error', { timeout: limit }, () =>
  fc.assert(
    fc.asyncProperty(expressions, expressions, regexes, async (rule, messageExpression, pattern) => {
      const definition = structuredClone(gadgets)
      const spec = definition.spec.versions[0]!.schema.openAPIV3Schema.properties.spec
      Object.assign(spec, {
        'x-kubernetes-validations': [{ rule, messageExpression, optionalOldSelf: rule.includes('orValue') || undefined }],
      })
      Object.assign(spec.properties.color, { pattern, maxLength: 100_000 })
      const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      await expectNoInternalError({
        method: 'POST',
        url,
        body: json(definition).replaceAll('gadget', 'rule').replaceAll('Gadget', 'Rule'),
      })
      const object = {
        apiVersion: 'shop.example.com/v1',
        kind: 'Rule',
        metadata: { name: 'a' },
        spec: { color: 'a'.repeat(30_000), tags: ['a', 'b', 'c'], parts: [{ name: 'a' }] },
      }
      await expectNoInternalError({
        method: 'POST',
        url: '/apis/shop.example.com/v1/namespaces/default/rules',
        body: json(object),
      })
      await expectNoInternalError({
        method: 'PATCH',
        url: '/apis/shop.example.com/v1/namespaces/default/rules/a',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: '{"spec":{"replicas":3}}',
      })
      await expectNoInternalError({ method: 'DELETE', url: '/apis/shop.example.com/v1/namespaces/default/rules' })
      await expectNoInternalError({ method: 'DELETE', url: `${url}/rules.shop.example.com` })
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    }),
    { ...runs, numRuns: 60 * runFactor },
  ),
)

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  fc
    .array(fc.record({ field: fc.nat(20), wire: fc.nat(7), content: fc.uint8Array({ maxLength: 20 }) }), { maxLength: 5 })
    .map((fields) =>
      Uint8Array.from(
        fields.flatMap(({ field, wire, content }) => [(field << 3) | wire, ...(wire === 2 ? [content.length] : []), ...content]),
      ),
    ),
)
/** Bytes in the protobuf envelope of k8s.io/apimachinery, which contains a type and the bytes of the object. */
const enveloped = fc.tuple(fc.constantFrom('ConfigMap', 'Pod', 'Lease', 'DeleteOptions', 'x'), bytes).map(([kind, raw]) => {
  const text = (field: number, value: string) => [(field << 3) | 2, value.length, ...Buffer.from(value)]
  const type = [...text(1, 'v1'), ...text(2, kind)]
  return Buffer.from([0x6b, 0x38, 0x73, 0, 0x0a, type.length, ...type, 0x12, raw.length, ...raw])
})
test('invalid protobuf causes no internal error', { timeout: limit }, () =>
  property(
    fc.tuple(
      fc.constantFrom('POST', 'PUT', 'DELETE'),
      fc.constantFrom(...collections),
      fc.oneof(
        enveloped,
        bytes,
        bytes.map((raw) => Buffer.concat([Buffer.from('k8s\0'), raw])),
      ),
    ),
    ([method, path, body]) => ({
      method,
      url: method === 'POST' ? path : `${path}/kept`,
      headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
      body,
    }),
  ),
)

const parameter = fc.oneof(
  fc.record({
    name: fc.constantFrom('labelSelector', 'fieldSelector'),
    value: fc.oneof(
      mutated(
        fc.constantFrom(
          'a=b,c!=d',
          'a in (b,c),d notin (e),!f,g',
          'metadata.name=x,metadata.namespace!=y',
          'spec.color=red',
          'a>1,b<2',
        ),
      ),
      fc
        .array(
          fc.constantFrom(
            'a',
            '=',
            '==',
            '!=',
            '!',
            ',',
            '(',
            ')',
            ' in ',
            ' notin ',
            '<',
            '>',
            '1',
            '\\',
            '\\,',
            ' ',
            'metadata.name',
            '/',
            '.',
            '\0',
            'é',
          ),
          { maxLength: 9 },
        )
        .map((parts) => parts.join('')),
    ),
  }),
  fc.record({
    name: fc.constantFrom(
      'continue',
      'resourceVersion',
      'resourceVersionMatch',
      'limit',
      'timeoutSeconds',
      'timeout',
      'watch',
      'allowWatchBookmarks',
      'sendInitialEvents',
      'dryRun',
      'fieldManager',
      'fieldValidation',
      'force',
      'pretty',
      'propagationPolicy',
      'gracePeriodSeconds',
      'orphanDependents',
      'includeObject',
      'hash',
      'verbose',
      'exclude',
    ),
    value: fc.oneof(
      fc.constantFrom(
        '',
        '0',
        '1',
        '-1',
        '1.5',
        '99999999999999999999',
        'abc',
        'true',
        'false',
        'All',
        'Exact',
        'NotOlderThan',
        'Strict',
        'Warn',
        'Foreground',
        'Orphan',
        '\0',
        '1s',
        '1h',
        '-1s',
        '1ns',
        '9999999h',
        'None',
        'Metadata',
        'e30',
        'bnVsbA',
        'W10',
        '"',
        'x'.repeat(200),
      ),
      fc.jsonValue({ maxDepth: 1 }).map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
      fc
        .record({
          v: fc.oneof(fc.constant('meta.k8s.io/v1'), junk),
          rv: fc.oneof(fc.integer(), junk),
          start: fc.oneof(fc.constantFrom('default/a', 'a\0', '', '/', '../x', 'default/../../x'), junk),
        })
        .map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
      fc.string({ maxLength: 10 }),
    ),
  }),
)
const queries = fc
  .array(parameter, { maxLength: 4 })
  .map((parameters) => parameters.map(({ name, value }) => `${name}=${encodeURIComponent(wellFormed(value))}`).join('&'))
const wellFormed = (text: string) => text.toWellFormed()
test(
  'unusual selectors, continue tokens, resource versions and other parameters cause no internal error',
  { timeout: limit },
  () =>
    property(
      fc.tuple(
        fc.constantFrom('GET', 'GET', 'GET', 'DELETE', 'POST', 'PUT', 'PATCH'),
        fc.constantFrom(...collections),
        fc.constantFrom('', '/kept', '/kept/status'),
        queries,
      ),
      ([method, path, name, query]) => ({
        method,
        url: `${path}${name}?${query}`,
        headers: method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {},
        body: method === 'GET' || method === 'DELETE' ? '' : json(samples[path]!),
      }),
    ),
)

test('malformed queries and paths cause no internal error', { timeout: limit }, () =>
  property(
    fc.tuple(
      fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'get', ''),
      mutated(
        fc.constantFrom(
          ...collections,
          ...collections.map((path) => `${path}/kept`),
          '/',
          '/api',
          '/apis',
          '/apis/apps',
          '/openapi/v2',
          '/openapi/v3',
          '/openapi/v3/api/v1',
          '/healthz/etcd',
          '/readyz?verbose',
          '/version',
          '/livez?exclude=a',
          '/.well-known/openid-configuration',
          '/api/v1/watch/namespaces/default/configmaps/a',
          '/api/v1/namespaces/default/pods/kept/eviction',
          '/api/v1/namespaces/default/serviceaccounts/a/token',
          '/api/v1/namespaces/default/finalize',
        ),
      ),
      fc.oneof(
        fc.constant(''),
        fc.string({ maxLength: 12 }).map((text) => `?${text}`),
        fc.constantFrom('?%', '?%zz=1', '?a=%ff', '?&&=&', '?watch', '?='.repeat(50)),
      ),
    ),
    ([method, path, query]) => ({ method, url: path + query }),
  ),
)

const headerText = fc.oneof(
  mutated(
    fc.constantFrom(
      'application/json',
      'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
      'application/yaml',
      'application/vnd.kubernetes.protobuf,*/*;q=0.1',
      'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
      'text/html',
    ),
  ),
  fc
    .array(
      fc.constantFrom(
        'application',
        '/',
        'json',
        ';',
        ',',
        '=',
        'q',
        '0.5',
        'as',
        'Table',
        '*',
        ' ',
        '"',
        'v1',
        'constructor',
        '__proto__',
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join('')),
)
test('unusual headers cause no internal error', { timeout: limit }, () =>
  property(
    fc.tuple(
      fc.constantFrom('/api', '/apis', '/openapi/v3', '/openapi/v2', ...collections),
      fc.record(
        {
          accept: headerText,
          'content-type': headerText,
          'user-agent': fc.string({ maxLength: 20 }),
          'impersonate-user': fc.constantFrom('', 'bob', 'system:serviceaccount:a:b', 'system:serviceaccount::', '\0'),
          'impersonate-group': fc.string({ maxLength: 5 }),
          'impersonate-uid': fc.string({ maxLength: 5 }),
          'if-none-match': fc.string({ maxLength: 5 }),
        },
        { requiredKeys: [] },
      ),
      fc.constantFrom('GET', 'POST', 'DELETE'),
    ),
    ([url, headers, method]) => ({ method, url, headers, body: method === 'POST' ? json(samples[url] ?? {}) : '' }),
  ),
)

test('after all requests the server responds, and the heap has grown by less than 200 MiB', { timeout: limit }, async () => {
  for (const path of collections) if (!path.includes('reviews')) await send({ method: 'DELETE', url: path })
  await expectNoInternalError({ url: '/api/v1/namespaces/default' })
  await expectNoInternalError({ url: '/openapi/v3' })
  // The server keeps up to 64 MiB of changes for watches.
  expect((await inUse()) - usedBefore).toBeLessThan(200)
})

/** Returns the size of the heap in use after garbage collection, in MiB. Includes objects of other tests in this process. */
async function inUse(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let round = 0; round < 3; round++) {
    await new Promise(setImmediate)
    collect()
  }
  return process.memoryUsage().heapUsed / 2 ** 20
}
