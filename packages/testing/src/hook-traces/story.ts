/**
 * Creates a Cluster, upgrades it by two minor versions and deletes it, with a handler for each of the nine lifecycle hooks in a
 * separate ExtensionConfig. A scenario defines the responses of the handlers and additional actions.
 */
import {
  AfterClusterUpgrade,
  AfterControlPlaneInitialized,
  AfterControlPlaneUpgrade,
  AfterWorkersUpgrade,
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
  BeforeControlPlaneUpgrade,
  BeforeWorkersUpgrade,
  Cluster,
  ClusterClass,
  ExtensionConfig,
  GenerateUpgradePlan,
  type Hook,
  waitingHooks,
  type WaitingHook,
} from '@capstan/api'
import {
  type Answer,
  defineExtension,
  extensionServer,
  type FetchHandler,
  type Handler,
  proceedNow,
  proceedWith,
} from '@capstan/extension'
import { isTrue, orAbsent, seconds } from '@capstan/kube'
import { demoFolder } from '@capstan/lab'
import { conditionText } from '../core-env.ts'
import { CallerHeader, type FleetEnv, fleetEnv, type ManagerProcess } from '../fleet-env.ts'
import { createFrom } from '../manifests.ts'
import { type CheckedCall, OrderChecker, textOf, Versions } from './order.ts'
import { clusterStateIn, clusterStateText } from './cluster-state.ts'

export const LifecycleHooks: readonly Hook[] = [
  BeforeClusterCreate,
  AfterControlPlaneInitialized,
  BeforeClusterUpgrade,
  BeforeControlPlaneUpgrade,
  AfterControlPlaneUpgrade,
  BeforeWorkersUpgrade,
  AfterWorkersUpgrade,
  AfterClusterUpgrade,
  BeforeClusterDelete,
]

/** One call of a handler. */
export interface Call extends CheckedCall {
  /** Number of this call among the calls of this hook and version, starting with 1. */
  readonly nth: number
  /** The process that makes the call. */
  readonly by: ManagerProcess
}

export interface HookScenario {
  /** Whether two manager processes start, with leader election. Default: one process without it. */
  readonly leaderElection?: boolean
  /** Returns a handler's response; a `Response` is sent unchanged. Default: proceed. */
  respond?(call: Call): Answer | Response | undefined
  /** Called after each second of virtual time. */
  everySecond?(story: Story): Promise<void>
}

/** Progress and result of a scenario. */
export interface Story {
  readonly env: FleetEnv
  readonly order: OrderChecker
  /**
   * One text of two lines for each call. First line: seconds since the start, hook and version, and response. Second line: the state of the
   * Cluster's objects.
   */
  readonly trace: readonly string[]
  /** Milliseconds of virtual time since the start. */
  readonly took: number
  /** Number of calls by hook and version, as `textOf` formats them. */
  readonly calls: ReadonlyMap<string, number>
  /**
   * The last hook call, as `textOf` formats it, if its response does not allow core to proceed. A `Response` of the scenario never allows it.
   * `undefined` after `remove` of this hook.
   */
  readonly blocking: string | undefined
  readonly cluster: () => Promise<Cluster | undefined>
  /** Returns the condition TopologyReconciled of the Cluster as text. */
  readonly reconciled: () => Promise<string | undefined>
  /** Returns the records of the blocking hooks, from the Cluster. */
  readonly waiting: () => Promise<readonly WaitingHook[]>
  /** Removes the handler of a hook from the discovery response of its extension, or deletes the ExtensionConfig. */
  remove(hook: string, how: 'unregister' | 'delete'): Promise<void>
}

export const key = { namespace: 'default', name: 'demo' }
const configOf = (hook: string) => hook.toLowerCase()

/** Runs a scenario to its end. @throws if creation, upgrade or deletion takes more than ten minutes of virtual time */
export async function runScenario(scenario: HookScenario = {}): Promise<Story> {
  const trace: string[] = []
  const calls = new Map<string, number>()
  const unregistered = new Set<string>()
  let blocking: string | undefined

  const handle =
    (hook: Hook, by: ManagerProcess) =>
    (call: { request: object }): Answer | Response => {
      const checked = checkedCallOf(hook, call.request as HookRequest)
      const text = textOf(checked)
      const nth = (calls.get(text) ?? 0) + 1
      calls.set(text, nth)
      order.checkCall(checked)
      const answer = scenario.respond?.({ ...checked, nth, by }) ?? proceedNow()
      const proceeds = !(answer instanceof Response) && (answer.kind === 'proceed' || (answer.kind === 'hold' && !hook.blocking))
      order.recordResponse(checked, proceeds && !by.isDead)
      blocking = proceeds ? undefined : text
      const when = ((env.clock.now() - start) / 1000).toFixed(1).padStart(6)
      trace.push(`${when}  ${text}: ${responseText(answer)}\n        ${clusterStateText(clusterStateIn(env.store))}`)
      return answer
    }
  const extensions: FetchHandler = async (request) => {
    const config = new URL(request.url).hostname
    const by = env.managers.find(({ name }) => name === request.headers.get(CallerHeader))!
    const hook = LifecycleHooks.find(({ name }) => configOf(name) === config)
    const handlers: Handler[] = []
    let raw: Response | undefined
    if (!hook) handlers.push({ hook: GenerateUpgradePlan, name: 'steps', handle: planOf as Handler['handle'] })
    else if (!unregistered.has(hook.name)) {
      const handleAndCapture = (call: { request: object }): Answer => {
        const answer = handle(hook, by)(call)
        if (!(answer instanceof Response)) return answer
        raw = answer
        return proceedNow()
      }
      handlers.push({ hook, name: 'gate', handle: handleAndCapture as Handler['handle'] })
    }
    const response = await extensionServer(defineExtension({ name: config, handlers }))(request)
    return raw ?? response
  }

  const env = await fleetEnv({ extensions, leaderElection: scenario.leaderElection ?? false })
  const { client } = env
  const start = env.clock.now()
  const order = new OrderChecker(env.store)
  const cluster = () => orAbsent(client.get(Cluster, key))
  const story: Story = {
    env,
    order,
    trace,
    get took() {
      return env.clock.now() - start
    },
    calls,
    get blocking() {
      return blocking
    },
    cluster,
    reconciled: async () => conditionText((await cluster())!, 'TopologyReconciled'),
    waiting: async () => {
      const current = await cluster()
      return current ? waitingHooks(current) : []
    },
    async remove(hook, how) {
      const config = { name: configOf(hook) }
      if (how === 'delete') await client.delete(ExtensionConfig, config)
      else {
        unregistered.add(hook)
        // A change of the ExtensionConfig makes core discover its handlers again.
        await client.patch(ExtensionConfig, config, { type: 'merge', body: { metadata: { annotations: { changed: '' } } } })
      }
      order.recordRemoval(hook)
      if (blocking?.split(' ')[0] === hook) blocking = undefined
    },
  }
  const advanceUntil = async (event: string, isDone: (found: Cluster | undefined) => boolean) => {
    for (let second = 0; !isDone(await cluster()); second++) {
      if (second === 600) throw new Error(`${event} did not happen: ${await story.reconciled()}\n${trace.join('\n')}`)
      await env.advance(seconds(1))
      await scenario.everySecond?.(story)
      if (env.managers.length === 0) await env.start()
    }
  }

  await createFrom(client, new URL('class.yaml', demoFolder))
  const upgrade = { external: { generateUpgradePlanExtension: 'steps.plan' } }
  await client.patch(ClusterClass, key, { type: 'merge', body: { spec: { upgrade } } })
  for (const name of ['plan', ...LifecycleHooks.map((hook) => configOf(hook.name))])
    await client.create(ExtensionConfig, { metadata: { name }, spec: { clientConfig: { url: `https://${name}` } } })
  await env.start()
  if (scenario.leaderElection) await env.start()

  const worker = (name: string) => ({ class: 'worker', name, replicas: 1 })
  const topology = {
    classRef: { name: 'demo' },
    version: Versions[0],
    controlPlane: { replicas: 1 },
    workers: { machineDeployments: [worker('steady'), worker('elastic')] },
  }
  await client.create(Cluster, { metadata: key, spec: { topology } })
  await advanceUntil('creation', isSettled)

  // Two changes are made together with the version: a different template for all workers, and a further MachineDeployment. `order.ts` checks
  // how long core postpones them: the template until BeforeClusterUpgrade allows the upgrade, the MachineDeployment until the last upgrade
  // step of the workers.
  const variables = [{ name: 'workerNodeDelay', value: '200ms' }]
  const workers = { machineDeployments: [...topology.workers.machineDeployments, worker('late')] }
  await client.patch(Cluster, key, {
    type: 'merge',
    body: { spec: { topology: { version: Versions.at(-1), variables, workers } } },
  })
  await advanceUntil('the upgrade', isSettled)

  await client.delete(Cluster, key)
  await advanceUntil('deletion', (current) => current === undefined)
  order.end()
  await env.close()
  return story
}

interface HookRequest {
  readonly fromKubernetesVersion?: string
  readonly toKubernetesVersion?: string
  readonly kubernetesVersion?: string
}

function checkedCallOf(hook: Hook, { fromKubernetesVersion, toKubernetesVersion, kubernetesVersion }: HookRequest): CheckedCall {
  const version = toKubernetesVersion ?? kubernetesVersion ?? ''
  const previousVersion = Versions[Versions.indexOf(version as never) - 1] ?? ''
  return { hook: hook.name, version, from: fromKubernetesVersion ?? previousVersion }
}

/** Returns an upgrade plan in which control plane and workers are upgraded to each later version of `Versions`. */
function planOf({
  request,
}: {
  request: { fromControlPlaneKubernetesVersion: string; fromWorkersKubernetesVersion?: string }
}): Answer {
  const versionsAfter = (from: string) => Versions.filter((version) => version > from).map((version) => ({ version }))
  const { fromControlPlaneKubernetesVersion, fromWorkersKubernetesVersion = '' } = request
  return proceedWith({
    controlPlaneUpgrades: versionsAfter(fromControlPlaneKubernetesVersion),
    workersUpgrades: versionsAfter(fromWorkersKubernetesVersion),
  })
}

const responseText = (answer: Answer | Response): string => {
  if (answer instanceof Response) return `HTTP ${answer.status}`
  switch (answer.kind) {
    case 'proceed':
      return 'proceed'
    case 'hold':
      return `wait ${answer.seconds} s (${answer.message})`
    case 'fail':
      return `Failure (${answer.message})`
  }
}

const isSettled = (cluster: Cluster | undefined): boolean =>
  cluster !== undefined &&
  isTrue(cluster, 'TopologyReconciled') &&
  isTrue(cluster, 'Available') &&
  cluster.status?.conditions?.find(({ type }) => type === 'TopologyReconciled')?.observedGeneration ===
    cluster.metadata.generation
