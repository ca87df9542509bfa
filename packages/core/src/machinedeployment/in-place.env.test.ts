import { isUpdateInProgress } from '@capstan/api'
import { type KubeObject, seconds, StatusError, type Transport } from '@capstan/kube'
import type { RuntimeClient } from '@capstan/extension'
import { scriptedRuntime } from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { ableExtension, inPlaceEnv, type InPlaceEnv, largerAndNewer } from './in-place-env.suite.ts'
import { DevMachine } from './sets-env.suite.ts'

let env: InPlaceEnv
afterEach(() => env.close())

const namespace = 'default'

describe('a MachineDeployment whose Machines an extension can update', () => {
  test('updates all Machines and their infrastructure in place, and calls CanUpdateMachineSet once', async () => {
    const { script, requests } = ableExtension()
    env = await inPlaceEnv(scriptedRuntime(script))
    const namesBefore = await env.names()
    await env.patch({ template: { spec: { ...largerAndNewer.template.spec, minReadySeconds: 0 } } })
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 1/1, 0 available
      v1.34.0 1/1, 1 available; v1.35.0 2/2, 1 available
      v1.34.0 0/0, 0 available; v1.35.0 3/3, 2 available
      v1.35.0 3/3, 3 available"
    `)
    expect(await env.names()).toEqual(namesBefore)
    await env.expectUpdated()
    expect(await env.events('SuccessfulStartInPlaceUpdate')).toEqual(namesBefore.map(() => 'Machine starting in-place update'))
    expect(requests).toHaveLength(1)
    const { current, desired } = requests[0]!
    // Fields that propagate in place are equal on both sides.
    for (const { machineSet } of [current, desired]) expect(machineSet.spec.template.spec.minReadySeconds).toBe(0)
    expect(current.machineSet).toMatchObject({ kind: 'MachineSet', spec: { template: { spec: { version: 'v1.34.0' } } } })
    expect(desired.machineSet).toMatchObject({ kind: 'MachineSet', spec: { template: { spec: { version: 'v1.35.0' } } } })
    expect(Object.keys(desired.machineSet)).not.toContain('status')
    const { items } = await env.client.list(DevMachine, { namespace: 'default' })
    const fieldManagers = items
      .flatMap(({ metadata }) => metadata.managedFields ?? [])
      .filter(({ manager }) => manager === 'capi-machineset')
    expect(new Set(fieldManagers.map(({ operation }) => operation)), 'as upstream, no operation is Update').toEqual(
      new Set(['Apply']),
    )
    expect(desired.infrastructureMachineTemplate).toMatchObject({ metadata: { name: 'larger' } })
    const { revision } = env.store
    await env.advance(seconds(3600))
    expect(env.store.revision, 'writes while nothing changes').toBe(revision)
  })

  test('sends no second request when the creation of the new set fails and is retried', async () => {
    const { script, requests } = ableExtension()
    // Each retry generates another name for the set, which the request contains.
    let rejections = 0
    const between = (transport: Transport): Transport => ({
      ...transport,
      async send(request, signal) {
        const { uid } = (request.body as KubeObject | undefined)?.metadata ?? {}
        const creates = request.patchType === 'application/apply-patch+yaml' && request.plural === 'machinesets' && !uid
        if (creates && requests.length > 0 && rejections++ < 3) throw new StatusError('InternalError', 'not now')
        return transport.send(request, signal)
      },
    })
    env = await inPlaceEnv(scriptedRuntime(script), {}, { between })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(rejections).toBeGreaterThan(3)
    expect(await env.names()).toEqual(namesBefore)
    expect(requests).toHaveLength(1)
  })

  test('creates a surge Machine when no Machine may be unavailable, and deletes a Machine at the end', async () => {
    const { script } = ableExtension()
    const rollout = { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }
    env = await inPlaceEnv(scriptedRuntime(script), { rollout })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 3/3, 3 available; v1.35.0 1/1, 0 available
      v1.34.0 2/2, 2 available; v1.35.0 2/2, 1 available
      v1.34.0 1/1, 1 available; v1.35.0 3/3, 2 available
      v1.34.0 1/0, 1 available; v1.35.0 3/3, 3 available
      v1.35.0 3/3, 3 available"
    `)
    expect((await env.names()).filter((name) => namesBefore.includes(name))).toHaveLength(2)
    await env.expectUpdated()
  })

  test('after a rollback, moves a Machine back to its first set, and updates it in place to the earlier version', async () => {
    env = await inPlaceEnv(scriptedRuntime(ableExtension().script))
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(5))
    const back = {
      spec: { version: 'v1.34.0', infrastructureRef: { apiGroup: 'infra.test', kind: 'DevMachineTemplate', name: 'infra' } },
    }
    await env.patch({ template: back })
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 1/0, 0 available
      v1.34.0 3/3, 2 available; v1.35.0 0/0, 0 available
      v1.34.0 3/3, 3 available"
    `)
    expect(await env.names()).toEqual(namesBefore)
    for (const { metadata, spec } of await env.machines()) {
      expect(spec.version).toBe('v1.34.0')
      expect((await env.client.get(DevMachine, { namespace, name: metadata.name })).spec).toEqual({ size: 'small' })
    }
  })
})

test('a blocked rollout continues when an extension changes', async () => {
  let changed: (extensionConfig: string) => void = () => {}
  let isBroken = true
  const { script, requests } = ableExtension()
  const runtime: RuntimeClient = {
    ...scriptedRuntime({
      CanUpdateMachineSet(call) {
        if (isBroken) throw new Error('no disk')
        return script['CanUpdateMachineSet']!(call)
      },
    }),
    onChanged(listener) {
      changed = listener
    },
  }
  env = await inPlaceEnv(runtime)
  await env.patch(largerAndNewer)
  // Each failure doubles the delay until the next retry.
  await env.advance(seconds(3000))
  isBroken = false
  await env.advance(seconds(5))
  expect(requests).toHaveLength(0)
  changed('other')
  await env.advance(seconds(1))
  expect(requests).toHaveLength(1)
  // The extension `test` has responded: only its change drops the cached response.
  changed('other')
  await env.advance(seconds(1))
  expect(requests).toHaveLength(1)
  changed('test')
  await env.advance(seconds(60))
  expect(requests).toHaveLength(2)
  await env.expectUpdated()
})

test('with a stale cache, at most one Machine is updated at a time, and no Machine is created', async () => {
  let isBehind = false
  let caughtUp = Promise.withResolvers<void>()
  /** Delays watch events of Machines until the test releases them. */
  const late = (transport: Transport): Transport => ({
    close: () => transport.close(),
    send: (request, signal) => transport.send(request, signal),
    async watch(request, signal) {
      const events = await transport.watch(request, signal)
      if (request.plural !== 'machines') return events
      return (async function* () {
        for await (const event of events) {
          if (isBehind) await caughtUp.promise
          yield event
        }
      })()
    },
  })
  const catchUp = () => {
    isBehind = false
    caughtUp.resolve()
    caughtUp = Promise.withResolvers<void>()
  }
  env = await inPlaceEnv(scriptedRuntime(ableExtension().script), { replicas: 3 }, { between: late, patience: 30 })
  const namesBefore = await env.names()
  try {
    for (let round = 0; round < 4; round++) {
      isBehind = true
      if (round === 0) await env.patch(largerAndNewer)
      await env.advance(seconds(60))
      expect(await env.names()).toEqual(namesBefore)
      // At most one Machine may be unavailable, even with a stale cache.
      expect((await env.machines()).filter(isUpdateInProgress).length).toBeLessThanOrEqual(1)
      catchUp()
      await env.advance(seconds(15))
    }
  } finally {
    catchUp()
  }
  await env.advance(seconds(120))
  expect(await env.names()).toEqual(namesBefore)
  await env.expectUpdated()
})
