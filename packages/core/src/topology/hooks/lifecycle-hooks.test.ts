import { BeforeClusterCreate, BeforeClusterUpgrade, type Cluster } from '@capstan/api'
import { HookFailed, type RuntimeClient } from '@capstan/extension'
import { hours, minutes, seconds, VirtualClock } from '@capstan/kube'
import { scriptedRuntime } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { withWaiting } from '../../waiting-records.ts'
import { blockingMessage, blockedByAnnotation, LifecycleHooks } from './lifecycle-hooks.ts'

const aCluster = (annotations: Record<string, string> = {}): Cluster =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'demo', namespace: 'default', uid: 'u1', resourceVersion: '7', managedFields: [], annotations },
    spec: { topology: { classRef: { name: 'quick' }, version: 'v1.35.0' } },
    status: { phase: 'Provisioned' },
  }) as unknown as Cluster

function aRuntime(responses: { retryAfterSeconds?: number; message?: string }[]) {
  const state = { calls: 0, handlers: ['h.ext'], requests: [] as unknown[], fails: undefined as Error | undefined }
  let changed: (extensionConfig: string) => void = () => {}
  const respond = (request: unknown) => {
    state.requests.push(request)
    return { status: 'Success', ...responses[Math.min(state.calls++, responses.length - 1)] } as never
  }
  const client: RuntimeClient = {
    ready: true,
    handlersFor: async () => state.handlers,
    callAll: async (_hook, _for, request, { onCall, onAnswer } = {}) => {
      for (const handler of state.handlers) onCall?.(handler)
      const response = respond(request)
      if (state.fails) throw state.fails
      onAnswer?.(state.handlers[0]!, response)
      return response
    },
    onChanged(listener) {
      changed = listener
    },
    call: async (_hook, _for, _handler, request) => respond(request),
  }
  return { client, state, changed: (extensionConfig: string) => changed(extensionConfig) }
}
const context = { signal: new AbortController().signal, withoutWorker: <T>(work: () => Promise<T>) => work() }
const annotated = ({ metadata, ...rest }: Cluster, annotations: string | Record<string, string>): Cluster => ({
  ...rest,
  metadata: {
    ...metadata,
    annotations: { ...metadata.annotations, ...(typeof annotations === 'string' ? { [annotations]: 'x' } : annotations) },
  },
})

describe('a blocking response', () => {
  test('is cached until its retry time: only then is the hook called again', async () => {
    const clock = new VirtualClock()
    const { client, state } = aRuntime([{ retryAfterSeconds: 10, message: 'wait' }, { retryAfterSeconds: 0 }])
    const hooks = new LifecycleHooks(client, clock)
    const call = () => hooks.call(BeforeClusterCreate, aCluster(), {}, context)

    expect(await call()).toMatchObject({
      kind: 'blocked',
      hook: 'BeforeClusterCreate',
      message: 'wait',
      retryAfter: 10_000,
      called: true,
    })
    clock.step(clock.now() + seconds(4))
    expect(await call()).toMatchObject({
      kind: 'blocked',
      hook: 'BeforeClusterCreate',
      message: 'wait',
      retryAfter: 6_000,
      called: false,
    })
    expect(state.calls).toBe(1)
    clock.step(clock.now() + seconds(6))
    expect(await call()).toMatchObject({ kind: 'proceed', called: true })
    expect(state.calls).toBe(2)
  })

  test('is not cached for a longer time when the clock is set back', async () => {
    const clock = new VirtualClock()
    const { client } = aRuntime([{ retryAfterSeconds: 10, message: 'wait' }, { retryAfterSeconds: 0 }])
    const hooks = new LifecycleHooks(client, clock)
    const call = () => hooks.call(BeforeClusterCreate, aCluster(), {}, context)
    await call()
    clock.shift(-hours(1))
    expect(await call()).toMatchObject({ kind: 'blocked', retryAfter: seconds(10), called: false })
    clock.step(clock.now() + seconds(10))
    expect(await call()).toMatchObject({ kind: 'proceed', called: true })
  })

  test('is not restored from a record whose time is in the future', async () => {
    const clock = new VirtualClock()
    const { client } = aRuntime([{ retryAfterSeconds: 10, message: 'wait' }, { retryAfterSeconds: 0 }])
    const first = await new LifecycleHooks(client, clock).call(BeforeClusterCreate, aCluster(), {}, context)
    if (first.kind !== 'blocked') throw new Error('expected the hook to block')
    const recorded = annotated(aCluster(), withWaiting(aCluster(), [first], clock.now())!)
    clock.shift(-hours(1))
    const next = await new LifecycleHooks(client, clock).call(BeforeClusterCreate, recorded, {}, context)
    expect(next).toMatchObject({ kind: 'proceed', called: true })
  })

  test('is restored by the next process from the record on the Cluster, if extension and request are unchanged', async () => {
    const clock = new VirtualClock()
    const { client, state, changed } = aRuntime([{ retryAfterSeconds: 600, message: 'wait' }])
    const first = await new LifecycleHooks(client, clock).call(BeforeClusterCreate, aCluster(), {}, context)
    if (first.kind !== 'blocked') throw new Error('expected the hook to block')
    const recorded = (cluster: Cluster) => annotated(cluster, withWaiting(cluster, [first], clock.now())!)

    clock.step(clock.now() + minutes(4))
    const hooks = new LifecycleHooks(client, clock)
    let enqueued = 0
    hooks.whenExtensionsChange(() => void enqueued++)
    const call = (cluster: Cluster) => hooks.call(BeforeClusterCreate, cluster, {}, context)
    expect(await call(recorded(aCluster()))).toMatchObject({
      kind: 'blocked',
      message: 'wait',
      retryAfter: minutes(6),
      called: false,
    })
    expect(state.calls).toBe(1)
    // A changed extension is called again despite the record.
    changed('ext')
    expect(enqueued).toBe(1)
    expect(await call(recorded(aCluster()))).toMatchObject({ kind: 'blocked', called: true })
    expect(state.calls).toBe(2)

    const other = new LifecycleHooks(client, clock)
    expect(await other.call(BeforeClusterCreate, recorded(aCluster({ approved: 'yes' })), {}, context)).toMatchObject({
      called: true,
    })
    clock.step(clock.now() + minutes(6))
    const late = new LifecycleHooks(client, clock)
    expect(await late.call(BeforeClusterCreate, recorded(aCluster()), {}, context)).toMatchObject({ called: true })
  })

  test('is dropped once for each retry request, however long the annotation stays', async () => {
    const clock = new VirtualClock()
    const { client, state } = aRuntime([{ retryAfterSeconds: 600, message: 'wait' }])
    const hooks = new LifecycleHooks(client, clock)
    const calls = async (cluster: Cluster, lifecycleHooks = hooks) => {
      lifecycleHooks.handleRetryRequest(cluster)
      const callsBefore = state.calls
      await lifecycleHooks.call(BeforeClusterCreate, cluster, {}, context)
      return state.calls - callsBefore
    }
    const requested = (text: string) => aCluster({ 'runtime.capstan.dev/retry-hooks': text })
    expect(await calls(aCluster())).toBe(1)
    expect([await calls(requested('now')), await calls(requested('now'))]).toEqual([1, 0])
    expect([await calls(requested('again')), await calls(aCluster())]).toEqual([1, 0])
    expect([await calls(requested('again')), await calls(requested('again'))]).toEqual([1, 0])
    // The annotation is written again before this process has seen the Cluster without it.
    hooks.retryRequestRemoved(requested('again'))
    expect([await calls(requested('again')), await calls(aCluster())]).toEqual([1, 0])

    // The record of an earlier process is valid, unless the retry request is still on the Cluster.
    const result = await hooks.call(BeforeClusterCreate, aCluster(), {}, context)
    if (result.kind !== 'blocked') throw new Error('expected the hook to block')
    const recorded = (cluster: Cluster) => annotated(cluster, withWaiting(cluster, [result], clock.now())!)
    expect(await calls(recorded(aCluster()), new LifecycleHooks(client, clock))).toBe(0)
    const next = new LifecycleHooks(client, clock)
    expect([await calls(recorded(requested('x')), next), await calls(recorded(aCluster()), next)]).toEqual([1, 0])
  })

  test('is dropped with its Cluster, and no state remains', async () => {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    for (let nth = 0; nth < 100; nth++) {
      const { metadata, ...rest } = aCluster()
      const cluster = { ...rest, metadata: { ...metadata, name: `c${nth}`, uid: `u${nth}` } }
      await hooks.call(BeforeClusterCreate, cluster, {}, context)
      expect(hooks.size).toBe(1)
      hooks.forget({ namespace: 'default', name: `c${nth}` })
    }
    expect([hooks.size, state.calls]).toEqual([0, 100])
    // A new Cluster of the same name replaces the earlier one.
    for (const uid of ['a', 'b']) {
      const { metadata, ...rest } = aCluster()
      await hooks.call(BeforeClusterCreate, { ...rest, metadata: { ...metadata, uid } }, {}, context)
    }
    expect([hooks.size, state.calls]).toEqual([1, 102])
  })

  test('is not used for another request', async () => {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    const call = (toKubernetesVersion: string) =>
      hooks.call(BeforeClusterUpgrade, aCluster(), { fromKubernetesVersion: 'v1.34.0', toKubernetesVersion }, context)
    await call('v1.35.0')
    await call('v1.35.0')
    await call('v1.35.1')
    expect(state.calls).toBe(2)
  })

  type Change = [what: string, next: (cluster: Cluster) => Cluster]
  /** Requests a hook for a Cluster before and after a change. Returns the total number of calls. */
  async function callsWithChange(next: Change[1]): Promise<number> {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    await hooks.call(BeforeClusterCreate, aCluster(), {}, context)
    await hooks.call(BeforeClusterCreate, next(aCluster()), {}, context)
    return state.calls
  }

  test.each<Change>([
    ['a label', ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, labels: { approved: 'yes' } } })],
    ['an annotation', (cluster) => annotated(cluster, 'approved')],
    [
      'the topology',
      ({ spec, ...rest }) => ({ ...rest, spec: { ...spec, topology: { ...spec.topology!, version: 'v1.35.1' } } }),
    ],
  ])('is not used after a change of %s', async (_, next) => expect(await callsWithChange(next)).toBe(2))

  test.each<Change>([
    ['the status', (cluster) => ({ ...cluster, status: { phase: 'Failed' } }) as Cluster],
    [
      'the resourceVersion and generation',
      ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, resourceVersion: '8', generation: 9 } }),
    ],
    ['the annotation pending-hooks', (cluster) => annotated(cluster, 'runtime.cluster.x-k8s.io/pending-hooks')],
    ['the annotation waiting-hooks', (cluster) => annotated(cluster, 'runtime.capstan.dev/waiting-hooks')],
    ['the annotation upgrade-step', (cluster) => annotated(cluster, 'topology.internal.cluster.x-k8s.io/upgrade-step')],
  ])('is still used after a change of %s', async (_, next) => expect(await callsWithChange(next)).toBe(1))

  test('whose handler changes the Cluster at each call leads to calls with growing delays', async () => {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const clock = new VirtualClock()
    const hooks = new LifecycleHooks(client, clock)
    const start = clock.now()
    const callTimes: number[] = []
    while (clock.now() - start < minutes(5)) {
      const callsBefore = state.calls
      await hooks.call(BeforeClusterCreate, aCluster({ seen: String(state.calls) }), {}, context)
      if (state.calls > callsBefore) callTimes.push((clock.now() - start) / 1000)
      clock.step(clock.now() + 100)
    }
    expect(callTimes).toEqual([0, 0.1, 1.1, 3.1, 7.1, 15.1, 31.1, 63.1, 127.1, 255.1])
    // A user's retry request leads to a call at once, in spite of the delay.
    const retried = aCluster({ 'runtime.capstan.dev/retry-hooks': 'now' })
    hooks.handleRetryRequest(retried)
    await hooks.call(BeforeClusterCreate, retried, {}, context)
    expect(state.calls).toBe(11)
  })

  test('is dropped when other handlers are registered, and when its extension has changed', async () => {
    const { client, state, changed } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    const enqueued: string[] = []
    hooks.whenExtensionsChange(({ name }) => enqueued.push(name))
    const call = () => hooks.call(BeforeClusterCreate, aCluster(), {}, context)
    await call()
    state.handlers = ['h.ext', 'second.other']
    await call()
    expect(state.calls).toBe(2)
    changed('other')
    expect(enqueued).toEqual([])
    changed('ext')
    expect(enqueued).toEqual(['demo'])
    await call()
    expect(state.calls).toBe(3)
  })

  test('is not cached when one of its extensions changes during the call', async () => {
    const { client, state, changed } = aRuntime([{ retryAfterSeconds: 600 }])
    state.handlers = ['h.first', 'h.ext']
    const [called, responses] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow: RuntimeClient = {
      ...client,
      callAll: async (...args) => {
        called.resolve()
        await responses.promise
        return client.callAll(...args)
      },
    }
    const hooks = new LifecycleHooks(slow, new VirtualClock())
    const enqueued: string[] = []
    hooks.whenExtensionsChange(({ name }) => enqueued.push(name))
    const call = () => hooks.call(BeforeClusterCreate, aCluster(), {}, context)
    const first = call()
    await called.promise
    expect(hooks.waitingIn('default'), 'a change of the labels of its namespace queues the Cluster').toEqual([
      { namespace: 'default', name: 'demo' },
    ])
    changed('other')
    expect(enqueued).toEqual([])
    changed('ext')
    expect(enqueued).toEqual(['demo'])
    responses.resolve()
    expect(await first).toMatchObject({ kind: 'blocked', called: true })
    expect(await call()).toMatchObject({ called: true })
    expect(await call()).toMatchObject({ called: false })
    expect(state.calls).toBe(2)
  })

  test('expires when its extension is removed', async () => {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    await hooks.call(BeforeClusterCreate, aCluster(), {}, context)
    state.handlers = []
    expect(await hooks.call(BeforeClusterCreate, aCluster(), {}, context)).toMatchObject({ kind: 'proceed', called: false })
  })
})

test('a failed call is not cached and names its handler; a change of the extension queues the Cluster', async () => {
  const { client, state, changed } = aRuntime([{}])
  const hooks = new LifecycleHooks(client, new VirtualClock())
  const enqueued: string[] = []
  hooks.whenExtensionsChange(({ name }) => enqueued.push(name))
  state.fails = new Error('no')
  const failed = { kind: 'failed', hook: 'BeforeClusterCreate', message: 'no', handlers: ['h.ext'], called: true }
  for (let calls = 1; calls < 4; calls++) {
    expect(await hooks.call(BeforeClusterCreate, aCluster(), {}, context)).toMatchObject(failed)
    expect(state.calls).toBe(calls)
  }
  changed('ext')
  expect(enqueued).toEqual(['demo'])
  // The code `unavailable`: the handler was not called.
  state.fails = new HookFailed('unavailable', 'breaker')
  expect(await hooks.call(BeforeClusterCreate, aCluster(), {}, context)).toMatchObject({ kind: 'failed', called: false })
})

test('an upgrade plan is not cached when its extension changes during the call', async () => {
  const { client, state, changed } = aRuntime([{}])
  const [called, responses] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: RuntimeClient = {
    ...client,
    call: async (...args) => {
      called.resolve()
      await responses.promise
      return client.call(...args)
    },
  }
  const hooks = new LifecycleHooks(slow, new VirtualClock())
  const enqueued: string[] = []
  hooks.whenExtensionsChange(({ name }) => enqueued.push(name))
  const due = { desired: 'v1.36.0', controlPlane: 'v1.35.0', workers: [], known: [] }
  const plan = () => hooks.upgradePlan(aCluster(), 'h.ext', due, context)
  const first = plan()
  await called.promise
  changed('other')
  expect(enqueued).toEqual([])
  changed('ext')
  expect(enqueued).toEqual(['demo'])
  responses.resolve()
  expect(await first).toMatchObject({ kind: 'proceed', called: true })
  expect(await plan()).toMatchObject({ called: true })
  expect(await plan()).toMatchObject({ called: false })
  expect(state.calls).toBe(2)
})

test('queues a Cluster once when an extension changes while the handlers of a hook are determined', async () => {
  const { client, changed } = aRuntime([{}])
  const lookup = Promise.withResolvers<readonly string[]>()
  const hooks = new LifecycleHooks({ ...client, handlersFor: () => lookup.promise }, new VirtualClock())
  const enqueued: string[] = []
  hooks.whenExtensionsChange(({ name }) => enqueued.push(name))
  const call = hooks.call(BeforeClusterCreate, aCluster(), {}, context)
  changed('ext')
  expect(enqueued).toEqual(['demo'])
  lookup.reject(new HookFailed('not-ready', 'never discovered', { extensionConfig: 'ext' }))
  expect(await call).toMatchObject({ kind: 'failed', extensionConfig: 'ext' })
  changed('ext')
  expect(enqueued, 'the second change does not queue the Cluster again').toEqual(['demo'])
})

test('requests contain the Cluster without its status', async () => {
  const { client, state } = aRuntime([{}])
  await new LifecycleHooks(client, new VirtualClock()).call(BeforeClusterCreate, aCluster(), {}, context)
  const [{ cluster }] = state.requests as [{ cluster: object }]
  expect(cluster).toMatchObject({ kind: 'Cluster', metadata: { name: 'demo', uid: 'u1' } })
  expect(cluster).not.toHaveProperty('status')
})

const prefix = 'before-upgrade.hook.cluster.cluster.x-k8s.io'
test.each([
  ['none', {}, undefined],
  ['one', { [`${prefix}/a`]: '' }, `annotation ${prefix}/a is set`],
  ['two', { [`${prefix}/b`]: '', [`${prefix}/a`]: '' }, `annotations ${prefix}/a, ${prefix}/b are set`],
])('the message lists the annotations that block an upgrade: %s', (_, annotations, message) => {
  expect(blockedByAnnotation(aCluster(annotations as Record<string, string>))?.message).toBe(message)
})

test('lists blocking hooks with their messages, sorted by name', () => {
  const hooks = [
    { hook: 'B', message: '', retryAfter: 1, handlers: [], called: true },
    { hook: 'A', message: 'later', retryAfter: 1, handlers: [], called: true },
  ]
  expect(blockingMessage(hooks, 'upgrade')).toBe('Following hooks are blocking upgrade: A: later; B')
})

test('an upgrade plan is not cached when its call fails and the failure policy ignores the failure', async () => {
  const script = { GenerateUpgradePlan: ({ nth }: { nth: number }) => (nth === 1 ? { ignored: true as const } : undefined) }
  const hooks = new LifecycleHooks(scriptedRuntime(script), new VirtualClock())
  const due = { desired: 'v1.36.0', controlPlane: 'v1.35.0', workers: [], known: [] }
  const plan = () => hooks.upgradePlan(aCluster(), 'scripted.test', due, context)
  expect(await plan()).toMatchObject({ called: true })
  expect(await plan()).toMatchObject({ called: true })
  expect(await plan()).toMatchObject({ called: false })
})
