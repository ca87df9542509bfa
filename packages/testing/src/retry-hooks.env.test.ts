/**
 * Tests the annotation with which a user requests that the blocking hooks of a Cluster are called again. After a request, each
 * blocking hook completes one call, and the annotation is removed, even if the process is killed meanwhile.
 */
import { type CanUpdateMachineSet, Cluster, type RequestOf, RetryHooksAnnotation, waitingHooks } from '@capstan/api'
import { seconds, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { afterEach, describe, expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { type MortalStores, mortalStores } from './mortal-stores.ts'
import { type ManagementEnv, managementEnv, type ManagementEnvOptions } from './management-env.ts'
import { type HookScript, scriptedRuntime } from './scripted-runtime.ts'

let env: ManagementEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'demo' }
const demo = new URL('../../lab/demo/', import.meta.url)

/** Script whose extension can apply changes of the version in place. `blocking` adds the hooks that block. */
const updating: HookScript = {
  CanUpdateMachineSet({ request }) {
    const { desired } = request as unknown as RequestOf<typeof CanUpdateMachineSet>
    const operations = [
      { op: 'replace', path: '/spec/template/spec/version', value: desired.machineSet.spec.template.spec.version },
    ]
    return { response: { machineSetPatch: { patchType: 'JSONPatch', patch: btoa(JSON.stringify(operations)) } } }
  },
}

/** Returns a script in which these hooks block for an hour at each call, the calls so far, and `onCall`, whose `run` is called in each call. */
function blocking(...hooks: string[]) {
  const calls: string[] = []
  const onCall = { run: () => {} }
  const wait = (hook: string) => () => {
    calls.push(hook)
    onCall.run()
    return { wait: 3600, message: 'later' }
  }
  return { calls, onCall, script: { ...updating, ...Object.fromEntries(hooks.map((hook) => [hook, wait(hook)])) } }
}

const start = (script: HookScript, options: Partial<ManagementEnvOptions> = {}) =>
  managementEnv({ runtime: scriptedRuntime(script), ...options })

/** Creates a Cluster and starts an upgrade, which waits for the blocking hook of the script, if there is one. */
async function anUpgrade(script: HookScript, options: Partial<ManagementEnvOptions> = {}): Promise<void> {
  env = await start(script, options)
  await createFrom(env.client, new URL('class.yaml', demo))
  await env.settle()
  await createFrom(env.client, new URL('cluster.yaml', demo))
  const rollout = { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }
  const change = (topology: object) => env.client.patch(Cluster, key, { type: 'merge', body: { spec: { topology } } })
  await change({ workers: { machineDeployments: [{ class: 'worker', name: 'steady', replicas: 1, rollout }] } })
  await env.advance(seconds(60))
  await change({ version: 'v1.36.1' })
  await env.advance(seconds(60))
}

const request = (text: string) =>
  env.client.patch(Cluster, key, { type: 'merge', body: { metadata: { annotations: { [RetryHooksAnnotation]: text } } } })
const annotation = async () => (await env.client.get(Cluster, key)).metadata.annotations?.[RetryHooksAnnotation]

test.each([['UpdateMachine'], ['BeforeClusterUpgrade']])(
  'a request is handled once and removed, and the same text is a new request later: %s',
  async (hook) => {
    const { script, calls } = blocking(hook)
    await anUpgrade(script)
    expect(calls).toEqual([hook])
    for (const expected of [2, 3]) {
      await request('now')
      await env.advance(seconds(60))
      expect(calls).toHaveLength(expected)
      expect(await annotation()).toBeUndefined()
    }
  },
)

test('a request that is written before the previous request is removed is also handled and removed', async () => {
  const { script, calls, onCall } = blocking('BeforeClusterUpgrade')
  await anUpgrade(script)
  let next: Promise<unknown> | undefined
  onCall.run = () => {
    next ??= request('second')
  }
  await request('first')
  await env.advance(seconds(60))
  await next
  expect(calls).toHaveLength(3)
  expect(await annotation()).toBeUndefined()
})

test('the annotation is also removed from a Cluster that waits for no hook', async () => {
  const { script, calls } = blocking()
  await anUpgrade(script)
  await request('now')
  await env.advance(seconds(10))
  expect([calls, await annotation()]).toEqual([[], undefined])
})

test('a paused Cluster keeps the request until it is unpaused', async () => {
  const { script, calls } = blocking('BeforeClusterUpgrade')
  await anUpgrade(script)
  const pause = (paused: boolean) => env.client.patch(Cluster, key, { type: 'merge', body: { spec: { paused } } })
  await pause(true)
  await request('now')
  await env.advance(seconds(60))
  expect([calls.length, await annotation()]).toEqual([1, 'now'])
  await pause(false)
  await env.advance(seconds(60))
  expect([calls.length, await annotation()]).toEqual([2, undefined])
})

describe('if the process is killed', () => {
  /**
   * Blocks a Cluster by a hook and requests a retry. Kills the process during the call or after `commitsUntilStop` commits (counted from that
   * of the request), and starts the next process. Returns the number of calls between the request and this start, the number of calls after
   * it, and, at the end, the annotation and the number of hooks that block the Cluster.
   */
  async function killAndRestart(hook: string, commitsUntilStop: number | 'in the call') {
    const { script, calls, onCall } = blocking(hook)
    const base = memoryStores()
    await anUpgrade(script, { stores: base })
    const { clock } = env
    const restart = async (stores: MortalStores, processClock = clock) => {
      await env.close()
      env = await start(script, { stores, clock: processClock })
      await env.advance(seconds(10))
    }
    await restart(mortalStores(base))
    // Counts the commits of a restart. The next process makes as many before the request.
    const counted = mortalStores(base)
    await restart(counted)
    // A process that is killed in the call, by `onCall`, does not reach its limit of 100 more commits.
    const stores = mortalStores(base, counted.commits + (commitsUntilStop === 'in the call' ? 100 : commitsUntilStop))
    await restart(stores)
    calls.length = 0
    if (commitsUntilStop === 'in the call') onCall.run = () => stores.kill()
    await Promise.race([request('now'), stores.death])
    if (!stores.isDead) await Promise.race([env.advance(seconds(30)), stores.death])
    expect(stores.isDead).toBe(true)

    onCall.run = () => {}
    stores.rejectPending()
    const callsBefore = calls.length
    await restart(mortalStores(base), new VirtualClock(clock.now()))
    await env.advance(seconds(60))
    const { length: records } = waitingHooks(await env.client.get(Cluster, key))
    return { before: callsBefore, after: calls.length - callsBefore, annotation: await annotation(), records }
  }

  test.each([
    ['after the request is written, the next process calls the hook', 1, [0, 1]],
    ['during the call, its response is lost, and the next process calls the hook again', 'in the call', [1, 1]],
    ['after the request is removed and the response recorded, the next process does not call the hook', 2, [1, 0]],
  ] as const)('%s', async (_, stop, [before, after]) => {
    expect(await killAndRestart('BeforeClusterUpgrade', stop)).toEqual({ before, after, annotation: undefined, records: 1 })
  })

  test.each([1, 2])('after write %i, counted from the request, the next process calls UpdateMachine once', async (stop) => {
    const { after, annotation } = await killAndRestart('UpdateMachine', stop)
    expect([after, annotation]).toEqual([1, undefined])
  })
})
