import {
  type CanUpdateMachineSet,
  Cluster,
  isUpdateInProgress,
  Machine,
  MachineDeployment,
  MachineSet,
  type RequestOf,
} from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { Event, seconds, type Transport } from '@capstan/kube'
import { type HookScript, scriptedRuntime } from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import {
  aClusterWithTemplates,
  aMachineDeployment,
  DevConfig,
  DevMachine,
  DevMachineTemplate,
  setsEnv,
  type SetsEnv,
  type SetsEnvOptions,
} from './sets-env.suite.ts'

let env: SetsEnv
afterEach(() => env.close())

type Request = RequestOf<typeof CanUpdateMachineSet>

const namespace = 'default'
const key = { namespace, name: 'workers' }
const patch = (spec: object) => env.client.patch(MachineDeployment, key, { type: 'merge', body: { spec } })
const mergePatch = (spec: unknown) => ({
  patchType: 'JSONMergePatch' as const,
  patch: btoa(JSON.stringify({ spec: { template: { spec } } })),
})

/** An extension that can do everything, and the questions it was asked. */
function ableExtension(): { script: HookScript; asked: Request[] } {
  const asked: Request[] = []
  const script: HookScript = {
    CanUpdateMachineSet({ request }) {
      const { desired } = request as unknown as Request
      asked.push(request as unknown as Request)
      const specOf = (object: unknown) => (object as { spec: { template: { spec: unknown } } }).spec.template.spec
      return {
        response: {
          machineSetPatch: mergePatch(specOf(desired.machineSet)),
          infrastructureMachineTemplatePatch: mergePatch(specOf(desired.infrastructureMachineTemplate)),
          bootstrapConfigTemplatePatch: mergePatch(specOf(desired.bootstrapConfigTemplate)),
        },
      }
    },
  }
  return { script, asked }
}

const byMoving = { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }

async function aReadyDeployment(
  runtime: RuntimeClient,
  spec: Parameters<typeof aMachineDeployment>[0] = {},
  more: SetsEnvOptions = {},
): Promise<void> {
  env = await setsEnv({ runtime, ...more })
  await aClusterWithTemplates(env)
  await env.client.create(DevMachineTemplate, {
    metadata: { name: 'larger', namespace },
    spec: { template: { spec: { size: 'large' } } },
  })
  await env.client.create(MachineDeployment, aMachineDeployment({ rollout: byMoving, ...spec }))
  await env.advance(seconds(60))
}

/** Another version, and infrastructure from another template. */
const largerAndNewer = {
  template: {
    spec: { version: 'v1.35.0', infrastructureRef: { apiGroup: 'infra.test', kind: 'DevMachineTemplate', name: 'larger' } },
  },
}

const machines = async () => (await env.client.list(Machine, { namespace })).items
const names = async () => (await machines()).map(({ metadata }) => metadata.name)
const sets = async () => (await env.client.list(MachineSet, { namespace })).items
const events = async (reason: string) =>
  (await env.client.list(Event, { namespace })).items.filter((one) => one.reason === reason).map(({ message }) => message)

/** Counts of all sets each time they change, until nothing changes any more. */
async function story(): Promise<string> {
  const lines: string[] = []
  for (let still = 0; still < 30; ) {
    await env.advance(seconds(1))
    const counts = await env.counts()
    still = counts === lines.at(-1) ? still + 1 : 0
    if (still === 0) lines.push(counts)
  }
  return lines.join('\n')
}

/** All Machines are what the deployment wants, and nothing is left of how they became so. */
async function expectUpdated(): Promise<void> {
  const [set, ...others] = await sets()
  expect(others.map(({ metadata }) => metadata.name)).toEqual([])
  const hash = set!.metadata.labels!['machine-template-hash']!
  for (const marks of [set!.metadata.annotations!]) {
    expect(Object.keys(marks).filter((name) => name.startsWith('in-place-updates'))).toEqual([])
  }
  for (const { metadata, spec } of await machines()) {
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'MachineSet', name: set!.metadata.name, controller: true }])
    expect(metadata.labels).toMatchObject({ 'machine-template-hash': hash, 'cluster.x-k8s.io/set-name': set!.metadata.name })
    expect(metadata.annotations ?? {}).toEqual({})
    expect(spec.version).toBe('v1.35.0')
    const own = { namespace, name: metadata.name }
    const infrastructure = await env.client.get(DevMachine, own)
    expect(infrastructure.spec).toEqual({ size: 'large' })
    expect(infrastructure.metadata.labels).toMatchObject({ 'machine-template-hash': hash })
    expect(infrastructure.metadata.annotations).toEqual({
      'cluster.x-k8s.io/cloned-from-name': 'larger',
      'cluster.x-k8s.io/cloned-from-groupkind': 'DevMachineTemplate.infra.test',
    })
    expect((await env.client.get(DevConfig, own)).metadata.annotations).not.toHaveProperty(
      'in-place-updates.internal.cluster.x-k8s.io/update-in-progress',
    )
  }
}

describe('a MachineDeployment whose Machines an extension can update', () => {
  test('keeps all of them, with their infrastructure, and asks once', async () => {
    const { script, asked } = ableExtension()
    await aReadyDeployment(scriptedRuntime(script))
    const before = await names()
    await patch(largerAndNewer)
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 1/1, 0 available
      v1.34.0 1/1, 1 available; v1.35.0 2/2, 1 available
      v1.34.0 0/0, 0 available; v1.35.0 3/3, 2 available
      v1.35.0 3/3, 3 available"
    `)
    expect(await names()).toEqual(before)
    await expectUpdated()
    expect(await events('SuccessfulStartInPlaceUpdate')).toEqual(before.map(() => 'Machine starting in-place update'))
    expect(asked).toHaveLength(1)
    const { current, desired } = asked[0]!
    expect(current.machineSet).toMatchObject({ kind: 'MachineSet', spec: { template: { spec: { version: 'v1.34.0' } } } })
    expect(desired.machineSet).toMatchObject({ kind: 'MachineSet', spec: { template: { spec: { version: 'v1.35.0' } } } })
    expect(Object.keys(desired.machineSet)).not.toContain('status')
    expect(desired.infrastructureMachineTemplate).toMatchObject({ metadata: { name: 'larger' } })
    const { revision } = env.store
    await env.advance(seconds(3600))
    expect(env.store.revision, 'writes at rest').toBe(revision)
  })

  test('makes one more where none may be unavailable, and has one too many in the end', async () => {
    const { script } = ableExtension()
    const rollout = { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }
    await aReadyDeployment(scriptedRuntime(script), { rollout })
    const before = await names()
    await patch(largerAndNewer)
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 3/3, 3 available; v1.35.0 1/1, 0 available
      v1.34.0 2/2, 2 available; v1.35.0 2/2, 1 available
      v1.34.0 1/1, 1 available; v1.35.0 3/3, 2 available
      v1.34.0 1/0, 1 available; v1.35.0 3/3, 3 available
      v1.35.0 3/3, 3 available"
    `)
    expect((await names()).filter((name) => before.includes(name))).toHaveLength(2)
    await expectUpdated()
  })
})

/** Answers that leave something uncovered: without patches, only what needs none can be done. */
const cautious: HookScript = { CanUpdateMachineSet: () => undefined }

describe('what nobody can update in place', () => {
  test('is replaced, and an event says what and why', async () => {
    await aReadyDeployment(scriptedRuntime(cautious), { replicas: 2 })
    const before = await names()
    await patch(largerAndNewer)
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 2/1, 2 available; v1.35.0 0/0, 0 available
      v1.34.0 1/1, 1 available; v1.35.0 1/1, 0 available
      v1.34.0 1/0, 1 available; v1.35.0 1/1, 1 available
      v1.34.0 0/0, 0 available; v1.35.0 2/2, 1 available
      v1.35.0 2/2, 2 available"
    `)
    expect((await names()).filter((name) => before.includes(name))).toEqual([])
    await expectUpdated()
    expect(await events('InPlaceUpdateNotPossible')).toEqual([
      expect.stringMatching(
        /^Machines of MachineSet "workers-\w{5}" are replaced, scripted\.test cannot update them in place: MachineSet cannot be updated in-place: spec\.template\.spec\.version; DevMachineTemplate cannot be updated in-place: spec\.template\.spec\.size$/,
      ),
    ])
  })

  test('is replaced without a word when no extension is there', async () => {
    await aReadyDeployment(scriptedRuntime({}), { replicas: 1 })
    const before = await names()
    await patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(await names()).not.toEqual(before)
    await expectUpdated()
    expect(await events('InPlaceUpdateNotPossible')).toEqual([])
  })

  test('is replaced when a template of the old set is gone', async () => {
    const { script, asked } = ableExtension()
    await aReadyDeployment(scriptedRuntime(script), { replicas: 1 })
    await env.client.delete(DevMachineTemplate, { namespace, name: 'infra' })
    await patch(largerAndNewer)
    await env.advance(seconds(60))
    await expectUpdated()
    expect(asked).toEqual([])
    expect(await events('InPlaceUpdateNotPossible')).toEqual([
      expect.stringContaining('a template of the MachineSet does not exist'),
    ])
  })

  test('of several old sets is replaced, and the rest updated', async () => {
    // The extension knows how to make v1.35.0 of v1.34.0 only.
    const { script } = ableExtension()
    const partly: HookScript = {
      CanUpdateMachineSet(call) {
        const { current } = call.request as unknown as Request
        return current.machineSet.spec.template.spec.version === 'v1.34.0' ? script.CanUpdateMachineSet!(call) : undefined
      },
    }
    await aReadyDeployment(scriptedRuntime(partly), {
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 3 } } },
    })
    await patch({ template: { spec: { version: 'v1.33.0' } }, rollout: byMoving })
    await env.advance(seconds(5))
    const updatable = (await machines()).filter(({ spec }) => spec.version === 'v1.34.0').map(({ metadata }) => metadata.name)
    expect(updatable).toHaveLength(2)
    expect(await env.counts()).toMatchInlineSnapshot(`"v1.34.0 2/2, 2 available; v1.33.0 1/1, 0 available"`)
    await patch(largerAndNewer)
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.33.0 1/0, 0 available; v1.35.0 0/0, 0 available
      v1.34.0 2/2, 2 available; v1.33.0 0/0, 0 available; v1.35.0 1/1, 0 available
      v1.34.0 1/1, 1 available; v1.33.0 0/0, 0 available; v1.35.0 2/2, 1 available
      v1.34.0 0/0, 0 available; v1.33.0 0/0, 0 available; v1.35.0 3/3, 2 available
      v1.35.0 3/3, 3 available"
    `)
    await expectUpdated()
    expect((await names()).filter((name) => updatable.includes(name))).toEqual(updatable)
  })
})

describe('an extension that does not answer well', () => {
  test('holds the rollout up, says so, and lets it go on when it does', async () => {
    const { script } = ableExtension()
    let works = false
    const runtime = scriptedRuntime(script)
    const broken: RuntimeClient = {
      ...runtime,
      call: (...args) => (works ? runtime.call(...args) : Promise.reject(new Error('connection refused'))),
    }
    await aReadyDeployment(broken)
    const before = await names()
    await patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 3/3, 3 available')
    const failures = await events('FailedCanUpdateMachineSet')
    expect(failures[0]).toMatch(/^failed to determine if MachineSet workers-\w{5} can be updated in-place: connection refused$/)
    works = true
    await env.advance(seconds(600))
    expect(await names()).toEqual(before)
    await expectUpdated()
  })

  test('is not chosen among several', async () => {
    const runtime = scriptedRuntime(ableExtension().script)
    await aReadyDeployment({ ...runtime, handlersFor: async () => ['a.one', 'b.two'] })
    await patch(largerAndNewer)
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 3/3, 3 available')
    const [failure] = await events('FailedCanUpdateMachineSet')
    expect(failure).toContain('found multiple CanUpdateMachineSet hooks (a.one,b.two): only one hook is supported')
  })

  test('is waited for while nobody knows yet whether it is there', async () => {
    const runtime = scriptedRuntime(ableExtension().script)
    let ready = false
    const late: RuntimeClient = {
      ...runtime,
      get ready() {
        return ready
      },
    }
    await aReadyDeployment(late, { replicas: 1 })
    const before = await names()
    await patch(largerAndNewer)
    await env.advance(seconds(30))
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available')
    ready = true
    await env.advance(seconds(60))
    expect(await names()).toEqual(before)
  })

  test('is asked again when the question is another one', async () => {
    let isAble = false
    const { script, asked } = ableExtension()
    const learning: HookScript = { CanUpdateMachineSet: (call) => (isAble ? script.CanUpdateMachineSet!(call) : undefined) }
    await aReadyDeployment(scriptedRuntime(learning), { replicas: 6 })
    await patch(largerAndNewer)
    await env.advance(seconds(5))
    isAble = true
    await env.advance(seconds(5))
    expect(asked, 'an answer holds while the question is the same').toHaveLength(0)
    const body = { spec: { template: { spec: { size: 'huge' } } } }
    await env.client.patch(DevMachineTemplate, { namespace, name: 'larger' }, { type: 'merge', body })
    await env.advance(seconds(10))
    expect(asked.map(({ desired }) => desired.infrastructureMachineTemplate)).toMatchObject([body])
    const retry = { metadata: { annotations: { 'runtime.capstan.dev/retry-hooks': 'now' } } }
    await env.client.patch(Cluster, { namespace, name: 'demo' }, { type: 'merge', body: retry })
    await env.advance(seconds(2))
    expect(asked, 'somebody wants it to be asked again').toHaveLength(2)
  })
})

test('a cache that is behind moves no Machine twice, and makes none', async () => {
  let isBehind = false
  let caughtUp = Promise.withResolvers<void>()
  /** Watches of Machines whose events wait until the cache may catch up. */
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
  await aReadyDeployment(scriptedRuntime(ableExtension().script), { replicas: 3 }, { between: late, patience: 30 })
  const before = await names()
  try {
    for (let round = 0; round < 4; round++) {
      isBehind = true
      if (round === 0) await patch(largerAndNewer)
      await env.advance(seconds(60))
      expect(await names()).toEqual(before)
      // One at a time may be unavailable, whatever the cache makes of it.
      expect((await machines()).filter(isUpdateInProgress).length).toBeLessThanOrEqual(1)
      catchUp()
      await env.advance(seconds(15))
    }
  } finally {
    catchUp()
  }
  await env.advance(seconds(120))
  expect(await names()).toEqual(before)
  await expectUpdated()
})

describe('what users do meanwhile', () => {
  const aRolloutUnderWay = async (replicas: number): Promise<string[]> => {
    await aReadyDeployment(scriptedRuntime(ableExtension().script), { replicas })
    const before = await names()
    await patch(largerAndNewer)
    await env.advance(seconds(5))
    return before
  }

  test('more replicas are made anew, the rest is updated', async () => {
    const before = await aRolloutUnderWay(3)
    await patch({ replicas: 5 })
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 3/3, 0 available
      v1.34.0 2/2, 2 available; v1.35.0 3/3, 1 available
      v1.34.0 1/1, 1 available; v1.35.0 4/4, 3 available
      v1.34.0 0/0, 0 available; v1.35.0 5/5, 4 available
      v1.35.0 5/5, 5 available"
    `)
    expect(await names()).toEqual(expect.arrayContaining(before))
    await expectUpdated()
  })

  test('fewer replicas delete what has not moved yet', async () => {
    const before = await aRolloutUnderWay(4)
    await patch({ replicas: 1 })
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 3/0, 3 available; v1.35.0 1/1, 0 available
      v1.34.0 3/0, 3 available; v1.35.0 1/1, 1 available
      v1.35.0 1/1, 1 available"
    `)
    expect(await names()).toHaveLength(1)
    expect(before).toEqual(expect.arrayContaining(await names()))
    await expectUpdated()
  })

  test('a rollout that is paused ends the update it has begun, and begins no other', async () => {
    const before = await aRolloutUnderWay(3)
    await patch({ paused: true })
    await env.advance(seconds(120))
    expect(await env.counts()).toBe('v1.34.0 2/2, 2 available; v1.35.0 1/1, 1 available')
    await patch({ paused: false })
    await env.advance(seconds(120))
    expect(await names()).toEqual(before)
    await expectUpdated()
  })

  test('a current set that is paused holds the rollout up', async () => {
    await aRolloutUnderWay(2)
    const target = (await sets()).find(({ spec }) => spec.template.spec.version === 'v1.35.0')!
    const { name } = target.metadata
    const paused = (value: string | null) => ({ metadata: { annotations: { 'cluster.x-k8s.io/paused': value } } })
    await env.client.patch(MachineSet, { namespace, name }, { type: 'merge', body: paused('') })
    await env.advance(seconds(60))
    const before = await env.counts()
    await env.advance(seconds(60))
    expect(await env.counts()).toBe(before)
    await env.client.patch(MachineSet, { namespace, name }, { type: 'merge', body: paused(null) })
    await env.advance(seconds(120))
    await expectUpdated()
  })

  test('going back brings Machines back by another update', async () => {
    const before = await aRolloutUnderWay(3)
    const back = {
      spec: { version: 'v1.34.0', infrastructureRef: { apiGroup: 'infra.test', kind: 'DevMachineTemplate', name: 'infra' } },
    }
    await patch({ template: back })
    expect(await story()).toMatchInlineSnapshot(`
      "v1.34.0 2/2, 2 available; v1.35.0 1/0, 0 available
      v1.34.0 3/3, 2 available; v1.35.0 0/0, 0 available
      v1.34.0 3/3, 3 available"
    `)
    expect(await names()).toEqual(before)
    for (const { metadata, spec } of await machines()) {
      expect(spec.version).toBe('v1.34.0')
      expect((await env.client.get(DevMachine, { namespace, name: metadata.name })).spec).toEqual({ size: 'small' })
    }
  })

  test('rollout.after wants new Machines, whoever could update the old ones', async () => {
    const { script, asked } = ableExtension()
    await aReadyDeployment(scriptedRuntime(script), { replicas: 1 })
    const before = await names()
    await patch({ rollout: { ...byMoving, after: '2026-01-01T00:00:30Z' } })
    await env.advance(seconds(60))
    expect(await names()).not.toEqual(before)
    expect(asked).toEqual([])
  })

  test('OnDelete never asks', async () => {
    const { script, asked } = ableExtension()
    await aReadyDeployment(scriptedRuntime(script), { replicas: 2, rollout: { strategy: { type: 'OnDelete' } } })
    await patch(largerAndNewer)
    await env.advance(seconds(60))
    const [first] = await names()
    await env.client.delete(Machine, { namespace, name: first! })
    await env.advance(seconds(60))
    expect(await env.counts()).toBe('v1.34.0 1/1, 1 available; v1.35.0 1/1, 1 available')
    expect(asked).toEqual([])
  })
})
