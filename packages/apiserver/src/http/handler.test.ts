import { seconds, seededRandom, StatusError, VirtualClock } from '@capstan/kube'
import { afterEach, expect, test } from 'vitest'
import type { WebhookTransport } from '../admission/webhook-caller.ts'
import type { Engine } from '../verbs/engine.ts'
import { createApiServer } from '@capstan/kubernetes-kinds'
import type { Identity } from '../auth/authenticate.ts'
import type { HandlerOptions } from './handler.ts'
import { createHandler } from './handler.ts'
import { webHandler } from './web.ts'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()))
})

const admin: Identity = { kind: 'user', name: 'admin', groups: ['system:masters'] }

async function start(options: Partial<HandlerOptions> = {}) {
  const clock = new VirtualClock()
  const server = createApiServer({ clock, random: seededRandom(1) })
  stops.push(() => server.close())
  await server.ready
  const handle = webHandler(createHandler({ engine: server.engine, clock, ...options }))
  const send = (
    path: string,
    {
      headers = {},
      identity = admin,
      ...init
    }: Omit<RequestInit, 'headers'> & { headers?: Record<string, string>; identity?: Identity } = {},
  ) => handle(new Request(`https://server${path}`, { headers: { 'user-agent': 'test/1', ...headers }, ...init }), identity)
  const create = (path: string, body: object) =>
    send(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  return { send, create, clock }
}

const gadgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.shop.example.com' },
  spec: {
    group: 'shop.example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList', shortNames: ['gd'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A gadget.',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer', description: 'How big.' } } } },
          },
        },
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
      },
    ],
  },
}
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const gadgetPath = '/apis/shop.example.com/v1/namespaces/default/gadgets'
const gadget = (name: string, size = 1) => ({
  apiVersion: 'shop.example.com/v1',
  kind: 'Gadget',
  metadata: { name },
  spec: { size },
})

/** Waits 20 turns of the event loop, in which the server begins to serve the resource of a new CustomResourceDefinition. */
async function untilServed() {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}

async function startWithGadgets() {
  const server = await start()
  await server.create(crds, gadgets)
  await untilServed()
  return server
}

test.each<[string, Identity, number]>([
  ['/api/v1/namespaces', { kind: 'anonymous' }, 401],
  ['/apis', { kind: 'anonymous' }, 401],
  ['/openapi/v3', { kind: 'anonymous' }, 401],
  ['/version', { kind: 'anonymous' }, 200],
  ['/readyz', { kind: 'anonymous' }, 200],
  ['/readyz', { kind: 'rejected' }, 401],
  ['/api/v1/namespaces', admin, 200],
])('%s requested by %j returns %d', async (path, identity, status) => {
  const { send } = await start()
  expect((await send(path, { identity })).status).toBe(status)
})

test('a health response lists the checks without the reason of a failure, and a single check can be requested or excluded', async () => {
  const { send } = await start({
    checks: [
      { name: 'store', check() {} },
      {
        name: 'informers',
        paths: ['readyz'],
        check() {
          throw new Error('secret detail')
        },
      },
    ],
  })
  const livez = await (await send('/livez?verbose')).text()
  expect(livez).toMatch(/^\[\+\]ping ok\n/)
  expect(livez).toMatch(/\[\+\]store ok\nlivez check passed\n$/)
  expect(livez, 'names that monitors know').toContain('[+]poststarthook/rbac/bootstrap-roles ok\n')
  const readyz = await send('/readyz')
  expect(readyz.status).toBe(500)
  const text = await readyz.text()
  expect(text).toContain('[-]informers failed: reason withheld\n')
  expect(text).not.toContain('secret')
  expect((await send('/readyz/informers')).status).toBe(500)
  expect((await send('/livez/informers')).status, '`informers` is not a check of livez').toBe(404)
  expect(await (await send('/readyz/etcd')).text()).toBe('ok')
  expect((await send('/readyz?exclude=informers')).status).toBe(200)
})

test.each(['/api/v1/namespaces/default', '/api/v1/namespaces/missing'])('curl gets pretty-printed JSON: %s', async (path) => {
  const { send } = await start()
  const text = await (await send(path, { headers: { 'user-agent': 'curl/8' } })).text()
  expect(text).toBe(JSON.stringify(JSON.parse(text), null, 2))
})

test('metrics count requests by verb and resource, and contain the results of health checks', async () => {
  const { send } = await start()
  await send('/api/v1/namespaces/default/configmaps')
  await send('/api/v1/namespaces/default/configmaps/missing')
  const text = await (await send('/metrics')).text()
  const series = (code: number, scope: string, verb: string) =>
    `apiserver_request_total{code="${code}",component="apiserver",dry_run="",group="",resource="configmaps",scope="${scope}",subresource="",verb="${verb}",version="v1"} 1\n`
  expect(text).toContain(series(200, 'namespace', 'LIST'))
  expect(text).toContain(series(404, 'resource', 'GET'))
  expect(await (await send('/metrics/slis')).text()).toContain('kubernetes_healthcheck{name="etcd",type="readyz"} 1\n')
})

test('requests for unknown resources and unauthorized requests add no series to the metrics, and invalid values of dryRun share one', async () => {
  const { send } = await start()
  const post = (query: string) =>
    send(`/api/v1/namespaces/default/configmaps?${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name: 'a' } }),
    })
  await post('dryRun=All')
  await post('dryRun=x1')
  await post('dryRun=All&dryRun=x2')
  await send('/apis/x3.example.com/v1/x3')
  await send('/api/v1/namespaces/default/configmaps/a/x4')
  await send('/api/v1/namespaces/default/secrets', { identity: { kind: 'anonymous' } })
  const text = await (await send('/metrics')).text()
  const series = [...text.matchAll(/^apiserver_request_total\{code="(\d+)".*dry_run="(.*?)".*,resource="(.*?)".* (\d+)$/gm)]
  expect(series.map((match) => match.slice(1).join(' '))).toEqual(['201 All configmaps 1', '422 invalid configmaps 2'])
})

test('the call of a webhook is cancelled when the request that causes it times out', async () => {
  const clock = new VirtualClock()
  let call: AbortSignal | undefined
  const transport: WebhookTransport = {
    post: (_target, _body, signal) => new Promise(() => void (call = signal)),
    close() {},
  }
  const server = createApiServer({ clock, random: seededRandom(1), webhooks: { transport } })
  stops.push(() => server.close())
  await server.ready
  const handle = webHandler(createHandler({ engine: server.engine, clock }))
  const headers = { 'content-type': 'application/json' }
  const send = (path: string, body: object) =>
    handle(new Request(`https://server${path}`, { method: 'POST', body: JSON.stringify(body), headers }), admin)
  await send('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'slow' },
    webhooks: [
      {
        name: 'slow.example.com',
        clientConfig: { url: 'https://webhook' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        timeoutSeconds: 30,
      },
    ],
  })
  const response = send('/api/v1/namespaces/default/configmaps?timeout=5s', { metadata: { name: 'a' } })
  for (let turn = 0; turn < 20 && !call; turn++) await new Promise(setImmediate)
  expect(call?.aborted).toBe(false)
  while (clock.step(clock.now() + seconds(5)));
  expect((await response).status).toBe(504)
  expect(call?.aborted).toBe(true)
})

test('the response to a preflight request has no body', async () => {
  const { send } = await start({ allowedOrigins: ['//example.com$'] })
  const response = await send('/api', { method: 'OPTIONS', headers: { origin: 'https://example.com' } })
  expect([response.status, await response.text()]).toEqual([204, ''])
})

test('diagnostic pages show the flags, the start time and the version of the server', async () => {
  const { send } = await start({ flags: { 'secure-port': 6443 } })
  expect(await (await send('/flagz')).text()).toMatch(/^\napiserver flagz\nWarning: .*\nsecure-port:6443\n$/)
  expect(await (await send('/statusz')).text()).toMatch(
    /Started {2}\w+ \w+ +\d+ [\d:]+ UTC \d+\nUp {2}0 hr 00 min \d\d sec\nBinary version {2}1\.36\.2\n/,
  )
})

test('/version reports the configured version', async () => {
  const { send } = await start({ version: 'v1.35.1' })
  expect(await (await send('/version')).json()).toMatchObject({ major: '1', minor: '35', gitVersion: 'v1.35.1' })
})

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

test('aggregated discovery is sent to clients that accept it, with an ETag, and changes with the resources', async () => {
  const { send, create } = await start()
  const headers = { accept: `${aggregated},application/json` }
  const first = await send('/apis', { headers })
  expect(first.headers.get('content-type')).toBe(aggregated)
  const etag = first.headers.get('etag') ?? ''
  expect((await send('/apis', { headers: { ...headers, 'if-none-match': etag } })).status).toBe(304)
  await create(crds, gadgets)
  await untilServed()
  const second = await send('/apis', { headers: { ...headers, 'if-none-match': etag } })
  expect(second.status).toBe(200)
  const { items } = (await second.json()) as { items: { metadata: { name: string }; versions: object[] }[] }
  expect(items.find(({ metadata }) => metadata.name === 'shop.example.com')?.versions).toEqual([
    {
      version: 'v1',
      freshness: 'Current',
      resources: [
        {
          resource: 'gadgets',
          responseKind: { group: 'shop.example.com', version: 'v1', kind: 'Gadget' },
          scope: 'Namespaced',
          singularResource: 'gadget',
          verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
          shortNames: ['gd'],
          subresources: [
            {
              subresource: 'status',
              responseKind: { group: 'shop.example.com', version: 'v1', kind: 'Gadget' },
              verbs: ['get', 'patch', 'update'],
            },
          ],
        },
      ],
    },
  ])
  expect(await (await send('/apis')).json()).toMatchObject({ kind: 'APIGroupList' })
  expect(await (await send('/apis/shop.example.com/v1')).json()).toMatchObject({
    kind: 'APIResourceList',
    groupVersion: 'shop.example.com/v1',
    resources: [
      { name: 'gadgets', singularName: 'gadget' },
      { name: 'gadgets/status', singularName: '' },
    ],
  })
})

test.each([
  ['/api', 'application/yaml', /^kind: APIVersions\n/],
  ['/apis', 'application/yaml', /^apiVersion: v1\ngroups:\n- name: /],
  ['/apis/apps', 'application/yaml', /preferredVersion:\n  groupVersion: apps\/v1\n/],
  ['/api/v1', 'application/yaml', /^groupVersion: v1\nkind: APIResourceList\n/],
  ['/apis/apps/v1', 'application/vnd.kubernetes.protobuf', /^{"kind":"APIResourceList"/],
  ['/api', 'text/html', /"406: Not Acceptable\\n\\nAvailable representations: application\/json, /],
  ['/apis', 'text/html', /"only the following media types are accepted: application\/json, application\/yaml, /],
  ['/apis', 'application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList', /"only the following media types/],
  ['/apis/apps/v1', 'application/json;as=Table;v=v1;g=meta.k8s.io', /"only the following media types/],
  ['/apis/apps/v9', 'application/json', /"the server could not find the requested resource"/],
  ['/apis/shop.example.com/v9', 'application/json', /^404 page not found/],
  ['/index.html', 'application/json', /"paths":\["\/.well-known/],
])('GET %s with Accept: %s returns a body that matches %s', async (path, accept, text) => {
  const { send } = await startWithGadgets()
  expect(await (await send(path, { headers: { accept } })).text()).toMatch(text)
})

test('the storage version hash of CustomResourceDefinitions is upstream’s', async () => {
  const { send } = await start()
  const { resources } = (await (await send('/apis/apiextensions.k8s.io/v1')).json()) as { resources: object[] }
  expect(resources[0]).toMatchObject({ name: 'customresourcedefinitions', storageVersionHash: 'jfWCUB31mvA=' })
})

test('a list cannot be requested as PartialObjectMetadata, the format of a single object', async () => {
  const { send } = await startWithGadgets()
  const accept = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
  const messageOf = async (path: string) => ((await (await send(path, { headers: { accept } })).json()) as Error).message
  const rejected = (type: string) => `you requested PartialObjectMetadata, but the requested object is a list (${type})`
  expect(await messageOf('/api/v1/configmaps')).toBe(rejected('*core.ConfigMapList'))
  expect(await messageOf('/apis/apps/v1/deployments')).toBe(rejected('*apps.DeploymentList'))
  expect(await messageOf(gadgetPath)).toBe(rejected('*unstructured.UnstructuredList'))
})

test('OpenAPI v3 documents can be cached by their hash, and keep the hash when another group is added; OpenAPI v2 contains the added group', async () => {
  const { send, create } = await startWithGadgets()
  const index = async () =>
    ((await (await send('/openapi/v3')).json()) as { paths: { [path: string]: { serverRelativeURL: string } } }).paths
  const url = (await index())['apis/shop.example.com/v1']!.serverRelativeURL
  const document = await send(url)
  expect(document.headers.get('cache-control')).toBe('public, immutable')
  const { components, paths } = (await document.json()) as {
    components: { schemas: { [name: string]: object } }
    paths: { [path: string]: { patch?: { requestBody: { content: object } } } }
  }
  expect(components.schemas['com.example.shop.v1.Gadget']).toMatchObject({
    description: 'A gadget.',
    properties: { spec: { properties: { size: { description: 'How big.' } } } },
    'x-kubernetes-group-version-kind': [{ group: 'shop.example.com', version: 'v1', kind: 'Gadget' }],
  })
  expect(
    Object.keys(paths['/apis/shop.example.com/v1/namespaces/{namespace}/gadgets/{name}']!.patch!.requestBody.content),
  ).not.toContain('application/strategic-merge-patch+json')
  const references = new Set(
    [...JSON.stringify({ components, paths }).matchAll(/#\/components\/schemas\/([^"]+)/g)].map(([, name]) => name!),
  )
  expect([...references].filter((name) => !(name in components.schemas))).toEqual([])

  const other = { ...gadgets.spec, group: 'other.example.com' }
  await create(crds, { ...gadgets, metadata: { name: 'gadgets.other.example.com' }, spec: other })
  await untilServed()
  const now = await index()
  expect(now['apis/shop.example.com/v1']!.serverRelativeURL).toBe(url)
  expect(now['apis/other.example.com/v1']).toBeDefined()
  const old = await send('/openapi/v2')
  const swagger = (await old.json()) as { definitions: object; paths: object }
  expect(Object.keys(swagger.definitions)).toEqual(
    expect.arrayContaining(['com.example.other.v1.Gadget', 'com.example.shop.v1.GadgetList', 'io.k8s.api.core.v1.Pod']),
  )
  expect(swagger.paths).toHaveProperty(['/apis/other.example.com/v1/namespaces/{namespace}/gadgets/{name}'])
  const lost = [...JSON.stringify(swagger).matchAll(/#\/definitions\/([^"]+)/g)].filter(
    ([, name]) => !(name! in swagger.definitions),
  )
  expect(lost).toEqual([])
  expect((await send('/openapi/v2', { headers: { 'if-none-match': old.headers.get('etag')! } })).status).toBe(304)
  expect((await send('/openapi/v2', { headers: { accept: 'text/html' } })).status).toBe(406)
})

test('duplicate fields cause a warning, and are rejected with fieldValidation=Strict', async () => {
  const { send } = await startWithGadgets()
  const body = '{"apiVersion":"shop.example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}'
  const headers = { 'content-type': 'application/json' }
  const strict = await send(`${gadgetPath}?fieldValidation=Strict`, { method: 'POST', body, headers })
  expect(await strict.json()).toMatchObject({ code: 400, message: expect.stringContaining('duplicate field "spec.size"') })
  const warned = await send(gadgetPath, { method: 'POST', body, headers })
  expect(warned.headers.get('warning')).toBe('299 - "duplicate field \\"spec.size\\""')
  expect(await warned.json()).toMatchObject({ spec: { size: 2 } })
})

test.each([
  ['application/vnd.kubernetes.protobuf', 'zz', 400, /expected prefix \[107 56 115 0\] \(7a7a\)/],
  ['application/x-www-form-urlencoded', 'a=b', 415, /media types include: application\/json, application\/yaml, /],
  ['application/json', `"${'x'.repeat(3 * 1024 * 1024)}"`, 413, /limit is 3145728/],
  ['application/json', '{"a":', 400, /unexpected end of JSON input/],
  ['application/yaml', 'a: [', 400, /yaml: /],
  ['application/yaml', 'metadata: {__proto__: {a: b}}', 400, /"__proto__" is not allowed/],
  ['application/json', '{"metadata":{"name":"a","__proto__":{"finalizers":["x"]}}}', 400, /"__proto__" is not allowed/],
  ['application/json', '{"metadata":{"name":"a","\\u005f_proto__":{"finalizers":["x"]}}}', 400, /"__proto__" is not allowed/],
  ['application/yaml', 'metadata: {"\\x5f_proto__": {a: b}}', 400, /"__proto__" is not allowed/],
  ['application/yaml', 'metadata: {? "__pro\\\n  to__" : {a: b}}', 400, /"__proto__" is not allowed/],
  ['application/json', `{"a":${'['.repeat(2000)}${']'.repeat(2000)}}`, 400, /exceeded max depth/],
])('an invalid body of type %s is rejected with a Status', async (type, body, code, message) => {
  const { send } = await start()
  const response = await send('/api/v1/namespaces/default/configmaps', {
    method: 'POST',
    body,
    headers: { 'content-type': type },
  })
  expect(await response.json()).toMatchObject({ kind: 'Status', code, message: expect.stringMatching(message) })
})

test('an error response has warnings about duplicate fields', async () => {
  const { send } = await start()
  const response = await send('/api/v1/namespaces/default/configmaps', {
    method: 'POST',
    body: '{"metadata":{"name":"NOT valid"},"data":{"a":"1","a":"2"}}',
    headers: { 'content-type': 'application/json' },
  })
  expect([response.status, response.headers.get('warning')]).toEqual([422, '299 - "duplicate field \\"data.a\\""'])
})

test('the body of a DELETE must be DeleteOptions', async () => {
  const { send, create } = await start()
  await create('/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } })
  const path = '/api/v1/namespaces/default/configmaps/a'
  const remove = async (body: object) =>
    (await send(path, { method: 'DELETE', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })).json()
  expect(await remove({ kind: 'Pod', apiVersion: 'v1' })).toMatchObject({
    code: 400,
    message: expect.stringMatching(/^no kind "Pod" is registered/),
  })
  expect(await remove({ kind: 'DeleteOptions', apiVersion: 'v1' })).toMatchObject({ status: 'Success' })
})

test('the rules of a role and the limits of a limit range are null when they are empty or absent', async () => {
  const { create } = await start()
  const createAndRead = async (path: string, body: object) => (await create(path, { metadata: { name: 'a' }, ...body })).json()
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const aggregatedRole = { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } }
  expect(await createAndRead(`${rbac}/clusterroles`, aggregatedRole)).toMatchObject({ rules: null })
  expect(await createAndRead(`${rbac}/namespaces/default/roles`, { rules: [] })).toMatchObject({ rules: null })
  expect(await createAndRead('/api/v1/namespaces/default/limitranges', {})).toMatchObject({ spec: { limits: null } })
})

test('an empty object causes no internal error, for every kind that can be created except Binding', async () => {
  const { send, create } = await start()
  const { groups } = (await (await send('/apis')).json()) as { groups: { preferredVersion: { groupVersion: string } }[] }
  const internalErrors: string[] = []
  for (const root of ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)]) {
    const { resources } = (await (await send(root)).json()) as {
      resources: { name: string; namespaced: boolean; verbs: string[] }[]
    }
    for (const { name, namespaced, verbs } of resources) {
      if (name.includes('/') || !verbs.includes('create')) continue
      const path = `${root}${namespaced ? '/namespaces/default' : ''}/${name}`
      const { status } = await create(path, {})
      // An invalid Binding gets an error without a reason, which has the code 500.
      if (status >= 500 && name !== 'bindings') internalErrors.push(`${path}: ${status}`)
    }
  }
  expect(internalErrors).toEqual([])
})

test('a warning contains non-ASCII characters in UTF-8, and control characters escaped', async () => {
  const { send } = await startWithGadgets()
  const body = JSON.stringify({ ...gadget('a'), 'größe→\x7f': 1 })
  const response = await send(gadgetPath, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  expect(Buffer.from(response.headers.get('warning') ?? '', 'latin1').toString()).toBe(
    '299 - "unknown field \\"größe→\\u007f\\""',
  )
})

test('YAML is accepted and returned', async () => {
  const { send } = await start()
  const body = 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {"on": "yes"}\n'
  const headers = { 'content-type': 'application/yaml', accept: 'application/yaml' }
  const response = await send('/api/v1/namespaces/default/configmaps', { method: 'POST', body, headers })
  expect(response.headers.get('content-type')).toBe('application/yaml')
  expect(await response.text()).toMatch(/^apiVersion: v1\ndata:\n {2}"on": "yes"\nkind: ConfigMap\n/)
})

test('a request may impersonate a user, but not a group without a user', async () => {
  const { send } = await start()
  expect((await send('/api/v1/namespaces', { headers: { 'impersonate-user': 'bob', 'impersonate-group': 'devs' } })).status).toBe(
    200,
  )
  expect((await send('/api/v1/namespaces', { headers: { 'impersonate-group': 'devs' } })).status).toBe(400)
})

/** Reads the events of a watch until there are at least `count`, then closes the watch. */
async function eventsOf(response: Response, count: number): Promise<{ type: string; object: { [field: string]: unknown } }[]> {
  const events: string[] = []
  let text = ''
  const decoder = new TextDecoder()
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true })
    const split = text.split('\n')
    text = split.pop()!
    events.push(...split)
    if (events.length >= count) break
  }
  return events.map((line) => JSON.parse(line))
}

test('a watch of tables sends the columns only in the first event, and a table shows ages', async () => {
  const { send, create, clock } = await startWithGadgets()
  await create(gadgetPath, gadget('a'))
  clock.step(clock.now() + 192_000)
  await create(gadgetPath, gadget('b', 2))
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
  const response = await send(`${gadgetPath}?watch=true`, { headers: { accept } })
  const [first, second] = (await eventsOf(response, 2)).map(({ object }) => object)
  expect((first!.columnDefinitions as { name: string }[]).map(({ name }) => name)).toEqual(['Name', 'Size'])
  expect(second!.columnDefinitions).toBeNull()
  expect(second!.rows).toMatchObject([{ cells: ['b', 2], object: { kind: 'PartialObjectMetadata' } }])
  const namespaces = (await (await send('/api/v1/namespaces/default', { headers: { accept } })).json()) as {
    rows: { cells: string[] }[]
  }
  expect(namespaces.rows[0]!.cells).toEqual(['default', 'Active', '3m12s'])
})

test('a watch from an expired resourceVersion is accepted and sends an ERROR event', async () => {
  const { engine: realEngine } = createApiServer({ clock: new VirtualClock(), random: seededRandom(1) })
  const engine: Engine = {
    ...realEngine,
    execute: () => Promise.reject(new Error('unexpected call')),
    watch: () => Promise.reject(new StatusError('Expired', 'too old resource version: 1 (500)')),
  }
  const { send } = await start({ engine })
  const response = await send('/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=1')
  expect(response.status).toBe(200)
  expect(await eventsOf(response, 1)).toMatchObject([{ type: 'ERROR', object: { kind: 'Status', reason: 'Expired', code: 410 } }])
})

test('the objects in a watch of PartialObjectMetadata have only kind, apiVersion and metadata', async () => {
  const { send } = await start()
  const accept = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
  const events = await eventsOf(await send('/api/v1/namespaces?watch=true', { headers: { accept } }), 4)
  expect(events.map(({ type, object }) => `${type} ${Object.keys(object).join()}`)).toEqual(
    Array(4).fill('ADDED kind,apiVersion,metadata'),
  )
})

test('an exception is returned as an internal error without a stack', async () => {
  const engine = {
    resources: { find: () => undefined, list: () => [], generation: 0 },
    authorizer: { modes: ['AlwaysAllow'], decide: () => ({ allowed: true, reason: '' }) },
  } as unknown as Engine
  Object.defineProperty(engine.resources, 'find', {
    value: () => {
      throw new TypeError('oops')
    },
  })
  const { send } = await start({ engine })
  expect(await (await send('/api/v1/namespaces')).json()).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason: 'InternalError',
    code: 500,
    message: 'Internal error occurred: oops',
  })
})

test('the handler yields to the event loop before it encodes an error', async () => {
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
  const { send } = await start({ clock })
  const absent = '/api/v1/namespaces/default/configmaps/absent'
  expect((await send(absent)).status).toBe(404)
  // The first pause precedes the execution of the verb, the second precedes the encoding of the error.
  expect(pauses).toBe(2)
})
