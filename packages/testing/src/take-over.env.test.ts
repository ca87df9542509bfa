/**
 * Tests the take-over of a Cluster from upstream's core. Each run starts with the objects that upstream's core v1.14 and the local provider
 * have written (`interop/recordings/record-take-over.ts` records them). The first run is not interrupted. In each of the other runs, the
 * process is stopped after one of its writes, and restarted.
 */
import { readFileSync } from 'node:fs'
import { Cluster, Machine, MachineSet } from '@capstan/api'
import type { StoreKey } from '@capstan/apiserver'
import { type Client, type Kind, type KubeObject, Node, resourceName, seconds, Secret, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { LocalBootstrapConfig, LocalMachine } from '@capstan/local'
import { describe, expect, test } from 'vitest'
import { type ManagementEnv, managementEnv } from './management-env.ts'
import { manifestKinds } from './manifests.ts'
import { mortalStores } from './mortal-stores.ts'
import { scriptedRuntime } from './scripted-runtime.ts'
import { stopsOf } from './stops.ts'

interface Recording {
  /** Time of the recording, in milliseconds since the Unix epoch. */
  readonly at: number
  readonly objects: readonly KubeObject[]
  readonly nodes: readonly KubeObject[]
}
const recording: Recording = JSON.parse(readFileSync(new URL('take-over/upstream-core.json', import.meta.url), 'utf8'))

const key = { namespace: 'default', name: 'demo' }

/** Steps of the user. Each step is idempotent, and is followed by a wait in milliseconds of the virtual clock. */
const steps: readonly { act(client: Client): Promise<unknown>; readonly wait: number }[] = [
  { act: () => Promise.resolve(), wait: seconds(120) },
  {
    act: (client) => {
      const metadata = { labels: { kept: 'changed' } }
      const controlPlane = { metadata: { labels: { recorded: null, kept: 'changed' } } }
      const machineDeployments = [
        { class: 'worker', name: 'steady', replicas: 2, metadata },
        { class: 'worker', name: 'elastic', metadata },
      ]
      const body = { spec: { topology: { controlPlane, workers: { machineDeployments } } } }
      return client.patch(Cluster, key, { type: 'merge', body: body as never })
    },
    wait: seconds(120),
  },
]

const runtime = () => scriptedRuntime({})

/** Returns stores with the recorded objects, and with the CRDs of all kinds. */
async function recordedStores() {
  const base = memoryStores()
  const installing = await managementEnv({
    stores: mortalStores(base),
    clock: new VirtualClock(recording.at),
    runtime: runtime(),
  })
  await installing.close()
  const put = async (store: string, kind: Kind, objects: readonly KubeObject[]) => {
    const target = await base.store(store)
    for (const object of objects) {
      const { namespace = '', name } = object.metadata
      const storeKey: StoreKey = { resource: resourceName(kind), namespace, name }
      await target.commit({ key: storeKey, previous: undefined, object: structuredClone(object) })
    }
  }
  const kinds = new Map<string, Kind>([...manifestKinds, ['Secret', Secret as Kind]] as never)
  for (const object of recording.objects) await put('management', kinds.get(object.kind)!, [object])
  await put('workload_default_demo', Node as Kind, recording.nodes)
  return base
}

interface Result {
  readonly commits: number
  /** Names of recorded Machines that no longer exist. */
  readonly replaced: readonly string[]
  /** Number of Machines of the MachineDeployment `steady`. */
  readonly steady: number
  /** Distinct values of the labels `recorded` and `kept` of MachineSets, Machines, infrastructure machines and bootstrap configs. */
  readonly labels: readonly string[]
  /** Number of taints `recorded` of all Machines. */
  readonly taints: number
  readonly isAvailable: boolean
}

/** Runs the steps. Stops the process immediately after commit number `stopAfter` and restarts it. */
async function runSteps(stopAfter = Number.POSITIVE_INFINITY): Promise<Result> {
  const base = await recordedStores()
  let stores = mortalStores(base, stopAfter)
  let clock = new VirtualClock(recording.at)
  let commits = 0
  const start = () => managementEnv({ stores, clock, runtime: runtime() })
  const whileAlive = <T>(work: Promise<T>) => Promise.race([work, stores.death])
  let env = (await whileAlive(start())) ?? undefined
  for (let step = 0; step < steps.length; ) {
    if (env) {
      await whileAlive(steps[step]!.act(env.client))
      if (!stores.isDead) await whileAlive(env.advance(steps[step]!.wait))
    }
    if (!stores.isDead) {
      step++
      continue
    }
    // The process was stopped. It is restarted with a new clock, and the step is repeated.
    stores.rejectPending()
    await env?.close()
    commits += stores.commits
    clock = new VirtualClock(clock.now())
    stores = mortalStores(base)
    env = await start()
  }
  const result = { commits: commits + stores.commits, ...(await resultOf(env!)) }
  await env!.close()
  return result
}

async function resultOf({ client }: ManagementEnv): Promise<Omit<Result, 'commits'>> {
  const list = async <T extends KubeObject>(kind: Kind<T>) => (await client.list(kind, { namespace: key.namespace })).items
  const machines = await list(Machine)
  const uids = new Set(machines.map(({ metadata }) => metadata.uid))
  const objects = (
    await Promise.all([MachineSet, Machine, LocalMachine, LocalBootstrapConfig].map((kind) => list(kind as Kind)))
  ).flat()
  const { status } = await client.get(Cluster, key)
  return {
    replaced: recording.objects
      .filter(({ kind, metadata }) => kind === 'Machine' && !uids.has(metadata.uid))
      .map(({ metadata }) => metadata.name),
    steady: machines.filter(({ metadata }) => metadata.labels?.['topology.cluster.x-k8s.io/deployment-name'] === 'steady').length,
    labels: labelsOf(objects),
    taints: taintsOf(machines),
    isAvailable: status?.conditions?.some(({ type, status }) => type === 'Available' && status === 'True') ?? false,
  }
}

/** Returns the distinct values of the labels `recorded` and `kept`. Omits objects of MachinePools, on which the test sets no labels. */
const labelsOf = (objects: readonly KubeObject[]): string[] => {
  const texts = objects
    .filter(({ metadata }) => metadata.labels?.['cluster.x-k8s.io/pool-name'] === undefined)
    .filter(({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === 'MachinePool'))
    .map(({ metadata }) => `recorded ${metadata.labels?.['recorded']}, kept ${metadata.labels?.['kept']}`)
  return [...new Set(texts)]
}

const taintsOf = (machines: readonly Machine[]): number =>
  machines.flatMap(({ spec }) => (spec.taints ?? []).filter((taint) => taint.key === 'recorded')).length

const expected: Omit<Result, 'commits'> = {
  replaced: [],
  steady: 2,
  labels: ['recorded undefined, kept changed'],
  taints: 0,
  isAvailable: true,
}

describe("the take-over of a Cluster from upstream's core", async () => {
  const { commits, ...uninterrupted } = await runSteps()

  test('begins with the labels, taints and field managers that upstream has written', () => {
    const machines = recording.objects.filter(({ kind }) => kind === 'Machine') as Machine[]
    const managers = machines.flatMap(({ metadata }) => metadata.managedFields?.map(({ manager }) => manager))
    expect(managers).toContain('capi-machineset')
    expect(labelsOf(machines)).toEqual(['recorded yes, kept yes'])
    expect(taintsOf(machines)).toBe(2)
  })

  test('replaces no Machine, applies the changes of replicas, labels and taints, and leaves the Cluster available', () => {
    expect(uninterrupted).toEqual(expected)
  })

  test.each(stopsOf(commits, 6))('has the same result when the process is stopped after write %i and restarted', async (stop) => {
    const { commits: _, ...result } = await runSteps(stop)
    expect(result).toEqual(expected)
  })
})
