/** Stops the process after one of the writes of an in-place rollout, and continues the rollout with a new process. */
import { Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { type Change, memoryStore } from '@capstan/apiserver'
import { controllerOf, resourceName, seconds, VirtualClock } from '@capstan/kube'
import { mortalStores, scriptedRuntime, stopsOf } from '@capstan/testing'
import { expect, test } from 'vitest'
import { ableExtension, withoutSurge, largerAndNewer } from './in-place-env.suite.ts'
import {
  createClusterWithTemplates,
  aMachineDeployment,
  DevConfig,
  DevMachine,
  DevMachineTemplate,
  setsEnv,
  type SetsEnv,
} from './sets-env.suite.ts'

const namespace = 'default'
const machineDelay = seconds(2)
const key = { namespace, name: 'workers' }

const runtime = () => scriptedRuntime(ableExtension().script)

interface FinalState {
  /** Number of writes of the process that is killed, or of the whole rollout if no process is killed. */
  readonly commits: number
  readonly machines: readonly {
    name: string
    version: string | undefined
    size: string | undefined
    /** Version of the MachineSet that controls the Machine. */
    owner: string
    /** Remaining annotations about the update, on the Machine and its provider objects. */
    marks: string[]
  }[]
  /** Each set as `version status.replicas/spec.replicas`. */
  readonly sets: readonly string[]
  /** Infrastructure machines and bootstrap configs that exist at the end. */
  readonly providerObjects: readonly string[]
  /** Machines that were created, were deleted or had no controller at any time during the rollout. */
  readonly violations: readonly string[]
}

/**
 * Updates two Machines in place. The process with the controllers is killed after `stopAfter` writes (default: never), and a new process
 * continues the rollout.
 */
async function runRollout(stopAfter = Number.POSITIVE_INFINITY): Promise<FinalState> {
  const store = memoryStore()
  const keptOpen = { store: async () => store, all: () => [store], remove: async () => {}, close: async () => {} }
  const clock = new VirtualClock()
  const unlimited = mortalStores(keptOpen)
  let env = await setsEnv({ store: await unlimited.store('sets'), clock, runtime: runtime(), machineDelay })
  await createClusterWithTemplates(env)
  await env.client.create(DevMachineTemplate, {
    metadata: { name: 'larger', namespace },
    spec: { template: { spec: { size: 'large' } } },
  })
  await env.client.create(MachineDeployment, aMachineDeployment({ replicas: 2, rollout: withoutSurge }))
  await env.advance(seconds(30))
  await env.client.patch(MachineDeployment, key, { type: 'merge', body: { spec: { ...largerAndNewer, paused: true } } })
  await env.close()

  const violations: string[] = []
  store.subscribe(resourceName(Machine), ({ object, previous }: Change) => {
    if (!previous) violations.push(`${object!.metadata.name} was created`)
    else if (!object || object.metadata.deletionTimestamp) violations.push(`${previous.metadata.name} was deleted`)
    else if (!controllerOf(object)) violations.push(`${object.metadata.name} had no controller`)
  })
  // The stores of a process that is killed after `stopAfter` writes.
  const mortal = mortalStores(keptOpen, stopAfter)
  const whileAlive = <T>(work: Promise<T>) => Promise.race([work, mortal.death])
  const started = await whileAlive(
    setsEnv({ store: await mortal.store('sets'), clock, runtime: runtime(), machineDelay, seed: 2 }),
  )
  const begin = ({ client }: SetsEnv) =>
    client.patch(MachineDeployment, key, { type: 'merge', body: { spec: { paused: false } } })
  if (started) {
    env = started
    await whileAlive(begin(env))
    if (!mortal.isDead) await whileAlive(env.advance(seconds(40)))
  }
  if (mortal.isDead) {
    mortal.rejectPending()
    if (started) await env.close()
    env = await setsEnv({
      store: await unlimited.store('sets'),
      clock: new VirtualClock(clock.now()),
      runtime: runtime(),
      machineDelay,
      seed: 3,
    })
    await begin(env)
    await env.advance(seconds(40))
  }
  const ending = { commits: mortal.commits, violations, ...(await stateOf(env)) }
  await env.close()
  return ending
}

async function stateOf({ client }: SetsEnv): Promise<Pick<FinalState, 'machines' | 'sets' | 'providerObjects'>> {
  const { items: machines } = await client.list(Machine, { namespace })
  const { items: sets } = await client.list(MachineSet, { namespace })
  const infrastructure = (await client.list(DevMachine, { namespace })).items
  const configs = (await client.list(DevConfig, { namespace })).items
  const marksOf = (object: { metadata: { annotations?: Record<string, string> } } | undefined) =>
    Object.keys(object?.metadata.annotations ?? {}).filter((name) => /in-place-updates|pending-hooks/.test(name))
  return {
    machines: machines.map((machine) => {
      const infrastructureMachine = infrastructure.find(({ metadata }) => metadata.name === machine.metadata.name)
      const config = configs.find(({ metadata }) => metadata.name === machine.metadata.name)
      return {
        name: machine.metadata.name,
        version: machine.spec.version,
        size: infrastructureMachine?.spec.size,
        owner: sets.find(({ metadata }) => metadata.uid === controllerOf(machine)?.uid)?.spec.template.spec.version ?? 'none',
        marks: [machine, infrastructureMachine, config].flatMap(marksOf),
      }
    }),
    sets: sets.map(({ spec, status }) => `${spec.template.spec.version} ${status?.replicas}/${spec.replicas}`),
    providerObjects: [...infrastructure, ...configs].map(({ kind, metadata }) => `${kind} ${metadata.name}`),
  }
}

test('a rollout whose process is killed after a write updates all Machines in place, and creates or deletes none', async () => {
  const { commits, ...undisturbed } = await runRollout()
  expect(undisturbed).toMatchObject({
    machines: [
      { version: 'v1.35.0', size: 'large', owner: 'v1.35.0', marks: [] },
      { version: 'v1.35.0', size: 'large', owner: 'v1.35.0', marks: [] },
    ],
    sets: ['v1.35.0 2/2'],
    violations: [],
  })
  for (const stop of stopsOf(commits, 12)) {
    const { commits: _, ...ending } = await runRollout(stop)
    expect(ending, `stopped after write ${stop} of ${commits}`).toEqual(undisturbed)
  }
})
