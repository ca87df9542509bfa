import { BeforeClusterCreate, type Cluster, createCatalog, ExtensionConfig, hookCatalog } from '@capstan/api'
import {
  createExtensionClient,
  defineExtension,
  extensionServer,
  type FetchHandler,
  inProcess,
  NoAnswer,
  on,
  proceedNow,
} from '@capstan/extension'
import { diagnostics } from '@capstan/controller'
import {
  admissionOf,
  Event,
  getCondition,
  legacyConditionsOf,
  minutes,
  Secret,
  seconds,
  silent,
  StatusError,
  type Transport,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import { testEnv, type TestEnvOptions } from '@capstan/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { extensionConfigAdmission } from './admission.ts'
import { createExtensionConfigController } from './controller.ts'

/** A server of an extension with one handler of this name. */
const gate = (name: string): FetchHandler =>
  extensionServer(defineExtension({ name: 'x', handlers: [on(BeforeClusterCreate, { name }, () => proceedNow())] }))
/** A server to which no connection can be made. */
const broken: FetchHandler = async () => {
  throw new NoAnswer('ConnectionRefused', 'dial tcp 127.0.0.1:9443: connect: connection refused')
}

let server: FetchHandler
let calls: number
beforeEach(() => {
  server = gate('gate')
  calls = 0
})

type Start = Partial<Pick<TestEnvOptions, 'store' | 'clock' | 'patience' | 'between' | 'limits'>>

async function start(from: Start = {}) {
  const clock = from.clock ?? new VirtualClock()
  const extensions = createExtensionClient({
    transport: inProcess((request) => {
      calls++
      return server(request)
    }),
    catalog: createCatalog(hookCatalog),
    clock,
    log: silent,
    namespaceLabels: async () => ({}),
  })
  const env = await testEnv({
    kinds: [ExtensionConfig],
    admission: admissionOf([ExtensionConfig]),
    controllers: [createExtensionConfigController({ extensions })],
    ...from,
    clock,
  })
  const handlers = () => extensions.handlersFor(BeforeClusterCreate, { metadata: { namespace: 'default' } } as Cluster)
  const read = () => env.client.get(ExtensionConfig, { name: 'sample' })
  return { ...env, extensions, handlers, read }
}
type World = Awaited<ReturnType<typeof start>>

let world: World
afterEach(() => world.close())

const create = (annotations: { [key: string]: string } = {}) =>
  world.client.create(ExtensionConfig, {
    metadata: { name: 'sample', annotations },
    spec: { clientConfig: { url: 'https://127.0.0.1:9443' } },
  })
const discovered = async () => {
  const { status, reason, message } = getCondition(await world.read(), 'Discovered')!
  return { status, reason, message }
}
const unreachable = {
  status: 'False',
  reason: 'NotDiscovered',
  message:
    'ConnectionRefused: Error in discovery: failed to discover extension "sample": http call failed: Post "https://127.0.0.1:9443/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?timeout=10s": dial tcp 127.0.0.1:9443: connect: connection refused',
}

describe('an ExtensionConfig', () => {
  beforeEach(async () => {
    world = await start()
  })

  it('is discovered with one call: its status lists the handlers, and they are registered', async () => {
    await create()
    await world.settle()
    const { spec, status } = await world.read()
    expect(spec.namespaceSelector).toEqual({})
    expect(status?.handlers).toEqual([
      {
        name: 'gate.sample',
        requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' },
        timeoutSeconds: 10,
        failurePolicy: 'Fail',
      },
    ])
    expect(
      status?.conditions?.map(({ type, status, reason, observedGeneration }) => [type, status, reason, observedGeneration]),
    ).toEqual([
      ['Discovered', 'True', 'Discovered', 1],
      ['Paused', 'False', 'NotPaused', 1],
    ])
    expect(await world.handlers()).toEqual(['gate.sample'])
    expect(calls).toBe(1)
  })

  it('keeps its last registration while its server is unreachable, and is discovered again without a change of the ExtensionConfig', async () => {
    await create()
    await world.settle()
    server = broken
    await world.client.patch(ExtensionConfig, { name: 'sample' }, { type: 'merge', body: { spec: { settings: { a: 'b' } } } })
    await world.settle()
    expect(await discovered()).toEqual(unreachable)
    expect((await world.read()).status?.handlers?.map(({ name }) => name)).toEqual(['gate.sample'])
    expect(await world.handlers()).toEqual(['gate.sample'])

    server = gate('other')
    await world.advance(seconds(30))
    expect(await discovered()).toEqual({ status: 'True', reason: 'Discovered', message: '' })
    expect(await world.handlers()).toEqual(['other.sample'])
  })

  it('is called at the address of its current spec, even before it was discovered there', async () => {
    const hosts: string[] = []
    server = (request) => {
      const { host } = new URL(request.url)
      hosts.push(host)
      return (host === '127.0.0.1:9443' ? gate('gate') : broken)(request)
    }
    await create()
    await world.settle()
    const cluster = { kind: 'Cluster', metadata: { name: 'c', namespace: 'default', uid: '1' } } as Cluster
    const call = () => world.extensions.callAll(BeforeClusterCreate, cluster, { cluster })
    await call()
    const moveTo = async (url: string) => {
      const body = { spec: { clientConfig: { url } } }
      await world.client.patch(ExtensionConfig, { name: 'sample' }, { type: 'merge', body })
      await world.settle()
      hosts.length = 0
    }

    await moveTo('https://127.0.0.1:9')
    await expect(call()).rejects.toThrow('connection refused')
    expect(hosts).toEqual(['127.0.0.1:9'])
    // A failed discovery does not close the breaker of a handler that fails.
    for (let i = 0; i < 5; i++) await call().catch(() => {})
    await world.advance(seconds(1))
    // The call above and four calls of the loop open the breaker; the last call is not sent. The sixth request is the retried discovery.
    expect(hosts).toEqual(Array(6).fill('127.0.0.1:9'))
    expect([...world.extensions.breakers.values()].map(({ state }) => state)).toEqual(['half-open'])

    await moveTo('https://127.0.0.1:9443')
    await call()
    expect(hosts).toEqual(['127.0.0.1:9443'])
  })

  it('is called at its earlier address while it is paused, and then at the address of its current spec', async () => {
    await create()
    await world.settle()
    const body = {
      metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } },
      spec: { clientConfig: { url: 'https://127.0.0.1:9' } },
    }
    await world.client.patch(ExtensionConfig, { name: 'sample' }, { type: 'merge', body })
    server = async (request) => (new URL(request.url).host === '127.0.0.1:9443' ? gate('gate') : broken)(request)
    await world.settle()
    const cluster = { kind: 'Cluster', metadata: { name: 'c', namespace: 'default', uid: '1' } } as Cluster
    const call = () => world.extensions.callAll(BeforeClusterCreate, cluster, { cluster })
    await call()
    await world.client.patch(
      ExtensionConfig,
      { name: 'sample' },
      { type: 'merge', body: { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } } },
    )
    await world.settle()
    await expect(call()).rejects.toThrow('connection refused')
  })

  it.each<[string, string, FetchHandler, string]>([
    [
      'garbage',
      'Garbage',
      async () => new Response('<html>'),
      "http call failed: failed to decode response: invalid character '<' looking for beginning of value",
    ],
    [
      'the HTTP status code 404',
      'NotFound',
      async () => new Response('no such thing', { status: 404 }),
      'http call failed: got response with status code 404 != 200: response : "no such thing"',
    ],
    [
      'a failure',
      'ExtensionFailure',
      async () => Response.json({ status: 'Failure', message: 'not today' }),
      'got failure response with message: not today',
    ],
    [
      'an unknown hook',
      'UnknownHook',
      async () =>
        Response.json({ status: 'Success', handlers: [{ name: 'x', requestHook: { apiVersion: 'a/v1', hook: 'BeforeLunch' } }] }),
      'failed to validate discovery response: handler x requestHook a/v1/BeforeLunch is not in the Runtime SDK catalog',
    ],
  ])('reports that its server responds with %s', async (_, code, handle, problem) => {
    server = handle
    await create()
    await world.settle()
    expect(await discovered()).toEqual({
      status: 'False',
      reason: 'NotDiscovered',
      message: `${code}: Error in discovery: failed to discover extension "sample": ${problem}`,
    })
    expect(legacyConditionsOf(await world.read())).toMatchObject([
      {
        status: 'False',
        severity: 'Error',
        reason: 'DiscoveryFailed',
        message: `${code}: Error in discovery: failed to discover extension "sample": ${problem}`,
      },
    ])
    // The hooks of an extension that was never discovered are unknown, so calls of every hook fail.
    await expect(world.handlers()).rejects.toThrow(
      `ExtensionConfig "sample" has never been discovered: failed to discover extension "sample": ${problem}`,
    )
  })

  it('has metrics of discovery, of the calls of its handlers, and of the breaker', async () => {
    await create()
    await world.settle()
    const cluster = { kind: 'Cluster', metadata: { name: 'c', namespace: 'default', uid: '1' } } as Cluster
    await world.extensions.callAll(BeforeClusterCreate, cluster, { cluster })
    server = broken
    // The breaker opens after five failed calls, so the sixth is not sent.
    for (let i = 0; i < 6; i++) await world.extensions.callAll(BeforeClusterCreate, cluster, { cluster }).catch(() => {})
    const text = await (await diagnostics(world.manager, '/metrics')).text()
    const hook = 'host="127.0.0.1:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook='
    for (const line of [
      `capi_runtime_sdk_requests_total{code="200",${hook}"Discovery",status="Success"} 1`,
      `capi_runtime_sdk_requests_total{code="200",${hook}"BeforeClusterCreate",status="Success"} 1`,
      `capi_runtime_sdk_requests_total{code="<error>",${hook}"BeforeClusterCreate",status="Unknown"} 5`,
      `capi_runtime_sdk_request_duration_seconds_count{${hook}"BeforeClusterCreate"} 6`,
      'capstan_runtime_sdk_handler_requests_total{extension_config="sample",handler="gate.sample",announced_version="v1alpha1",hook="BeforeClusterCreate",outcome="unreachable"} 5',
      'capstan_runtime_sdk_breaker_state{handler="gate.sample"} 2',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
  })

  it('is discovered within half a minute after its server recovers, however long it was unreachable', async () => {
    server = broken
    await create()
    await world.settle()
    await world.advance(minutes(60))
    // Discovery is retried every 30 seconds, and more often in the first minute.
    expect(calls).toBeLessThan(140)
    server = gate('gate')
    await world.advance(seconds(30))
    expect(await world.handlers()).toEqual(['gate.sample'])
  })

  it('is discovered again after ten minutes, since no event reports a new server', async () => {
    await create()
    await world.settle()
    server = gate('newer')
    await world.advance(minutes(10))
    expect(await world.handlers()).toEqual(['newer.sample'])
  })

  it('keeps the client from being ready until its first discovery, so that no Cluster bypasses its hooks', async () => {
    const called = Promise.withResolvers<void>()
    const response = Promise.withResolvers<void>()
    server = async (request) => {
      called.resolve()
      await response.promise
      return gate('slow')(request)
    }
    await create()
    await called.promise
    expect(world.extensions.ready).toBe(false)
    response.resolve()
    await world.settle()
    expect(world.extensions.ready).toBe(true)
    expect(await world.handlers()).toEqual(['slow.sample'])
  })

  it('is unregistered when it is deleted', async () => {
    await create()
    await world.settle()
    await world.client.delete(ExtensionConfig, { name: 'sample' })
    await world.settle()
    expect(await world.handlers()).toEqual([])
  })

  it('that is created with the paused annotation is not discovered', async () => {
    await create({ 'cluster.x-k8s.io/paused': '' })
    await world.settle()
    expect(getCondition(await world.read(), 'Paused')).toMatchObject({
      status: 'True',
      message: 'ExtensionConfig has the cluster.x-k8s.io/paused annotation',
    })
    expect(calls).toBe(0)
  })

  it('is rejected without a URL or service, with an error that names the field', async () => {
    const object = { metadata: { name: 'sample' }, spec: { clientConfig: { caBundle: 'eA==' } } }
    await expect(world.client.create(ExtensionConfig, object)).rejects.toThrow(
      'ExtensionConfig.runtime.cluster.x-k8s.io "sample" is invalid: spec.clientConfig: Required value: either url or service must be defined',
    )
  })
})

describe('the caBundle', () => {
  beforeEach(async () => {
    world = await start()
  })
  const annotation = { 'runtime.cluster.x-k8s.io/inject-ca-from-secret': 'default/ca' }

  it('is copied from the Secret that the annotation names, when the Secret is created and when it changes', async () => {
    await create(annotation)
    await world.settle()
    expect(await discovered()).toMatchObject({
      reason: 'NotDiscovered',
      message:
        'CABundle: Error in discovery: failed to reconcile caBundle: failed to get secret "default/ca": secrets "ca" not found',
    })

    const [one, two] = ['one', 'two'].map((content) => btoa(`-----BEGIN CERTIFICATE-----\n${content}`))
    const secret = { metadata: { name: 'ca', namespace: 'default' }, data: { 'ca.crt': one! } }
    await world.client.create(Secret, secret)
    await world.settle()
    await world.advance(seconds(1))
    expect((await world.read()).spec.clientConfig.caBundle).toBe(one)
    expect(await discovered()).toMatchObject({ status: 'True' })

    const body = { data: { 'ca.crt': two } }
    await world.client.patch(Secret, { namespace: 'default', name: 'ca' }, { type: 'merge', body })
    await world.advance(seconds(1))
    expect((await world.read()).spec.clientConfig.caBundle).toBe(two)
    expect((await world.read()).status?.conditions?.[0]).toMatchObject({ type: 'Discovered', observedGeneration: 3 })
  })
})

describe('at the start of a process', () => {
  const restart = async (restartOptions: Start = {}) => {
    const { store, clock, manager } = world
    await manager.stop()
    return start({ store, clock, ...restartOptions })
  }
  beforeEach(async () => {
    world = await start()
  })

  it('the client is ready at once when there is no ExtensionConfig', () => {
    expect(world.extensions.ready).toBe(true)
  })

  it('an unreachable extension is registered with the handlers in the status of its ExtensionConfig', async () => {
    await create()
    await world.settle()
    server = broken
    world = await restart()
    await world.settle()
    expect(world.extensions.ready).toBe(true)
    expect(await world.handlers()).toEqual(['gate.sample'])
    expect(await discovered()).toEqual(unreachable)
  })

  it('the client is not ready before discovery was tried for every ExtensionConfig', async () => {
    await create()
    await world.settle()
    server = () => new Promise(() => {})
    world = await restart({ patience: 300 })
    expect(world.extensions.ready).toBe(false)
    await world.advance(seconds(10))
    expect(world.extensions.ready).toBe(true)
    expect(await discovered()).toMatchObject({ message: expect.stringContaining('http request timeout expired') })
  })

  it('an ExtensionConfig that is being deleted is neither awaited nor called', async () => {
    await create()
    await world.settle()
    const key = { name: 'sample' }
    const body = { metadata: { finalizers: ['test.example.com/keep'] } }
    await world.client.patch(ExtensionConfig, key, { type: 'merge', body })
    await world.client.delete(ExtensionConfig, key)
    world = await restart()
    await world.settle()
    expect(world.extensions.ready).toBe(true)
    expect(await world.handlers()).toEqual([])
  })

  describe('a paused ExtensionConfig', () => {
    const paused = { 'cluster.x-k8s.io/paused': '' }
    const pausedStatus = async () => getCondition(await world.read(), 'Paused')?.status

    it('is discovered and registered, once', async () => {
      await create(paused)
      await world.settle()
      expect(calls).toBe(0)
      world = await restart()
      await world.settle()
      expect(await discovered()).toEqual({ status: 'True', reason: 'Discovered', message: '' })
      expect(await pausedStatus()).toBe('True')
      expect(await world.handlers()).toEqual(['gate.sample'])
      await world.advance(minutes(30))
      expect(calls).toBe(1)
    })

    it('blocks the Clusters that it selects until it is discovered', async () => {
      await create(paused)
      await world.settle()
      server = broken
      world = await restart()
      await world.advance(minutes(1))
      expect(world.extensions.ready).toBe(true)
      expect(await discovered()).toEqual(unreachable)
      await expect(world.handlers()).rejects.toThrow('ExtensionConfig "sample" has never been discovered')
      server = gate('gate')
      await world.advance(seconds(30))
      expect(await world.handlers()).toEqual(['gate.sample'])
    })
  })

  describe('with a watch filter', () => {
    const limits: Start['limits'] = { eventFilter: ({ metadata }) => metadata.labels?.['mine'] === 'yes' }

    it('an ExtensionConfig that the filter excludes is discovered and registered', async () => {
      await create()
      await world.settle()
      server = gate('newer')
      world = await restart({ limits })
      await world.settle()
      expect(world.extensions.ready).toBe(true)
      expect(await world.handlers()).toEqual(['newer.sample'])
    })

    it('the caBundle follows its Secret, although the filter excludes the ExtensionConfig and the Secret', async () => {
      await create({ 'runtime.cluster.x-k8s.io/inject-ca-from-secret': 'default/ca' })
      const [one, two] = ['one', 'two'].map((content) => btoa(`-----BEGIN CERTIFICATE-----\n${content}`))
      const key = { namespace: 'default', name: 'ca' }
      await world.client.create(Secret, { metadata: key, data: { 'ca.crt': one! } })
      world = await restart({ limits })
      await world.settle()
      expect((await world.read()).spec.clientConfig.caBundle).toBe(one)
      await world.client.patch(Secret, key, { type: 'merge', body: { data: { 'ca.crt': two } } })
      await world.advance(seconds(1))
      expect((await world.read()).spec.clientConfig.caBundle).toBe(two)
    })

    it('a later ExtensionConfig that the filter excludes is ignored', async () => {
      world = await restart({ limits })
      await create()
      await world.settle()
      expect(world.extensions.ready).toBe(true)
      expect(await world.handlers()).toEqual([])
      expect(calls).toBe(0)
    })
  })
})

describe('while patches of ExtensionConfigs are rejected', () => {
  let isRejecting: boolean
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      if (isRejecting && request.plural === 'extensionconfigs' && request.verb === 'patch')
        throw new StatusError('Forbidden', 'extensionconfigs "sample" is forbidden: no writes today')
      return transport.send(request, signal)
    })
  beforeEach(() => {
    isRejecting = true
  })

  it('a new ExtensionConfig blocks the Clusters that it selects, although the client is ready', async () => {
    world = await start({ between })
    await create()
    await world.settle()
    expect(world.extensions.ready).toBe(true)
    await expect(world.handlers()).rejects.toThrow(
      'ExtensionConfig "sample" has never been discovered: extensionconfigs "sample" is forbidden: no writes today',
    )
    isRejecting = false
    await world.advance(minutes(1))
    expect(await world.handlers()).toEqual(['gate.sample'])
  })

  it('an ExtensionConfig that was discovered before keeps its handlers', async () => {
    world = await start()
    await create()
    await world.settle()
    const { store, clock, manager } = world
    await manager.stop()
    server = gate('newer')
    world = await start({ store, clock, between })
    await world.settle()
    expect(world.extensions.ready).toBe(true)
    expect(await world.handlers()).toEqual(['gate.sample'])
  })
})

describe('overrides of handlers', () => {
  const overridden = (overrides: object) => create({ 'runtime.capstan.dev/handler-overrides': JSON.stringify(overrides) })

  it('are shown in the status', async () => {
    world = await start()
    await overridden({ gate: { timeoutSeconds: 3, failurePolicy: 'Ignore' } })
    await world.settle()
    expect((await world.read()).status?.handlers).toMatchObject([
      { name: 'gate.sample', timeoutSeconds: 3, failurePolicy: 'Ignore' },
    ])
    const body = { metadata: { annotations: { 'runtime.capstan.dev/handler-overrides': null } } }
    await world.client.patch(ExtensionConfig, { name: 'sample' }, { type: 'merge', body })
    await world.settle()
    expect((await world.read()).status?.handlers).toMatchObject([{ timeoutSeconds: 10, failurePolicy: 'Fail' }])
  })

  it('cause a warning when they are written, if they name an unknown handler', async () => {
    world = await start()
    await overridden({ gaet: { timeoutSeconds: 3 } })
    await world.settle()
    const warnings: string[] = []
    const validate = async (config: ExtensionConfig) => {
      const context = { operation: 'UPDATE', oldObject: config, dryRun: false, userInfo: {}, reader: world.client }
      const request = { ...context, warn: (text: string) => void warnings.push(text) }
      return extensionConfigAdmission(createCatalog(hookCatalog)).validate!(config, request as never)
    }
    const config = await world.read()
    expect(await validate(config)).toEqual([])
    expect(warnings).toEqual([
      'metadata.annotations[runtime.capstan.dev/handler-overrides]: the extension has no handler gaet: its handlers are gate',
    ])
    warnings.length = 0
    // The handlers of an extension that was never discovered are unknown.
    const { status: _, ...undiscovered } = config
    expect(await validate(undiscovered as ExtensionConfig)).toEqual([])
    expect(warnings).toEqual([])
  })

  it('are reported as an Event if they name an unknown handler', async () => {
    world = await start()
    await overridden({ gaet: { timeoutSeconds: 3 } })
    await world.settle()
    const { items } = await world.client.list(Event)
    expect(items.map(({ reason, message }) => `${reason}: ${message}`)).toContain(
      'UnknownHandlerOverride: metadata.annotations[runtime.capstan.dev/handler-overrides]: the extension has no handler gaet: its handlers are gate',
    )
  })
})
