import { Cluster, Machine, MachineHealthCheck, RemediateMachineAnnotation } from '@capstan/api'
import type { Change, Store } from '@capstan/apiserver'
import type { Client } from '@capstan/kube'
import { isReason, resourceName, seconds, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { describe, expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { mortalStores } from './mortal-stores.ts'
import { stopsOf } from './stops.ts'
import type { ManagementEnv } from './management-env.ts'
import { managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

const key = { namespace: 'default', name: 'demo' }
const demo = new URL('../../lab/demo/', import.meta.url)

interface Step {
  readonly act: (client: Client) => Promise<unknown>
  /** Virtual time that passes after `act`, in milliseconds. */
  readonly wait: number
}

/** Steps of the user. Each step is idempotent. */
const stepsOfUser = (): readonly Step[] => [
  { act: (client) => createFrom(client, new URL('class.yaml', demo)), wait: 0 },
  { act: (client) => createFrom(client, new URL('cluster.yaml', demo)), wait: seconds(60) },
  { act: remediateOnce('workers', 'topology.cluster.x-k8s.io/deployment-name=steady'), wait: seconds(60) },
  // An initialized control plane of one Machine cannot be remediated.
  { act: (client) => patchTopology(client, { controlPlane: { replicas: 3 } }), wait: seconds(120) },
  { act: remediateOnce('control-plane', 'cluster.x-k8s.io/control-plane='), wait: seconds(120) },
  { act: (client) => patchTopology(client, { version: 'v1.36.1' }), wait: seconds(240) },
  { act: (client) => client.delete(Cluster, key).catch(unlessGone), wait: seconds(120) },
]
const unlessGone = (err: unknown) => {
  if (!isReason(err, 'NotFound')) throw err
}

const patchTopology = (client: Client, topology: object) =>
  client.patch(Cluster, key, { type: 'merge', body: { spec: { topology } } })

/**
 * Returns the action of a step: creates a MachineHealthCheck for the Machines with a label, and requests the remediation of one of these
 * Machines. A repeated step requests the remediation of the same Machine, if it still exists.
 */
function remediateOnce(name: string, labelSelector: string): Step['act'] {
  const [label = '', value = ''] = labelSelector.split('=')
  let unhealthy: string | undefined
  return async (client) => {
    const check = {
      metadata: { namespace: key.namespace, name },
      spec: { clusterName: key.name, selector: { matchLabels: { [label]: value } } },
    }
    await client.create(MachineHealthCheck, check).catch((err: unknown) => {
      if (!isReason(err, 'AlreadyExists')) throw err
    })
    const { items } = await client.list(Machine, { namespace: key.namespace, labelSelector })
    unhealthy ??= items[0]!.metadata.name
    const body = { metadata: { annotations: { [RemediateMachineAnnotation]: '' } } }
    await client.patch(Machine, { ...key, name: unhealthy }, { type: 'merge', body }).catch(unlessGone)
  }
}

const hooks = [
  'BeforeClusterCreate',
  'AfterControlPlaneInitialized',
  'BeforeClusterUpgrade',
  'AfterControlPlaneUpgrade',
  'AfterClusterUpgrade',
  'BeforeClusterDelete',
]

interface Result {
  readonly commits: number
  /** Number of created Machines by role and version, such as `steady v1.36.0`. Machines of a pool are counted by role only. */
  readonly machines: Record<string, number>
  /** Hooks that allowed core to proceed. */
  readonly passed: readonly string[]
  readonly wasAvailable: boolean
  readonly wasUpgraded: boolean
  /** Objects at the end, as `remainingObjects` returns them. */
  readonly remaining: readonly string[]
}

/** Runs the steps. Stops the process immediately after commit number `stopAfter` and restarts it; by default, never stops it. */
async function runSteps(stopAfter = Number.POSITIVE_INFINITY): Promise<Result> {
  const base = memoryStores()
  const managementStore = await base.store('management')
  const machines: Record<string, number> = {}
  const reached = { available: false, upgraded: false }
  managementStore.subscribe(resourceName(Machine), (change: Change) => {
    if (change.previous === undefined) {
      const { labels = {} } = change.object!.metadata
      const role =
        labels['topology.cluster.x-k8s.io/deployment-name'] ?? labels['topology.cluster.x-k8s.io/pool-name'] ?? 'control-plane'
      // A Machine of a pool has no version when it is created: core takes the version from the Node.
      const { version } = (change.object as Machine).spec
      const roleAndVersion = version === undefined ? role : `${role} ${version}`
      machines[roleAndVersion] = (machines[roleAndVersion] ?? 0) + 1
    }
  })
  managementStore.subscribe(resourceName(Cluster), ({ object }: Change) => {
    const cluster = object as Cluster | undefined
    const isTrue = (type: string) =>
      cluster?.status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false
    if (isTrue('Available')) reached.available = true
    if (isTrue('TopologyReconciled') && cluster?.spec.topology?.version === 'v1.36.1') reached.upgraded = true
  })

  const passed: string[] = []
  let stores = mortalStores(base, stopAfter)
  let clock = new VirtualClock()
  let commits = 0
  const start = () =>
    managementEnv({ stores, clock, runtime: scriptedRuntime(Object.fromEntries(hooks.map((hook) => [hook, () => undefined]))) })
  const whileAlive = <T>(work: Promise<T>) => Promise.race([work, stores.death])
  const collect = (env: ManagementEnv | undefined) => {
    for (const { hook, answer } of env?.hooks ?? []) if (answer.kind === 'proceed' && !passed.includes(hook)) passed.push(hook)
  }

  const steps = stepsOfUser()
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
    // The process was stopped. It is restarted with a new clock, which continues at the same time, and the step is repeated.
    collect(env)
    stores.rejectPending()
    await env?.close()
    commits += stores.commits
    clock = new VirtualClock(clock.now())
    stores = mortalStores(base)
    env = await start()
  }
  collect(env)
  const remaining = remainingObjects(managementStore)
  await env?.close()
  return {
    commits: commits + stores.commits,
    machines,
    passed,
    wasAvailable: reached.available,
    wasUpgraded: reached.upgraded,
    remaining,
  }
}

/** Lists objects as `resource name`: Clusters, the objects of which a Cluster consists, and the templates of its Machines and pools. */
const remainingObjects = (store: Store): string[] => {
  return [
    'clusters.cluster.x-k8s.io',
    'machinedeployments.cluster.x-k8s.io',
    'machinesets.cluster.x-k8s.io',
    'machinepools.cluster.x-k8s.io',
    'machines.cluster.x-k8s.io',
    'localclusters.infrastructure.capstan.dev',
    'localmachines.infrastructure.capstan.dev',
    'localmachinepools.infrastructure.capstan.dev',
    'localcontrolplanes.controlplane.capstan.dev',
    'localbootstrapconfigs.bootstrap.capstan.dev',
    'secrets',
    'localmachinetemplates.infrastructure.capstan.dev',
    'localmachinepooltemplates.infrastructure.capstan.dev',
    'localbootstrapconfigtemplates.bootstrap.capstan.dev',
  ].flatMap((resource) => store.list(resource).map(({ metadata }) => `${resource} ${metadata.name}`))
}

const expected: Omit<Result, 'commits'> = {
  passed: hooks,
  wasAvailable: true,
  wasUpgraded: true,
  machines: {
    // One Machine of the control plane and one of `steady` replace unhealthy Machines.
    'control-plane v1.36.0': 4,
    'steady v1.36.0': 2,
    'elastic v1.36.0': 1,
    'control-plane v1.36.1': 3,
    'steady v1.36.1': 1,
    'elastic v1.36.1': 1,
    pool: 4,
  },
  remaining: [
    'localmachinetemplates.infrastructure.capstan.dev demo-control-plane',
    'localmachinetemplates.infrastructure.capstan.dev demo-worker',
    'localmachinepooltemplates.infrastructure.capstan.dev demo-pool',
    'localbootstrapconfigtemplates.bootstrap.capstan.dev demo-worker',
  ],
}

describe('the lifecycle of the demo', async () => {
  const { commits, ...uninterrupted } = await runSteps()

  test('calls the hooks in order, completes the upgrade, deletes the objects of the Cluster, and keeps the templates of its class', () => {
    expect(uninterrupted).toEqual(expected)
  })

  test.each(stopsOf(commits, 6))('has the same result when the process is stopped after write %i and restarted', async (stop) => {
    const { commits: _, ...result } = await runSteps(stop)
    expect(result).toEqual(expected)
  })
})
