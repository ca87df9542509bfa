import {
  AfterControlPlaneInitialized,
  BeforeClusterCreate,
  type ClientConfig,
  type ExtensionConfig,
  createCatalog,
  hookCatalog,
} from '@capstan/api'
import { hours, silent, VirtualClock } from '@capstan/kube'
import { beforeEach, describe, expect, it, test } from 'vitest'
import { fail, holdFor, proceedNow } from '../author/answer.ts'
import { createExtensionClient } from './client.ts'
import type { ObservedCall } from './observed-call.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { type FetchHandler, extensionServer } from '../server/server.ts'
import { inProcess } from './transport.ts'

let servers: { [host: string]: FetchHandler }
/** Addresses of the calls, without `https://`. `clientOf` removes those of discovery. */
let called: string[]
let clock: VirtualClock
beforeEach(() => {
  servers = {}
  called = []
  clock = new VirtualClock()
})

const route: FetchHandler = async (request) => {
  const url = new URL(request.url)
  called.push(`${url.host}${url.pathname}${url.search}`)
  const server = servers[url.host]
  if (!server) throw new Error(`dial tcp: lookup ${url.hostname}: no such host`)
  return server(request)
}

const newClient = (namespaces: { [name: string]: { [key: string]: string } } = { default: {} }) =>
  createExtensionClient({
    transport: inProcess(route),
    catalog: createCatalog(hookCatalog),
    clock,
    log: silent,
    namespaceLabels: async (name) => {
      const labels = namespaces[name]
      if (!labels) throw new Error(`namespaces ${JSON.stringify(name)} not found`)
      return labels
    },
  })

const cluster = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: { name: 'demo', namespace: 'default' },
} as never

const config = (name: string, overrides: Partial<ExtensionConfig['spec']> = {}): ExtensionConfig => ({
  apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
  kind: 'ExtensionConfig',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
  spec: { clientConfig: { url: `https://${name}` }, namespaceSelector: {}, ...overrides },
})

type GateFunction = Parameters<typeof on<typeof BeforeClusterCreate>>[2]

const gate = (handle: GateFunction, options: object = {}): FetchHandler =>
  extensionServer(defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name: 'gate', ...options }, handle)] }))

/** Returns a client for which the ExtensionConfigs are discovered and registered. */
async function clientOf(configs: ExtensionConfig[], namespaces?: { [name: string]: { [key: string]: string } }) {
  const client = newClient(namespaces)
  const discovered = configs.map(async (item) => ({ ...item, status: { handlers: await client.discover(item) } }))
  client.warmUp(await Promise.all(discovered))
  called = []
  return client
}

const fixedResponse =
  (status: number, body: string, headers = {}) =>
  async () =>
    new Response(body, { status, headers })

const callGates = (client: ReturnType<typeof newClient>) => client.callAll(BeforeClusterCreate, cluster, { cluster })
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    ({ code, message }) => ({ code, message }),
  )
const hookError = 'failed to call extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": '
const gateError = (name: string) => `${hookError}failed to call extension handler "gate.${name}": `
const callUrl = (name: string) => `https://${name}/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/gate?timeout=10s`

it('reports an ExtensionConfig that has changed or was unregistered, but not one that was discovered again without changes', async () => {
  servers.a = gate(() => proceedNow())
  const client = await clientOf([config('a')])
  const reported: string[] = []
  client.onChanged?.((name) => reported.push(name))
  const discovered = async (specFields: Parameters<typeof config>[1] = {}) => {
    const changed = config('a', specFields)
    client.register({ ...changed, status: { handlers: await client.discover(changed) } })
    return reported.splice(0)
  }
  expect(await discovered()).toEqual([])
  expect(await discovered({ settings: { size: 'm' } })).toEqual(['a'])
  expect(await discovered({ settings: { size: 'm' } })).toEqual([])
  expect(await discovered({ namespaceSelector: { matchLabels: { team: 'x' } } })).toEqual(['a'])
  servers.a = gate(() => proceedNow(), { failurePolicy: 'Ignore' })
  expect(await discovered({ namespaceSelector: { matchLabels: { team: 'x' } } })).toEqual(['a'])
  client.unregister('a')
  expect(reported).toEqual(['a'])
})

describe('the responses of a hook', () => {
  it('are a success when the hook has no handlers', async () => {
    expect(await callGates(await clientOf([]))).toEqual({ status: 'Success', retryAfterSeconds: 0 })
  })

  it('are merged: shortest retryAfterSeconds above 0, messages in the order of the names of the ExtensionConfigs', async () => {
    servers = {
      b: gate(() => holdFor(5, 'b waits')),
      a: gate(() => holdFor(30, 'a waits')),
      c: gate(() => proceedNow('c is fine')),
    }
    const client = await clientOf([config('b'), config('a'), config('c')])
    expect(await callGates(client)).toEqual({ status: 'Success', retryAfterSeconds: 5, message: 'a waits, b waits, c is fine' })
    expect(called.map((url) => url[0])).toEqual(['a', 'b', 'c'])
  })

  it('end with the first failure', async () => {
    servers = { a: gate(() => holdFor(1, '')), b: gate(() => fail('no')), c: gate(() => proceedNow()) }
    const client = await clientOf([config('a'), config('b'), config('c')])
    expect(await failureOf(callGates(client))).toEqual({
      code: 'failure',
      message: `${gateError('b')}got failure response with message: no`,
    })
    expect(called).toHaveLength(2)
  })

  it('have no retryAfterSeconds when the hook is non-blocking', async () => {
    const client = await clientOf([])
    expect(await client.callAll(AfterControlPlaneInitialized, cluster, { cluster })).toEqual({ status: 'Success' })
  })
})

describe('requests', () => {
  it('contain kind, apiVersion and settings; settings of the call override settings of the ExtensionConfig', async () => {
    let received: unknown
    servers.a = gate(({ request }) => {
      received = request
      return proceedNow()
    })
    const client = await clientOf([config('a', { settings: { region: 'eu', size: 'big' } })])
    await client.call(BeforeClusterCreate, cluster, 'gate.a', { cluster }, { settings: { size: 'small' } })
    expect(received).toEqual({
      apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
      kind: 'BeforeClusterCreateRequest',
      cluster,
      settings: { region: 'eu', size: 'small' },
    })
  })

  test.each<[string, ClientConfig, string]>([
    ['a prefix', { url: 'https://a/my//prefix/' }, 'a/my/prefix/hooks.'],
    ['a query', { url: 'https://a:8443/?team=x' }, 'a:8443/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?team=x&timeout=10s'],
    ['a service', { service: { name: 'ext', namespace: 'ns', port: 9443, path: '/p' } }, 'ext.ns.svc:9443/p/hooks.'],
    ['a service without port', { service: { name: 'ext', namespace: 'ns' } }, 'ext.ns.svc/hooks.'],
  ])('are sent to the address in the clientConfig: %s', async (_, clientConfig, start) => {
    await newClient()
      .discover(config('a', { clientConfig }))
      .catch(() => undefined)
    expect(called[0]!.startsWith(start)).toBe(true)
  })
})

describe('a call fails', () => {
  const redirect = fixedResponse(302, '', { location: 'https://elsewhere' })
  const post = `http call failed: Post "${callUrl('a')}": `
  const undecodable = 'http call failed: failed to decode response: '
  test.each<[string, FetchHandler | undefined, string, string]>([
    ['when the host does not exist', undefined, 'unreachable', `${post}dial tcp: lookup a: no such host`],
    [
      'on a status other than 200, with the body in the message',
      fixedResponse(500, 'oops'),
      'bad-status',
      'http call failed: got response with status code 500 != 200: response : "oops"',
    ],
    [
      'on a redirect, which is not followed',
      redirect,
      'bad-status',
      'http call failed: got response with status code 302 != 200: response : ""',
    ],
    [
      'on an error response with a long body, which is cut',
      fixedResponse(503, 'x'.repeat(600)),
      'bad-status',
      `http call failed: got response with status code 503 != 200: response : "${'x'.repeat(512)}..."`,
    ],
    [
      'on an error response that is not UTF-8, quoted as Go does',
      fixedResponse(500, Buffer.from([0x61, 0xff, 0x0a, 0xc2, 0xa0]) as never),
      'bad-status',
      String.raw`http call failed: got response with status code 500 != 200: response : "a\xff\n\u00a0"`,
    ],
    [
      'on invalid JSON',
      fixedResponse(200, 'garbage'),
      'bad-answer',
      `${undecodable}invalid character 'g' looking for beginning of value`,
    ],
    ['on an empty body', fixedResponse(200, ''), 'bad-answer', `${undecodable}EOF`],
    [
      'on a field of a wrong type',
      fixedResponse(200, '{"status":"Success","retryAfterSeconds":"5"}'),
      'bad-answer',
      `${undecodable}json: cannot unmarshal string into Go struct field BeforeClusterCreateResponse.CommonRetryResponse.retryAfterSeconds of type int32`,
    ],
    ...['5.0', '1e1', '5.5', '4294967296'].map((number): [string, FetchHandler, string, string] => [
      `on ${number} instead of a 32-bit integer`,
      fixedResponse(200, `{"status":"Success","retryAfterSeconds":${number}}`),
      'bad-answer',
      `${undecodable}json: cannot unmarshal number ${number} into Go struct field BeforeClusterCreateResponse.CommonRetryResponse.retryAfterSeconds of type int32`,
    ]),
    [
      'on a response over the size limit',
      fixedResponse(200, ' '.repeat(21 * 1024 * 1024)),
      'bad-answer',
      `${undecodable}http: response body too large`,
    ],
    ['on a missing status', fixedResponse(200, '{}'), 'unknown-status', 'got unknown response status "" with message: '],
    [
      'on an unknown status',
      fixedResponse(200, '{"status":"Maybe","message":"hm"}'),
      'unknown-status',
      'got unknown response status "Maybe" with message: hm',
    ],
    [
      'on a negative retryAfterSeconds, which would unblock the Cluster',
      fixedResponse(200, '{"status":"Success","retryAfterSeconds":-5}'),
      'failure',
      'got invalid response: retryAfterSeconds: Invalid value: -5: must be greater than or equal to 0',
    ],
  ])('%s', async (_, server, code, message) => {
    servers.a = gate(() => proceedNow())
    const client = await clientOf([config('a')])
    if (server) servers.a = server
    else delete servers.a
    expect(await failureOf(callGates(client))).toEqual({ code, message: gateError('a') + message })
  })

  it('when there is no response within the timeout of the handler, but not earlier', async () => {
    servers.a = gate(() => new Promise(() => {}), { timeoutSeconds: 3 })
    const client = await clientOf([config('a')])
    const failure = failureOf(callGates(client))
    await new Promise(setImmediate)
    expect(clock.nextDue).toBe(clock.now() + 3000)
    clock.step(clock.now() + 3000)
    expect(await failure).toEqual({
      code: 'timeout',
      message: `${gateError('a')}http call failed: Post "${callUrl('a').replace('10s', '3s')}": http request timeout expired`,
    })
  })
})

test.each([200, 500])("a caller that aborts while the body of a response %i is read gets the signal's reason", async (status) => {
  servers.a = gate(() => proceedNow())
  const client = await clientOf([config('a')])
  const abort = new AbortController()
  const reason = new Error('the caller has left')
  servers.a = ({ signal }) => {
    const start = (body: ReadableStreamDefaultController) => {
      signal.addEventListener('abort', () => body.error(signal.reason))
      setImmediate(() => abort.abort(reason))
    }
    return Promise.resolve(new Response(new ReadableStream({ start }), { status }))
  }
  await expect(client.callAll(BeforeClusterCreate, cluster, { cluster }, { signal: abort.signal })).rejects.toBe(reason)
})

test('no timer is pending after a successful call', async () => {
  servers.a = gate(() => proceedNow())
  await callGates(await clientOf([config('a')]))
  expect(clock.nextDue).toBeUndefined()
})

describe('failure policy Ignore', () => {
  const ignoring = async () => {
    servers.a = gate(() => proceedNow(), { failurePolicy: 'Ignore' })
    return clientOf([config('a')])
  }

  test.each<[string, FetchHandler]>([
    ['a status other than 200', async () => new Response('', { status: 500 })],
    ['invalid JSON', async () => new Response('garbage')],
    [
      'no connection',
      async () => {
        throw new Error('connection reset by peer')
      },
    ],
  ])('treats %s as a success', async (_, server) => {
    const client = await ignoring()
    servers.a = server
    expect(await callGates(client)).toEqual({ status: 'Success', retryAfterSeconds: 0 })
  })

  it('calls the handler even while the breaker is open', async () => {
    const client = await ignoring()
    delete servers.a
    for (let i = 0; i < 8; i++) await callGates(client)
    expect(client.breakers.get('gate.a')!.state).toBe('open')
    servers.a = gate(() => holdFor(5, 'wait'))
    expect(await callGates(client)).toMatchObject({ retryAfterSeconds: 5, message: 'wait' })
    expect(client.breakers.get('gate.a')!.state).toBe('closed')
  })

  it('does not cover a call that was rejected because too many calls are running', async () => {
    const never = Promise.withResolvers<never>()
    servers.a = gate(() => never.promise, { failurePolicy: 'Ignore', timeoutSeconds: 3 })
    const client = await clientOf([config('a')])
    const calls = Array.from({ length: 65 }, () => failureOf(callGates(client)))
    await new Promise(setImmediate)
    clock.step(clock.now() + 3000)
    expect((await Promise.all(calls)).filter((failure) => failure !== 'no failure')).toEqual([
      { code: 'unavailable', message: `${gateError('a')}not called, because 64 calls are in progress` },
    ])
  })

  it('does not cover a caBundle without a certificate', async () => {
    servers.a = gate(() => proceedNow(), { failurePolicy: 'Ignore' })
    const client = await clientOf([config('a')])
    const invalid = config('a', { clientConfig: { url: 'https://a', caBundle: btoa('no certificate') } })
    client.relocate({ ...invalid, status: { handlers: await client.discover(config('a')) } })
    expect(await failureOf(callGates(client))).toEqual({
      code: 'bad-ca',
      message: `${gateError('a')}failed to get http client: failed to create tls config: unable to load root certificates: unable to parse bytes as PEM block`,
    })
  })

  it('reports ignored errors', async () => {
    const client = await ignoring()
    servers.a = fixedResponse(500, 'oops')
    const ignored: string[] = []
    await client.callAll(
      BeforeClusterCreate,
      cluster,
      { cluster },
      { onIgnored: (handler, { message }) => ignored.push(`${handler}: ${message}`) },
    )
    expect(ignored).toEqual(['gate.a: http call failed: got response with status code 500 != 200: response : "oops"'])
  })

  it('does not report a message as unstable when ignored failures come between equal messages', async () => {
    const client = await ignoring()
    const server = gate(() => holdFor(5, 'wait'))
    for (let i = 0; i < 8; i++) {
      servers.a = i % 2 === 0 ? server : fixedResponse(500, 'oops')
      await callGates(client)
    }
    expect([...client.unstableMessages]).toEqual([])
  })

  it('does not ignore a negative retryAfterSeconds', async () => {
    const client = await ignoring()
    servers.a = fixedResponse(200, '{"status":"Success","retryAfterSeconds":-5}')
    expect(await failureOf(callGates(client))).toMatchObject({ code: 'failure' })
  })

  it('does not ignore a failure returned by the extension', async () => {
    const client = await ignoring()
    servers.a = gate(() => fail('no'))
    expect(await failureOf(callGates(client))).toMatchObject({ code: 'failure' })
  })
})

describe('namespaceSelector', () => {
  const selecting = { namespaceSelector: { matchLabels: { team: 'a' } } }
  test.each([
    ['selects the handler if it matches', { default: { team: 'a' } }, ['gate.a']],
    ['excludes the handler if it does not match', { default: { team: 'b' } }, []],
  ])('%s', async (_, namespaces, names) => {
    servers.a = gate(() => proceedNow())
    const client = await clientOf([config('a', selecting)], namespaces)
    expect(await client.handlersFor(BeforeClusterCreate, cluster)).toEqual(names)
  })

  it('makes hooks fail if the namespace cannot be read', async () => {
    servers.a = gate(() => proceedNow())
    const client = await clientOf([config('a', selecting)], {})
    expect(await failureOf(client.handlersFor(BeforeClusterCreate, cluster))).toEqual({
      code: 'namespace',
      message:
        'failed to get extension handlers for hook "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io": failed to get extension handler "gate.a": failed to match namespace: failed to get namespace default: namespaces "default" not found',
    })
  })

  it('rejects a call that names a handler which it excludes', async () => {
    servers.a = gate(() => proceedNow())
    const client = await clientOf([config('a', selecting)])
    expect(await failureOf(client.call(BeforeClusterCreate, cluster, 'gate.a', { cluster }))).toEqual({
      code: 'namespace',
      message: 'failed to call extension handler "gate.a": namespaceSelector did not match object default/demo',
    })
  })
})

describe('registration', () => {
  it('is incomplete, and calls are rejected, before warmUp', async () => {
    const client = newClient()
    expect(client.ready).toBe(false)
    expect(await failureOf(callGates(client))).toMatchObject({ code: 'not-ready' })
  })

  it('replaces the handlers of an ExtensionConfig, and removes them together with the ExtensionConfig', async () => {
    servers.a = gate(() => proceedNow())
    const client = await clientOf([config('a')])
    client.register({ ...config('a'), status: { handlers: [] } })
    expect(await client.handlersFor(BeforeClusterCreate, cluster)).toEqual([])
    client.register({ ...config('a'), status: { handlers: await client.discover(config('a')) } })
    expect(await client.handlersFor(BeforeClusterCreate, cluster)).toEqual(['gate.a'])
    client.unregister('a')
    expect(await failureOf(client.call(BeforeClusterCreate, cluster, 'gate.a', { cluster }))).toEqual({
      code: 'not-registered',
      message:
        'failed to call extension handler "gate.a": failed to get extension handler "gate.a" from registry: handler with name "gate.a" has not been registered',
    })
  })
})

describe('discovery', () => {
  const announcing = (body: object) => async () => Response.json(body)
  const requestHook = { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' }

  it('sets defaults and appends the name of the ExtensionConfig to handler names', async () => {
    servers.a = announcing({ status: 'Success', handlers: [{ name: 'one', requestHook }] })
    expect(await newClient().discover(config('a'))).toEqual([
      { name: 'one.a', requestHook, timeoutSeconds: 10, failurePolicy: 'Fail' },
    ])
  })

  const invalid = 'failed to validate discovery response: '
  test.each<[string, object, string]>([
    ['the status Failure', { status: 'Failure', message: 'no' }, 'got failure response with message: no'],
    [
      'two handlers of one name',
      {
        status: 'Success',
        handlers: [
          { name: 'a', requestHook },
          { name: 'a', requestHook },
        ],
      },
      `${invalid}duplicate name for handler a found`,
    ],
    [
      'a timeout out of range, and an unknown failure policy',
      { status: 'Success', handlers: [{ name: 'a', requestHook, timeoutSeconds: 31, failurePolicy: 'Maybe' }] },
      `${invalid}[handler a timeoutSeconds 31 must be between 0 and 30, handler a failurePolicy Maybe must equal "Ignore" or "Fail"]`,
    ],
    [
      'an unknown hook',
      { status: 'Success', handlers: [{ name: 'a', requestHook: { ...requestHook, hook: 'BeforeLunch' } }] },
      `${invalid}handler a requestHook hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeLunch is not in the Runtime SDK catalog`,
    ],
    [
      'a handler without requestHook',
      { status: 'Success', handlers: [{ name: 'a' }] },
      `${invalid}handler a requestHook / is not in the Runtime SDK catalog`,
    ],
    [
      'an invalid handler name',
      { status: 'Success', handlers: [{ name: 'a.b', requestHook }] },
      `${invalid}handler name a.b is not valid: [must not contain dots]`,
    ],
  ])('is rejected with %s', async (_, body, message) => {
    servers.a = announcing(body)
    expect(await failureOf(newClient().discover(config('a')))).toMatchObject({
      message: `failed to discover extension "a": ${message}`,
    })
  })
})

describe('annotations of an ExtensionConfig', () => {
  const annotated = (annotations: Record<string, string>): ExtensionConfig => {
    const plain = config('a')
    return { ...plain, metadata: { ...plain.metadata, annotations } }
  }
  const clusterWith = (labels: Record<string, string>) =>
    ({ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', metadata: { name: 'c', namespace: 'default', labels } }) as never

  test.each([
    [{ team: 'blue' }, ['gate.a']],
    [{ team: 'red' }, []],
    [{}, []],
  ])('select Clusters by label: %o', async (labels, handlers) => {
    servers = { a: gate(() => proceedNow()) }
    const client = await clientOf([annotated({ 'runtime.capstan.dev/object-selector': 'team=blue' })])
    expect(await client.handlersFor(BeforeClusterCreate, clusterWith(labels))).toEqual(handlers)
  })

  it('override timeout and failure policy of a handler', async () => {
    servers = { a: gate(() => proceedNow()) }
    const overrides = JSON.stringify({ gate: { timeoutSeconds: 3, failurePolicy: 'Ignore' } })
    const client = await clientOf([annotated({ 'runtime.capstan.dev/handler-overrides': overrides })])
    await callGates(client)
    expect(called).toEqual([expect.stringContaining('?timeout=3s')])
    servers = {}
    expect(await callGates(client)).toEqual({ status: 'Success', retryAfterSeconds: 0 })
  })
})

test('observers get the time at which a call started, and its duration even if the clock is set back meanwhile', async () => {
  const answerAfter =
    (ms: number, server: FetchHandler): FetchHandler =>
    (request) => {
      clock.step(clock.now() + ms)
      clock.shift(-hours(1))
      return server(request)
    }
  servers = { gate: gate(() => proceedNow()) }
  const client = await clientOf([config('gate')])
  servers = { gate: answerAfter(20, servers.gate!) }
  const observed: ObservedCall[] = []
  client.observe((call) => void observed.push(call))
  const startedAt = clock.now()
  await callGates(client)
  expect(observed).toMatchObject([{ started: startedAt, took: 20 }])
})
