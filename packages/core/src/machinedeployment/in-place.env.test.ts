import { type CanUpdateMachineSet, Machine, MachineDeployment, MachineSet, type RequestOf } from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { Event, seconds } from '@capstan/kube'
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
