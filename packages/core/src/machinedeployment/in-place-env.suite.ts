/** Test environment for in-place rollouts: the MachineSet and MachineDeployment controllers with a scripted extension. */
import { type CanUpdateMachineSet, Machine, MachineDeployment, MachineSet, type RequestOf } from '@capstan/api'
import type { RuntimeClient } from '@capstan/extension'
import { Event, seconds } from '@capstan/kube'
import type { HookScript } from '@capstan/testing'
import { expect } from 'vitest'
import {
  createClusterWithTemplates,
  aMachineDeployment,
  DevConfig,
  DevMachine,
  DevMachineTemplate,
  setsEnv,
  type SetsEnv,
  type SetsEnvOptions,
} from './sets-env.suite.ts'

export type CanUpdateRequest = RequestOf<typeof CanUpdateMachineSet>

const namespace = 'default'
const key = { namespace, name: 'workers' }
const mergePatch = (spec: unknown) => ({
  patchType: 'JSONMergePatch' as const,
  patch: btoa(JSON.stringify({ spec: { template: { spec } } })),
})

/** Returns an extension whose patches cover all differences, and the list of the requests that it receives. */
export function ableExtension(): { script: HookScript; requests: CanUpdateRequest[] } {
  const requests: CanUpdateRequest[] = []
  const script: HookScript = {
    CanUpdateMachineSet({ request }) {
      const { desired } = request as unknown as CanUpdateRequest
      requests.push(request as unknown as CanUpdateRequest)
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
  return { script, requests }
}

/** A rolling update in which one Machine may be unavailable and none is created in addition, so that in-place updates begin at once. */
export const withoutSurge = { strategy: { type: 'RollingUpdate' as const, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }

/** Another version, and infrastructure from another template. */
export const largerAndNewer = {
  template: {
    spec: { version: 'v1.35.0', infrastructureRef: { apiGroup: 'infra.test', kind: 'DevMachineTemplate', name: 'larger' } },
  },
}

export interface InPlaceEnv extends SetsEnv {
  /** Patches the spec of the MachineDeployment. */
  patch(spec: object): Promise<unknown>
  machines(): Promise<Machine[]>
  names(): Promise<string[]>
  sets(): Promise<MachineSet[]>
  /** Messages of events with this reason. */
  events(reason: string): Promise<(string | undefined)[]>
  /**
   * Reads the counts of all MachineSets every second until they are stable for 30 seconds. Returns the first counts and all changed counts,
   * each as a line.
   */
  countsUntilStable(): Promise<string>
  /** Expects a single MachineSet, whose Machines match `largerAndNewer`, and no leftover annotations. */
  expectUpdated(): Promise<void>
}

/** Creates an environment with a MachineDeployment whose Machines are available. */
export async function inPlaceEnv(
  runtime: RuntimeClient,
  spec: Parameters<typeof aMachineDeployment>[0] = {},
  options: SetsEnvOptions = {},
): Promise<InPlaceEnv> {
  const env = await setsEnv({ runtime, ...options })
  await createClusterWithTemplates(env)
  await env.client.create(DevMachineTemplate, {
    metadata: { name: 'larger', namespace },
    spec: { template: { spec: { size: 'large' } } },
  })
  await env.client.create(MachineDeployment, aMachineDeployment({ rollout: withoutSurge, ...spec }))
  await env.advance(seconds(60))

  const machines = async () => (await env.client.list(Machine, { namespace })).items
  const names = async () => (await machines()).map(({ metadata }) => metadata.name)
  const sets = async () => (await env.client.list(MachineSet, { namespace })).items
  const events = async (reason: string) =>
    (await env.client.list(Event, { namespace })).items.filter((event) => event.reason === reason).map(({ message }) => message)

  async function countsUntilStable(): Promise<string> {
    const lines: string[] = []
    for (let stableSeconds = 0; stableSeconds < 30; ) {
      await env.advance(seconds(1))
      const counts = await env.counts()
      stableSeconds = counts === lines.at(-1) ? stableSeconds + 1 : 0
      if (stableSeconds === 0) lines.push(counts)
    }
    return lines.join('\n')
  }

  async function expectUpdated(): Promise<void> {
    const [set, ...others] = await sets()
    expect(others.map(({ metadata }) => metadata.name)).toEqual([])
    const hash = set!.metadata.labels!['machine-template-hash']!
    const leftover = Object.keys(set!.metadata.annotations!).filter((name) => name.startsWith('in-place-updates'))
    expect(leftover).toEqual([])
    for (const { metadata, spec } of await machines()) {
      expect(metadata.ownerReferences).toMatchObject([{ kind: 'MachineSet', name: set!.metadata.name, controller: true }])
      expect(metadata.labels).toMatchObject({ 'machine-template-hash': hash, 'cluster.x-k8s.io/set-name': set!.metadata.name })
      expect(metadata.annotations ?? {}).toEqual({})
      expect(spec.version).toBe('v1.35.0')
      const machineKey = { namespace, name: metadata.name }
      const infrastructure = await env.client.get(DevMachine, machineKey)
      expect(infrastructure.spec).toEqual({ size: 'large' })
      expect(infrastructure.metadata.labels).toMatchObject({ 'machine-template-hash': hash })
      expect(infrastructure.metadata.annotations).toEqual({
        'cluster.x-k8s.io/cloned-from-name': 'larger',
        'cluster.x-k8s.io/cloned-from-groupkind': 'DevMachineTemplate.infra.test',
      })
      expect((await env.client.get(DevConfig, machineKey)).metadata.annotations).not.toHaveProperty(
        'in-place-updates.internal.cluster.x-k8s.io/update-in-progress',
      )
    }
  }
  const patch = (body: object) => env.client.patch(MachineDeployment, key, { type: 'merge', body: { spec: body } })
  return { ...env, patch, machines, names, sets, events, countsUntilStable, expectUpdated }
}
