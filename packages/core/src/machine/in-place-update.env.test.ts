import { Cluster, Machine, RetryHooksAnnotation, waitingHooks } from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { seconds, StatusError, type Transport, withSend } from '@capstan/kube'
import { type CoreEnv, conditionText, coreEnv, DevConfig, DevMachine, scriptedRuntime } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

const inProgress = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress'
const pendingHooks = 'runtime.cluster.x-k8s.io/pending-hooks'
const inProgressPatch = { metadata: { annotations: { [inProgress]: '' } } }
const pendingPatch = { metadata: { annotations: { [pendingHooks]: 'UpdateMachine' } } }

type Script = Parameters<typeof scriptedRuntime>[0]['UpdateMachine']

/**
 * Provisions a Machine, and an extension that responds with the results of `respond`. `options.runtime` replaces this extension. Returns the
 * requests to this extension.
 */
async function provisionMachine(respond: Script, options: Parameters<typeof coreEnv>[0] = {}) {
  const requests: Record<string, unknown>[] = []
  const runtime = scriptedRuntime({
    UpdateMachine: (call) => {
      requests.push(call.request)
      return respond!(call)
    },
  })
  env = await coreEnv({ runtime, ...options })
  await env.provisionCluster()
  await env.provisionMachine('m1')
  return { requests }
}

/** Starts an update: writes the objects in the same order as the MachineSet controller. */
async function startUpdate(version = 'v1.35.0') {
  await env.patch(Machine, 'm1', inProgressPatch)
  await env.patch(DevMachine, 'm1', { ...inProgressPatch, spec: { size: version } })
  await env.patch(DevConfig, 'm1', inProgressPatch)
  await env.patch(Machine, 'm1', { ...pendingPatch, spec: { version } })
}

const machine = () => env.get(Machine, 'm1')
const updating = async () => conditionText(await machine(), 'Updating')
/** Returns the remaining update annotations, each with the kind of its object. */
async function remainingAnnotations(): Promise<string[]> {
  const objects = [await machine(), await env.get(DevMachine, 'm1'), await env.get(DevConfig, 'm1')]
  return objects.flatMap(({ kind, metadata: { annotations = {} } }) =>
    [inProgress, pendingHooks].filter((name) => annotations[name] !== undefined).map((name) => `${kind} ${name.split('/')[1]}`),
  )
}

test('sends the desired state to the extension, and removes all annotations of the update when it is done', async () => {
  const { requests } = await provisionMachine(() => undefined)
  await startUpdate()
  expect(requests).toMatchObject([
    {
      desired: {
        machine: { kind: 'Machine', metadata: { name: 'm1', namespace: 'default' }, spec: { version: 'v1.35.0' } },
        infrastructureMachine: { kind: 'DevMachine', spec: { size: 'v1.35.0' } },
        bootstrapConfig: { kind: 'DevConfig', metadata: { name: 'm1' } },
      },
    },
  ])
  const { desired } = requests[0] as { desired: Record<string, Record<string, unknown>> }
  for (const object of Object.values(desired)) {
    expect(Object.keys(object)).not.toContain('status')
    const sentFields = ['annotations', 'labels', 'name', 'namespace']
    expect(Object.keys(object.metadata as object).filter((field) => !sentFields.includes(field))).toEqual([])
  }
  expect(await remainingAnnotations()).toEqual([])
  expect(await updating()).toBe('False NotUpdating')
  expect((await machine()).status?.phase).toBe('Running')
})

test('calls a busy extension again after its retry time, not earlier, and reports its message on the Machine', async () => {
  const { requests } = await provisionMachine(({ nth }) => (nth < 3 ? { wait: 20, message: `step ${nth}` } : undefined))
  await startUpdate()
  expect(await updating()).toBe('True InPlaceUpdating: In-place update in progress: step 1')
  expect((await machine()).status?.phase).toBe('Updating')
  expect(conditionText(await machine(), 'Ready')).toBe('False NotReady: * Updating: In-place update in progress: step 1')
  expect(waitingHooks(await machine())).toMatchObject([
    { hook: 'UpdateMachine', handlers: ['scripted.test'], calls: 1, message: 'step 1' },
  ])
  // A reconcile before the retry time calls no extension.
  await env.patch(Cluster, 'demo', { metadata: { labels: { a: 'b' } } })
  await env.advance(seconds(10))
  expect(requests).toHaveLength(1)
  await env.advance(seconds(11))
  expect(requests).toHaveLength(2)
  expect(await updating()).toBe('True InPlaceUpdating: In-place update in progress: step 2')
  await env.advance(seconds(21))
  expect(requests).toHaveLength(3)
  expect(waitingHooks(await machine())).toEqual([])
  expect(await remainingAnnotations()).toEqual([])
  expect(conditionText(await machine(), 'Ready')).toBe('True Ready')
})

test('a blocking response without a message is reported as progress', async () => {
  await provisionMachine(() => ({ wait: 20 }))
  await startUpdate()
  expect(await updating()).toBe('True InPlaceUpdating: In-place update in progress')
})

test('a response stays cached when labels and annotations change', async () => {
  const { requests } = await provisionMachine(() => ({ wait: 3600 }))
  await startUpdate()
  await env.patch(Machine, 'm1', { metadata: { labels: { a: 'b' } } })
  await env.patch(DevMachine, 'm1', { metadata: { annotations: { heartbeat: '1' } } })
  await env.patch(DevConfig, 'm1', { metadata: { labels: { a: 'b' } } })
  await env.advance(seconds(5))
  expect(requests).toHaveLength(1)
})

test('a response expires when the desired state changes, or when a user requests a retry', async () => {
  const { requests } = await provisionMachine(() => ({ wait: 3600 }))
  await startUpdate('v1.35.0')
  expect(requests).toHaveLength(1)
  await env.patch(Machine, 'm1', { spec: { version: 'v1.35.1' } })
  await env.advance(seconds(2))
  expect(requests).toHaveLength(2)
  await env.patch(Cluster, 'demo', { metadata: { annotations: { [RetryHooksAnnotation]: 'now' } } })
  await env.advance(seconds(2))
  expect(requests).toHaveLength(3)
  // The Cluster controller removes the annotation from a Cluster without topology.
  expect((await env.get(Cluster, 'demo')).metadata.annotations ?? {}).not.toHaveProperty([RetryHooksAnnotation])
  await env.patch(Cluster, 'demo', { metadata: { annotations: { [RetryHooksAnnotation]: 'now' } } })
  await env.advance(seconds(2))
  expect(requests, 'the same value, set again, is another request').toHaveLength(4)
})

test('a failure is reported without the message of the extension, and retried', async () => {
  let isFull = true
  await provisionMachine(() => {
    if (isFull) throw new Error('the disk is full')
    return undefined
  })
  await startUpdate()
  expect(await updating()).toBe('True InPlaceUpdateFailed: UpdateMachine hook failed: please check controller logs for errors')
  isFull = false
  await env.advance(seconds(60))
  expect(await updating()).toBe('False NotUpdating')
  expect(await remainingAnnotations()).toEqual([])
})

test.each([
  ['no handler', []],
  ['two handlers', ['a.x', 'b.y']],
])('the update fails with %s registered, until there is exactly one', async (_, handlers: readonly string[]) => {
  let names = handlers
  const scripted = scriptedRuntime({ UpdateMachine: () => undefined })
  const runtime: RuntimeClient = { ...scripted, handlersFor: () => Promise.resolve(names) }
  await provisionMachine(() => undefined, { runtime })
  await startUpdate()
  expect(await updating()).toBe('True InPlaceUpdateFailed: UpdateMachine hook failed: please check controller logs for errors')
  names = ['a.x']
  await env.advance(seconds(60))
  expect(await updating()).toBe('False NotUpdating')
})

test('an extension that is removed right before its call does not complete the update', async () => {
  const runtime: RuntimeClient = {
    ...scriptedRuntime({ UpdateMachine: () => undefined }),
    // The real client returns the same when the handler was removed after its name was read.
    callAll: () => Promise.resolve({ status: 'Success', retryAfterSeconds: 0 } as never),
    call: () => Promise.reject(new Error('handler is not registered')),
  }
  await provisionMachine(() => undefined, { runtime })
  await startUpdate()
  expect(await updating()).toBe('True InPlaceUpdateFailed: UpdateMachine hook failed: please check controller logs for errors')
})

test('an extension that changes during its call is called again at once', async () => {
  let changed: (extensionConfig: string) => void = () => {}
  let calls = 0
  const scripted = scriptedRuntime({
    UpdateMachine: () => {
      if (calls++ === 0) changed('test')
      return { wait: 3600 }
    },
  })
  const runtime: RuntimeClient = {
    ...scripted,
    onChanged: (listener) => {
      changed = listener
    },
  }
  await provisionMachine(() => undefined, { runtime })
  await startUpdate()
  await env.advance(seconds(10))
  expect(calls).toBe(2)
})

test('a changed extension is called at once, a removed one is reported, and a newly registered one is called at once', async () => {
  let names: readonly string[] = ['a.x']
  let changed: (extensionConfig: string) => void = () => {}
  let calls = 0
  const scripted = scriptedRuntime({
    UpdateMachine: () => {
      calls++
      return { wait: 3600 }
    },
  })
  const runtime: RuntimeClient = {
    ...scripted,
    handlersFor: () => Promise.resolve(names),
    onChanged: (listener) => {
      changed = listener
    },
  }
  await provisionMachine(() => undefined, { runtime })
  await startUpdate()
  changed('other')
  await env.advance(seconds(2))
  expect(calls).toBe(1)
  changed('x')
  await env.advance(seconds(2))
  expect(calls).toBe(2)

  names = []
  changed('x')
  await env.advance(seconds(300))
  expect(await updating()).toMatch(/^True InPlaceUpdateFailed/)
  // The next retry of the failed reconcile is not due yet.
  names = ['b.y']
  changed('y')
  await env.advance(seconds(1))
  expect(calls).toBe(3)
  expect(await updating()).toMatch(/^True InPlaceUpdating/)
})

test('calls no extension before the registered extensions are known', async () => {
  let ready = false
  const scripted = scriptedRuntime({ UpdateMachine: () => undefined })
  const runtime: RuntimeClient = {
    ...scripted,
    get ready() {
      return ready
    },
  }
  await provisionMachine(() => undefined, { runtime })
  await startUpdate()
  await env.advance(seconds(5))
  expect(await updating()).toBe('True InPlaceUpdating: In-place update in progress')
  ready = true
  await env.advance(seconds(2))
  expect(await updating()).toBe('False NotUpdating')
})

test.each([
  [
    'the pending hook on the Machine',
    async () => {
      await env.patch(Machine, 'm1', inProgressPatch)
      await env.patch(DevMachine, 'm1', inProgressPatch)
      await env.patch(DevConfig, 'm1', inProgressPatch)
    },
    () => env.patch(Machine, 'm1', pendingPatch),
  ],
  [
    'the annotation on the infrastructure machine',
    async () => {
      await env.patch(Machine, 'm1', inProgressPatch)
      await env.patch(DevConfig, 'm1', inProgressPatch)
      await env.patch(Machine, 'm1', pendingPatch)
    },
    () => env.patch(DevMachine, 'm1', inProgressPatch),
  ],
  [
    'the annotation on the bootstrap config',
    async () => {
      await env.patch(Machine, 'm1', inProgressPatch)
      await env.patch(DevMachine, 'm1', inProgressPatch)
      await env.patch(Machine, 'm1', pendingPatch)
    },
    () => env.patch(DevConfig, 'm1', inProgressPatch),
  ],
] as const)('an update waits for %s', async (_, writeMost, writeLast) => {
  const { requests } = await provisionMachine(() => undefined)
  await writeMost()
  await env.advance(seconds(30))
  expect(requests).toEqual([])
  expect(await updating()).toBe('True InPlaceUpdating: In-place update in progress')
  await writeLast()
  expect(requests).toHaveLength(1)
  expect(await remainingAnnotations()).toEqual([])
})

test('an update ends without another call when a user removes update-in-progress from the Machine', async () => {
  const { requests } = await provisionMachine(() => ({ wait: 3600 }))
  await startUpdate()
  await env.patch(Machine, 'm1', { metadata: { annotations: { [inProgress]: null } } })
  await env.settle()
  expect(requests).toHaveLength(1)
  expect(await remainingAnnotations()).toEqual([])
  expect(await updating()).toBe('False NotUpdating')
})

test('other pending hooks stay pending', async () => {
  await provisionMachine(() => undefined)
  await env.patch(Machine, 'm1', { metadata: { annotations: { [pendingHooks]: 'Another' } } })
  await env.patch(Machine, 'm1', inProgressPatch)
  await env.patch(DevMachine, 'm1', inProgressPatch)
  await env.patch(DevConfig, 'm1', inProgressPatch)
  await env.patch(Machine, 'm1', { metadata: { annotations: { [pendingHooks]: 'Another,UpdateMachine' } } })
  expect((await machine()).metadata.annotations).toEqual({ [pendingHooks]: 'Another' })
})

test('a Machine whose infrastructure machine was deleted cannot be updated in place', async () => {
  const { requests } = await provisionMachine(() => ({ wait: 5 }))
  await startUpdate()
  await env.client.delete(DevMachine, { namespace: 'default', name: 'm1' })
  await env.advance(seconds(30))
  expect(await updating()).toBe('True InPlaceUpdateFailed: In-place update not possible: InfraMachine not found')
  const calls = requests.length
  await env.advance(seconds(60))
  expect(requests).toHaveLength(calls)
})

test('a Machine that is deleted during an update is removed without further calls', async () => {
  const { requests } = await provisionMachine(() => ({ wait: 5 }))
  await env.patch(Machine, 'm1', { metadata: { annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/x': '' } } })
  await startUpdate()
  await env.client.delete(Machine, { namespace: 'default', name: 'm1' })
  await env.settle()
  const calls = requests.length
  await env.advance(seconds(30))
  expect(requests).toHaveLength(calls)
  const deletedMachine = await machine()
  expect(deletedMachine.status?.phase).toBe('Deleting')
  expect(conditionText(deletedMachine, 'Updating')).toMatch(/^True InPlaceUpdating/)
  await env.patch(Machine, 'm1', { metadata: { annotations: { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/x': null } } })
  await env.advance(seconds(5))
  await expect(machine()).rejects.toThrow('not found')
})

test('annotations are removed in order; a failed removal is retried, and the extension is called again only if the first removal failed', async () => {
  for (let failingWrite = 1; failingWrite <= 4; failingWrite++) {
    const writes: string[] = []
    let isFailing = false
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const annotations = (request.body as { metadata?: { annotations?: Record<string, unknown> } })?.metadata?.annotations
        if (isFailing && request.verb === 'patch' && annotations) {
          const removed = Object.keys(annotations).filter((name) => annotations[name] === null)
          if (removed.length > 0) writes.push(`${request.plural} ${removed.map((name) => name.split('/')[1]).join(' ')}`)
          if (writes.length === failingWrite && removed.length > 0) {
            isFailing = false
            throw new StatusError('ServiceUnavailable', 'lost on the way')
          }
        }
        return transport.send(request, signal)
      })
    const { requests } = await provisionMachine(() => undefined, { between })
    isFailing = true
    await startUpdate()
    await env.advance(seconds(30))
    expect(writes).toEqual(
      [
        'machines update-in-progress',
        'devmachines update-in-progress',
        'devconfigs update-in-progress',
        'machines update-in-progress pending-hooks',
      ].slice(0, failingWrite),
    )
    expect(await remainingAnnotations()).toEqual([])
    // If the first write fails, no annotation was removed yet, and the extension is called again.
    expect(requests).toHaveLength(failingWrite === 1 ? 2 : 1)
    if (failingWrite < 4) await env.close()
  }
})
