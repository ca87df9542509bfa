import { CanUpdateMachine, createCatalog, ExtensionConfig, hookCatalog } from '@capstan/api'
import { createExtensionClient, inProcess, NoAnswer } from '@capstan/extension'
import { admissionOf, type KubeObject, seconds, silent, VirtualClock } from '@capstan/kube'
import { type TestEnv, testEnv, type TestEnvOptions } from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { controller } from '@capstan/controller'
import {
  createExtensionConfigController,
  createReadOnlyExtensionConfigController,
  type ExtensionConfigOptions,
} from './controller.ts'

let env: TestEnv
afterEach(() => env.close())

const key = { name: 'sample' }
const machine = { metadata: { namespace: 'default' } } as KubeObject

/** Creates core's own controller as it handles ExtensionConfigs of another process's shard: with `observe` instead of `reconcile`. */
const createObservingController = (options: ExtensionConfigOptions) => {
  const { when: _, sources = [], name, for: kind, observe } = createExtensionConfigController(options)
  return controller({ name, for: kind, sources, reconcile: observe! })
}

describe.each([
  ['a manager of another provider', createReadOnlyExtensionConfigController],
  ['a manager of core that has another shard', createObservingController],
])('%s', (_, createController) => {
  /** Starts the manager, without a process that calls discovery. Calls of extensions fail, because this manager must not send any. */
  async function start({ clock = new VirtualClock(), ...options }: Partial<TestEnvOptions> = {}) {
    const extensions = createExtensionClient({
      transport: inProcess(() => {
        throw new NoAnswer('ConnectionRefused', 'this manager must not call extensions')
      }),
      catalog: createCatalog(hookCatalog),
      clock,
      log: silent,
      namespaceLabels: async () => ({}),
    })
    env = await testEnv({
      kinds: [ExtensionConfig],
      admission: admissionOf([ExtensionConfig]),
      controllers: [createController({ extensions })],
      clock,
      ...options,
    })
    return { extensions, handlers: () => extensions.handlersFor(CanUpdateMachine, machine) }
  }

  const create = (annotations: { [key: string]: string } = {}) =>
    env.client.create(ExtensionConfig, {
      metadata: { ...key, annotations },
      spec: { clientConfig: { url: 'https://127.0.0.1:9443' } },
    })

  /** Writes the status that core writes after discovery. Returns the written ExtensionConfig. */
  async function reportDiscovered(status: 'True' | 'False', handlers: readonly string[], observedGeneration = 1) {
    const condition = {
      type: 'Discovered',
      status,
      reason: status === 'True' ? 'Discovered' : 'NotDiscovered',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      observedGeneration,
    }
    const body = {
      status: {
        conditions: [condition],
        handlers: handlers.map((name) => ({
          name,
          requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'CanUpdateMachine' },
          timeoutSeconds: 10,
          failurePolicy: 'Fail',
        })),
      },
    }
    const reported = await env.client.patch(ExtensionConfig, key, { type: 'merge', body }, { subresource: 'status' })
    await env.settle()
    return reported
  }

  test('is ready at once without any ExtensionConfig', async () => {
    const { extensions, handlers } = await start()
    expect(extensions.ready).toBe(true)
    expect(await handlers()).toEqual([])
  })

  test('is not ready before the first report of core, registers the reported handlers without a write, unregisters them after a deletion', async () => {
    const { extensions, handlers } = await start()
    await create()
    await env.settle()
    expect(extensions.ready).toBe(false)
    const reported = await reportDiscovered('True', ['can.sample'])
    expect(extensions.ready).toBe(true)
    expect(await handlers()).toEqual(['can.sample'])
    expect(await env.client.get(ExtensionConfig, key)).toEqual(reported)

    await reportDiscovered('True', ['can.sample', 'too.sample'])
    expect(await handlers()).toEqual(['can.sample', 'too.sample'])
    await env.client.delete(ExtensionConfig, key)
    await env.settle()
    expect(await handlers()).toEqual([])
  })

  test('registers the handlers of an extension that core can no longer reach', async () => {
    const { extensions, handlers } = await start()
    await create()
    await reportDiscovered('False', ['can.sample'])
    expect(extensions.ready).toBe(true)
    expect(await handlers()).toEqual(['can.sample'])
  })

  test('a changed ExtensionConfig keeps its earlier registration until core has reconciled it', async () => {
    const { handlers } = await start()
    await create()
    await reportDiscovered('True', ['can.sample'])
    await env.client.patch(ExtensionConfig, key, { type: 'merge', body: { spec: { settings: { a: 'b' } } } })
    await reportDiscovered('True', [], 1)
    expect(await handlers()).toEqual(['can.sample'])
    await reportDiscovered('True', [], 2)
    expect(await handlers()).toEqual([])
  })

  test('waits at the start for an ExtensionConfig that the event filter excludes, and registers it within two seconds of the report', async () => {
    await start()
    await create()
    const { store, clock, manager } = env
    await manager.stop()
    const { extensions, handlers } = await start({ store, clock, limits: { eventFilter: () => false } })
    await reportDiscovered('True', ['can.sample'])
    expect(extensions.ready).toBe(false)
    await env.advance(seconds(2))
    expect(extensions.ready).toBe(true)
    expect(await handlers()).toEqual(['can.sample'])
  })

  test('does not wait for an ExtensionConfig that is being deleted', async () => {
    await start()
    await create()
    const body = { metadata: { finalizers: ['test.example.com/keep'] } }
    await env.client.patch(ExtensionConfig, key, { type: 'merge', body })
    await env.client.delete(ExtensionConfig, key)
    const { store, clock, manager } = env
    await manager.stop()
    const { extensions, handlers } = await start({ store, clock })
    await env.settle()
    expect(extensions.ready).toBe(true)
    expect(await handlers()).toEqual([])
  })

  test('does not wait for a paused ExtensionConfig', async () => {
    const { extensions, handlers } = await start()
    await create({ 'cluster.x-k8s.io/paused': '' })
    await env.settle()
    expect(extensions.ready).toBe(true)
    expect(await handlers()).toEqual([])
  })
})
