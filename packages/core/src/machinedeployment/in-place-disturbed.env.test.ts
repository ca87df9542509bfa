/** Tests in-place rollouts that are disturbed by the extension, the templates, or users. */
import { Cluster, Machine, MachineDeployment, MachineSet, PausedAnnotation, UpdateInProgressAnnotation } from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { type KubeObject, keyOf, minutes, seconds, StatusError, type Transport, withSend } from '@capstan/kube'
import { type HookScript, scriptedRuntime } from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import {
  ableExtension,
  withoutSurge,
  inPlaceEnv,
  type InPlaceEnv,
  largerAndNewer,
  type CanUpdateRequest,
} from './in-place-env.suite.ts'
import { DevConfigTemplate, DevMachineTemplate, OtherMachineTemplate } from './sets-env.suite.ts'

let env: InPlaceEnv
afterEach(() => env.close())

const namespace = 'default'

/** Responds without patches: the extension can make none of the changes in place. */
const unableExtension: HookScript = { CanUpdateMachineSet: () => undefined }

describe('a rollout', () => {
  test('replaces Machines that the extension cannot update, and records an event with the reason', async () => {
    env = await inPlaceEnv(scriptedRuntime(unableExtension), { replicas: 2 })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 2/1, 2 available; v1.35.0 0/0, 0 available
      v1.34.0 1/1, 1 available; v1.35.0 1/1, 0 available
      v1.34.0 1/0, 1 available; v1.35.0 1/1, 1 available
      v1.34.0 0/0, 0 available; v1.35.0 2/2, 1 available
      v1.35.0 2/2, 2 available"
    `)
    expect((await env.names()).filter((name) => namesBefore.includes(name))).toEqual([])
    await env.expectUpdated()
    expect(await env.events('InPlaceUpdateNotPossible')).toEqual([
      expect.stringMatching(
        /^Machines of MachineSet "workers-\w{5}" are replaced, scripted\.test cannot update them in place: MachineSet cannot be updated in-place: spec\.template\.spec\.version; DevMachineTemplate cannot be updated in-place: spec\.template\.spec\.size$/,
      ),
    ])
  })

  test('replaces the Machines without an event when no extension is registered', async () => {
    env = await inPlaceEnv(scriptedRuntime({}), { replicas: 1 })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(await env.names()).not.toEqual(namesBefore)
    await env.expectUpdated()
    expect(await env.events('InPlaceUpdateNotPossible')).toEqual([])
  })

  test('waits for a missing template of the old set', async () => {
    const { script, requests } = ableExtension()
    env = await inPlaceEnv(scriptedRuntime(script), { replicas: 1 })
    const namesBefore = await env.names()
    const template = await env.client.get(DevMachineTemplate, { namespace, name: 'infra' })
    await env.client.delete(DevMachineTemplate, { namespace, name: 'infra' })
    await env.patch(largerAndNewer)
    await env.advance(seconds(600))
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available')
    expect(requests).toEqual([])
    expect(await env.events('FailedCanUpdateMachineSet')).toEqual([
      expect.stringMatching(
        /failed to get DevMachineTemplate from MachineSet workers-\w{5}: DevMachineTemplate infra does not exist$/,
      ),
    ])
    await env.client.create(DevMachineTemplate, { metadata: { namespace, name: 'infra' }, spec: template['spec'] } as never)
    await env.advance(seconds(20))
    await env.expectUpdated()
    expect(await env.names()).toEqual(namesBefore)
  })

  test('continues when a template of the old set is created again, although the set is paused and its status stays the same', async () => {
    const { script, requests } = ableExtension()
    env = await inPlaceEnv(scriptedRuntime(script), { replicas: 1 })
    const [set] = await env.sets()
    await env.client.patch(MachineSet, keyOf(set!), {
      type: 'merge',
      body: { metadata: { annotations: { [PausedAnnotation]: '' } } },
    })
    const template = await env.client.get(DevMachineTemplate, { namespace, name: 'infra' })
    await env.client.delete(DevMachineTemplate, { namespace, name: 'infra' })
    await env.patch(largerAndNewer)
    // After this time, the deployment is retried only after more than ten minutes, or after an event.
    await env.advance(seconds(1400))
    expect(requests).toEqual([])
    await env.client.create(DevMachineTemplate, { metadata: { namespace, name: 'infra' }, spec: template['spec'] } as never)
    await env.advance(seconds(20))
    expect(requests).not.toEqual([])
  })

  test('retries the start of an in-place update that the API server rejects', async () => {
    let isRejected = true
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const { annotations } = (request.body as KubeObject | undefined)?.metadata ?? {}
        const isStart = request.plural === 'devmachines' && annotations?.[UpdateInProgressAnnotation] !== undefined
        if (isStart && isRejected) throw new StatusError('Forbidden', 'quota')
        return transport.send(request, signal)
      })
    env = await inPlaceEnv(scriptedRuntime(ableExtension().script), { replicas: 1 }, { between })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(30))
    // Upstream: completeMoveMachine in machineset_controller.go.
    const failure = `failed to complete triggering in-place update for Machine default/${namesBefore[0]}: `
    expect(env.manager.waiting()).toContainEqual(expect.stringContaining(failure))
    isRejected = false
    await env.advance(minutes(20))
    await env.expectUpdated()
    expect(await env.names()).toEqual(namesBefore)
  })

  test('does not wait for a missing template of the old set when no extension is registered', async () => {
    env = await inPlaceEnv(scriptedRuntime({}), { replicas: 1 })
    await env.client.delete(DevMachineTemplate, { namespace, name: 'infra' })
    await env.patch(largerAndNewer)
    await env.advance(seconds(60))
    await env.expectUpdated()
  })

  test('replaces the Machines when the new template has another API group or another kind', async () => {
    const { script, requests } = ableExtension()
    env = await inPlaceEnv(scriptedRuntime(script), { replicas: 1 })
    const template = (name: string) => ({ metadata: { name, namespace }, spec: { template: { spec: { size: 'large' } } } })
    await env.client.create(DevConfigTemplate, template('other'))
    await env.client.create(OtherMachineTemplate, template('other'))
    const references = [
      { apiGroup: 'other.test', kind: 'DevMachineTemplate', name: 'other' },
      { apiGroup: 'bootstrap.test', kind: 'DevConfigTemplate', name: 'other' },
    ]
    for (const infrastructureRef of references) {
      const namesBefore = await env.names()
      await env.patch({ template: { spec: { infrastructureRef } } })
      await env.advance(seconds(60))
      expect((await env.names()).filter((name) => namesBefore.includes(name))).toEqual([])
      expect(requests).toEqual([])
      expect((await env.events('InPlaceUpdateNotPossible')).at(-1)).toMatch(/: the kinds of the templates differ$/)
    }
  })

  test('replaces only the Machines of those old sets that the extension cannot update', async () => {
    // This extension can update only Machines of version v1.34.0.
    const { script } = ableExtension()
    const partlyAble: HookScript = {
      CanUpdateMachineSet(call) {
        const { current } = call.request as unknown as CanUpdateRequest
        return current.machineSet.spec.template.spec.version === 'v1.34.0' ? script.CanUpdateMachineSet!(call) : undefined
      },
    }
    env = await inPlaceEnv(scriptedRuntime(partlyAble), {
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 3 } } },
    })
    await env.patch({ template: { spec: { version: 'v1.33.0' } }, rollout: withoutSurge })
    await env.advance(seconds(5))
    const updatable = (await env.machines()).filter(({ spec }) => spec.version === 'v1.34.0').map(({ metadata }) => metadata.name)
    expect(updatable).toHaveLength(2)
    expect(await env.counts()).toMatchInlineSnapshot(`"v1.34.0 2/2, 2 available; v1.33.0 1/1, 0 available"`)
    await env.patch(largerAndNewer)
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.33.0 1/0, 0 available; v1.35.0 0/0, 0 available
      v1.34.0 2/2, 2 available; v1.33.0 0/0, 0 available; v1.35.0 1/1, 0 available
      v1.34.0 1/1, 1 available; v1.33.0 0/0, 0 available; v1.35.0 2/2, 1 available
      v1.34.0 0/0, 0 available; v1.33.0 0/0, 0 available; v1.35.0 3/3, 2 available
      v1.35.0 3/3, 3 available"
    `)
    await env.expectUpdated()
    expect((await env.names()).filter((name) => updatable.includes(name))).toEqual(updatable)
  })

  test('leaves v1beta1 status and observedGeneration unchanged while the registered extensions are unknown', async () => {
    const runtime = scriptedRuntime(ableExtension().script)
    let ready = true
    const late: RuntimeClient = {
      ...runtime,
      get ready() {
        return ready
      },
    }
    env = await inPlaceEnv(late, { replicas: 1 })
    const observed = async () => {
      const { status } = await env.client.get(MachineDeployment, { namespace, name: 'workers' })
      return [status?.deprecated?.v1beta1, status?.observedGeneration]
    }
    const before = await observed()
    ready = false
    await env.patch(largerAndNewer)
    await env.advance(seconds(30))
    expect(await observed()).toEqual(before)
  })
})

describe('the extension', () => {
  test('blocks the rollout while it fails, and an event reports the error', async () => {
    const { script } = ableExtension()
    let works = false
    const runtime = scriptedRuntime(script)
    const broken: RuntimeClient = {
      ...runtime,
      call: (...args) => (works ? runtime.call(...args) : Promise.reject(new Error('connection refused'))),
    }
    env = await inPlaceEnv(broken)
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 3/3, 3 available')
    const failures = await env.events('FailedCanUpdateMachineSet')
    expect(failures[0]).toMatch(/^failed to determine if MachineSet workers-\w{5} can be updated in-place: connection refused$/)
    works = true
    await env.advance(seconds(600))
    expect(await env.names()).toEqual(namesBefore)
    await env.expectUpdated()
  })

  test('blocks the rollout when several handlers are registered', async () => {
    const runtime = scriptedRuntime(ableExtension().script)
    env = await inPlaceEnv({ ...runtime, handlersFor: async () => ['a.one', 'b.two'] })
    await env.patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 3/3, 3 available')
    const [failure] = await env.events('FailedCanUpdateMachineSet')
    expect(failure).toContain('found multiple CanUpdateMachineSet hooks (a.one,b.two): only one hook is supported')
  })

  test('is awaited while the registered extensions are unknown', async () => {
    const runtime = scriptedRuntime(ableExtension().script)
    let ready = false
    const late: RuntimeClient = {
      ...runtime,
      get ready() {
        return ready
      },
    }
    env = await inPlaceEnv(late, { replicas: 1 })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(30))
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available')
    ready = true
    await env.advance(seconds(60))
    expect(await env.names()).toEqual(namesBefore)
  })

  test('is called again when its request changes, or when a user requests a retry', async () => {
    let isAble = false
    const { script, requests } = ableExtension()
    const extensionScript: HookScript = {
      CanUpdateMachineSet: (call) => (isAble ? script.CanUpdateMachineSet!(call) : undefined),
    }
    env = await inPlaceEnv(scriptedRuntime(extensionScript), { replicas: 6 })
    await env.patch(largerAndNewer)
    await env.advance(seconds(5))
    isAble = true
    await env.advance(seconds(5))
    expect(requests, 'a response is cached while the request is the same').toHaveLength(0)
    const body = { spec: { template: { spec: { size: 'huge' } } } }
    await env.client.patch(DevMachineTemplate, { namespace, name: 'larger' }, { type: 'merge', body })
    await env.advance(seconds(10))
    expect(requests.map(({ desired }) => desired.infrastructureMachineTemplate)).toMatchObject([body])
    const retry = { metadata: { annotations: { 'runtime.capstan.dev/retry-hooks': 'now' } } }
    await env.client.patch(Cluster, { namespace, name: 'demo' }, { type: 'merge', body: retry })
    await env.advance(seconds(2))
    expect(requests, 'a user requested another call').toHaveLength(2)
  })
})

describe('a change by a user during the rollout', () => {
  const startRollout = async (replicas: number): Promise<string[]> => {
    env = await inPlaceEnv(scriptedRuntime(ableExtension().script), { replicas })
    const namesBefore = await env.names()
    await env.patch(largerAndNewer)
    await env.advance(seconds(5))
    return namesBefore
  }

  test('scaling up creates Machines, and the existing ones are updated in place', async () => {
    const namesBefore = await startRollout(3)
    await env.patch({ replicas: 5 })
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 3/3, 0 available
      v1.34.0 2/2, 2 available; v1.35.0 3/3, 1 available
      v1.34.0 1/1, 1 available; v1.35.0 4/4, 3 available
      v1.34.0 0/0, 0 available; v1.35.0 5/5, 4 available
      v1.35.0 5/5, 5 available"
    `)
    expect(await env.names()).toEqual(expect.arrayContaining(namesBefore))
    await env.expectUpdated()
  })

  test('scaling down deletes Machines that are still in the old set', async () => {
    const namesBefore = await startRollout(4)
    await env.patch({ replicas: 1 })
    expect(await env.countsUntilStable()).toMatchInlineSnapshot(`
      "v1.34.0 3/0, 3 available; v1.35.0 1/1, 0 available
      v1.34.0 3/0, 3 available; v1.35.0 1/1, 1 available
      v1.35.0 1/1, 1 available"
    `)
    expect(await env.names()).toHaveLength(1)
    expect(namesBefore).toEqual(expect.arrayContaining(await env.names()))
    await env.expectUpdated()
  })

  test('a paused rollout completes the running update, and starts no other until it is resumed', async () => {
    const namesBefore = await startRollout(3)
    await env.patch({ paused: true })
    await env.advance(seconds(120))
    expect(await env.counts()).toBe('v1.34.0 2/2, 2 available; v1.35.0 1/1, 1 available')
    await env.patch({ paused: false })
    await env.advance(seconds(120))
    expect(await env.names()).toEqual(namesBefore)
    await env.expectUpdated()
  })

  test('the current set blocks the rollout while the set is paused', async () => {
    await startRollout(2)
    const target = (await env.sets()).find(({ spec }) => spec.template.spec.version === 'v1.35.0')!
    const { name } = target.metadata
    const paused = (value: string | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
    await env.client.patch(MachineSet, { namespace, name }, { type: 'merge', body: paused('') })
    await env.advance(seconds(60))
    const countsBefore = await env.counts()
    await env.advance(seconds(60))
    expect(await env.counts()).toBe(countsBefore)
    await env.client.patch(MachineSet, { namespace, name }, { type: 'merge', body: paused(null) })
    await env.advance(seconds(120))
    await env.expectUpdated()
  })
})

test('rollout.after creates new Machines, even if an extension could update the old ones', async () => {
  const { script, requests } = ableExtension()
  env = await inPlaceEnv(scriptedRuntime(script), { replicas: 1 })
  const namesBefore = await env.names()
  await env.patch({ rollout: { ...withoutSurge, after: '2026-01-01T00:00:30Z' } })
  await env.advance(seconds(60))
  expect(await env.names()).not.toEqual(namesBefore)
  expect(requests).toEqual([])
})

test('with OnDelete, a deleted Machine is replaced without a call of the extension', async () => {
  const { script, requests } = ableExtension()
  env = await inPlaceEnv(scriptedRuntime(script), { replicas: 2, rollout: { strategy: { type: 'OnDelete' } } })
  await env.patch(largerAndNewer)
  await env.advance(seconds(60))
  const [first] = await env.names()
  await env.client.delete(Machine, { namespace, name: first! })
  await env.advance(seconds(60))
  expect(await env.counts()).toBe('v1.34.0 1/1, 1 available; v1.35.0 1/1, 1 available')
  expect(requests).toEqual([])
})
