/**
 * Tests extensions that refuse connections, are unresponsive, or are removed during a call: neither the manager nor Clusters that they do not
 * select are affected.
 */
import { BeforeClusterCreate, Cluster, ExtensionConfig, waitingHooks } from '@capstan/api'
import { defineExtension, extensionServer, type HookTransport, inProcess, NoAnswer, on, proceedNow } from '@capstan/extension'
import { getCondition, minutes, Namespace, seconds, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'

type Mode = 'answers' | 'refuses' | 'hangs'

let env: ManagementEnv
let stores: ReturnType<typeof memoryStores>
let clock: VirtualClock
let mode: Mode
let called: string[]
/** Functions that end hanging calls, as timeouts do. */
let hanging: (() => void)[]
beforeEach(() => {
  hanging = []
  stores = memoryStores()
  clock = new VirtualClock()
  called = []
})
afterEach(() => env.close())

/** Returns a transport to the extensions `good` and `dead`, by the host of the URL. `mode` determines how `dead` behaves. */
const transport = (): HookTransport => {
  const serverOf = (name: string) =>
    inProcess(
      extensionServer(
        defineExtension({
          name,
          handlers: [
            on(BeforeClusterCreate, { name: 'gate' }, ({ request: { cluster } }) => {
              called.push(`${name} for ${cluster.metadata.namespace}`)
              return proceedNow()
            }),
          ],
        }),
        { clock },
      ),
    )
  const servers = { good: serverOf('good'), dead: serverOf('dead') }
  return {
    post(target, body, signal) {
      const isDead = target.url.hostname === 'dead.test'
      if (isDead && mode === 'refuses') {
        return Promise.reject(new NoAnswer('ConnectionRefused', 'dial tcp 10.0.0.1:443: connect: connection refused'))
      }
      if (isDead && mode === 'hangs') {
        return new Promise((_, reject) => {
          hanging.push(() => reject(new NoAnswer('Timeout', 'context deadline exceeded')))
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      }
      return servers[isDead ? 'dead' : 'good'].post(target, body, signal)
    },
    close() {},
  }
}

const start = async () => {
  env = await managementEnv({ stores, clock, hookTransport: transport() })
}

/** Creates the class and a namespace that the unresponsive extension selects, and registers both extensions. */
async function prepare(): Promise<void> {
  await createFrom(env.client, new URL('../../lab/demo/class.yaml', import.meta.url))
  await env.client.create(Namespace, { metadata: { name: 'guarded' } })
  await env.client.create(ExtensionConfig, { metadata: { name: 'good' }, spec: { clientConfig: { url: 'https://good.test' } } })
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'guarded' } }
  const spec = { clientConfig: { url: 'https://dead.test' }, namespaceSelector }
  await env.client.create(ExtensionConfig, { metadata: { name: 'dead' }, spec })
  await env.settle()
}

const clusterIn = (namespace: string, name = 'demo') =>
  env.client.create(Cluster, {
    metadata: { name, namespace },
    spec: {
      topology: {
        classRef: { name: 'demo', namespace: 'default' },
        version: 'v1.36.0',
        controlPlane: { replicas: 1 },
        workers: { machineDeployments: [{ class: 'worker', name: 'steady', replicas: 1 }] },
      },
    },
  })
const condition = async (namespace: string, type: string) => {
  const current = getCondition(await env.client.get(Cluster, { name: 'demo', namespace }), type)
  return `${current?.status} ${current?.reason}${current?.message ? `: ${current.message}` : ''}`
}
const refused = /http call failed: Post "https:\/\/dead\.test\/.*": dial tcp 10\.0\.0\.1:443: connect: connection refused$/

describe('a restarted manager with one extension that', () => {
  test.each<[string, Mode]>([
    ['refuses connections', 'refuses'],
    ['does not respond', 'hangs'],
  ])(
    '%s reconciles Clusters that the extension does not select; for Clusters that it selects, hooks fail with an error that names it, until it responds',
    async (_, modeAfterRestart) => {
      mode = 'answers'
      await start()
      await prepare()
      await env.close()

      mode = modeAfterRestart
      await start()
      // Discovery times out after ten seconds. From then on the extension refuses connections, because each further timeout would take real
      // time.
      await env.advance(seconds(10))
      mode = 'refuses'
      await clusterIn('default')
      await env.advance(seconds(15))
      expect(await condition('default', 'Available')).toMatch(/^True/)
      await clusterIn('guarded')
      await env.advance(seconds(11))
      expect(await condition('guarded', 'TopologyReconciled')).toMatch(
        /^False ReconcileFailed: .*failed to call extension handler "gate\.dead": .*connection refused$/,
      )
      expect(called).toEqual(['good for default'])

      mode = 'answers'
      await env.advance(minutes(2))
      expect(await condition('guarded', 'Available')).toMatch(/^True/)
      expect(called).toEqual(['good for default', 'dead for guarded', 'good for guarded'])
    },
  )
})

describe('an extension that was never reachable', () => {
  test('blocks the Clusters that it selects, with an error message, and is called within 45 s after it becomes reachable', async () => {
    mode = 'refuses'
    await start()
    await prepare()
    await clusterIn('default')
    await clusterIn('guarded')
    await env.advance(minutes(5))
    expect(await condition('default', 'Available')).toMatch(/^True/)
    const failed = await condition('guarded', 'TopologyReconciled')
    expect(failed).toMatch(/^False ReconcileFailed: .*: ExtensionConfig "dead" has never been discovered: /)
    expect(failed).toMatch(refused)
    const records = waitingHooks(await env.client.get(Cluster, { name: 'demo', namespace: 'guarded' }))
    expect(records).toMatchObject([{ hook: 'BeforeClusterCreate', handlers: [], extensionConfig: 'dead', calls: 0 }])

    mode = 'answers'
    // Discovery is retried every half minute, so the Cluster waits at most half a minute for it.
    await env.advance(seconds(45))
    expect(await condition('guarded', 'Available')).toMatch(/^True/)
    expect(called).toEqual(['good for default', 'dead for guarded', 'good for guarded'])
  })

  test.each<[string, () => Promise<unknown>]>([
    ['is deleted', () => env.client.delete(ExtensionConfig, { name: 'dead' })],
    [
      'is paused',
      () => {
        const body = { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }
        return env.client.patch(ExtensionConfig, { name: 'dead' }, { type: 'merge', body })
      },
    ],
  ])('blocks no Cluster after it %s', async (_, act) => {
    mode = 'refuses'
    await start()
    await prepare()
    await clusterIn('guarded')
    await env.advance(minutes(1))
    expect(await condition('guarded', 'TopologyReconciled')).toMatch(refused)
    await act()
    await env.advance(seconds(15))
    expect(await condition('guarded', 'Available')).toMatch(/^True/)
  })
})

test('Clusters continue at once when the labels of their namespace no longer match the selector', async () => {
  mode = 'answers'
  await start()
  await prepare()
  const body = { spec: { namespaceSelector: { matchLabels: { extensions: 'dead' } } } }
  await env.client.patch(ExtensionConfig, { name: 'dead' }, { type: 'merge', body })
  const label = (value: string | null) =>
    env.client.patch(Namespace, { name: 'guarded' }, { type: 'merge', body: { metadata: { labels: { extensions: value } } } })
  await label('dead')
  await env.settle()
  mode = 'refuses'
  await clusterIn('guarded')
  // After ten minutes the backoff is several minutes, so that only the changed label can cause the next reconcile.
  await env.advance(minutes(10))
  expect(await condition('guarded', 'TopologyReconciled')).toMatch(/^False ReconcileFailed: /)
  await label(null)
  await env.settle()
  expect((await env.client.get(Cluster, { name: 'demo', namespace: 'guarded' })).spec.infrastructureRef).toBeDefined()
})

describe('an unresponsive extension', () => {
  test('delays only the Clusters that it selects, also when 30 of them wait', async () => {
    mode = 'answers'
    await start()
    await prepare()
    mode = 'hangs'
    for (let i = 0; i < 30; i++) await clusterIn('guarded', `stuck-${i}`)
    await clusterIn('default')
    // No call times out, because no time passes. The controller must still have free reconcile workers.
    for (let i = 0; i < 1000; i++) await new Promise((resolve) => setImmediate(resolve))
    expect((await env.client.get(Cluster, { name: 'demo', namespace: 'default' })).spec.infrastructureRef).toBeDefined()
    expect(called).toEqual(['good for default'])
  })
})

describe('an extension that is removed while it is called', () => {
  /** Creates a Cluster whose hook call hangs, then deletes the ExtensionConfig. */
  async function removeDuringCall(): Promise<void> {
    mode = 'answers'
    await start()
    await prepare()
    mode = 'hangs'
    await clusterIn('guarded')
    await env.advance(seconds(1))
    expect(hanging).toHaveLength(1)
    await env.client.delete(ExtensionConfig, { name: 'dead' })
    await env.advance(seconds(1))
    expect(await condition('guarded', 'TopologyReconciled')).not.toMatch(/^False ReconcileFailed/)
  }

  test('delays its Clusters only until the call ends', async () => {
    await removeDuringCall()
    expect((await env.client.get(Cluster, { name: 'demo', namespace: 'guarded' })).spec.infrastructureRef).toBeUndefined()
    hanging[0]!()
    await env.advance(seconds(15))
    expect(hanging).toHaveLength(1)
    expect(await condition('guarded', 'Available')).toMatch(/^True/)
    expect(await condition('guarded', 'TopologyReconciled')).toMatch(/^True/)
    expect(waitingHooks(await env.client.get(Cluster, { name: 'demo', namespace: 'guarded' }))).toEqual([])
    expect(called).toEqual(['good for guarded'])
  })

  test('delays no other Cluster', async () => {
    await removeDuringCall()
    await clusterIn('default')
    await env.advance(seconds(15))
    expect(await condition('default', 'Available')).toMatch(/^True/)
    hanging[0]!()
  })
})
