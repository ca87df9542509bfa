import { BeforeClusterCreate, BeforeClusterUpgrade, type Cluster } from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { blockingMessage, heldByAnnotation, LifecycleHooks } from './lifecycle-hooks.ts'

const aCluster = (annotations: Record<string, string> = {}): Cluster =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'demo', namespace: 'default', uid: 'u1', resourceVersion: '7', managedFields: [], annotations },
    spec: { topology: { classRef: { name: 'quick' }, version: 'v1.35.0' } },
    status: { phase: 'Provisioned' },
  }) as unknown as Cluster

function aRuntime(answers: { retryAfterSeconds?: number; message?: string }[]) {
  const state = { calls: 0, handlers: ['h.ext'], requests: [] as unknown[] }
  const answer = (request: unknown) => {
    state.requests.push(request)
    return { status: 'Success', ...answers[Math.min(state.calls++, answers.length - 1)] } as never
  }
  const client: RuntimeClient = {
    ready: true,
    handlersFor: async () => state.handlers,
    callAll: async (_hook, _for, request) => answer(request),
    call: async (_hook, _for, _handler, request) => answer(request),
  }
  return { client, state }
}
const { signal } = new AbortController()

describe('a blocking answer', () => {
  test('is kept until its time is over, and nobody is called before', async () => {
    const clock = new VirtualClock()
    const { client, state } = aRuntime([{ retryAfterSeconds: 10, message: 'wait' }, { retryAfterSeconds: 0 }])
    const hooks = new LifecycleHooks(client, clock)
    const call = () => hooks.call(BeforeClusterCreate, aCluster(), {}, signal)

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
    expect(await call()).toEqual({ kind: 'go' })
    expect(state.calls).toBe(2)
  })

  test('does not answer another question', async () => {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    const ask = (toKubernetesVersion: string) =>
      hooks.call(BeforeClusterUpgrade, aCluster(), { fromKubernetesVersion: 'v1.34.0', toKubernetesVersion }, signal)
    await ask('v1.35.0')
    await ask('v1.35.0')
    await ask('v1.35.1')
    expect(state.calls).toBe(2)
  })

  test('is void when nobody is there to give it any more', async () => {
    const { client, state } = aRuntime([{ retryAfterSeconds: 600 }])
    const hooks = new LifecycleHooks(client, new VirtualClock())
    await hooks.call(BeforeClusterCreate, aCluster(), {}, signal)
    state.handlers = []
    expect(await hooks.call(BeforeClusterCreate, aCluster(), {}, signal)).toEqual({ kind: 'go' })
  })
})

test('requests carry the Cluster without its status', async () => {
  const { client, state } = aRuntime([{}])
  await new LifecycleHooks(client, new VirtualClock()).call(BeforeClusterCreate, aCluster(), {}, signal)
  const [{ cluster }] = state.requests as [{ cluster: object }]
  expect(cluster).toMatchObject({ kind: 'Cluster', metadata: { name: 'demo', uid: 'u1' } })
  expect(cluster).not.toHaveProperty('status')
})

const prefix = 'before-upgrade.hook.cluster.cluster.x-k8s.io'
test.each([
  ['none', {}, undefined],
  ['one', { [`${prefix}/a`]: '' }, `annotation ${prefix}/a is set`],
  ['two', { [`${prefix}/b`]: '', [`${prefix}/a`]: '' }, `annotations ${prefix}/a, ${prefix}/b are set`],
])('annotations hold an upgrade back: %s', (_, annotations, message) => {
  expect(heldByAnnotation(aCluster(annotations as Record<string, string>))?.message).toBe(message)
})

test('hooks that block are told in the order of their names, with what they say', () => {
  const hooks = [
    { hook: 'B', message: '', retryAfter: 1, handlers: [], called: true },
    { hook: 'A', message: 'later', retryAfter: 1, handlers: [], called: true },
  ]
  expect(blockingMessage(hooks, 'upgrade')).toBe('Following hooks are blocking upgrade: A: later; B')
})
