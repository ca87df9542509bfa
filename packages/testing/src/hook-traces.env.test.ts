/**
 * Checks the order of the nine lifecycle hooks and of writes of a Cluster's objects (`hook-traces/order.ts`), with handlers
 * that proceed, block, fail or are removed, and with processes that are killed.
 */
import { Cluster } from '@capstan/api'
import { fail, holdFor } from '@capstan/extension'
import { minutes } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { key, LifecycleHooks, type HookScenario, runScenario, type Story } from './hook-traces/story.ts'

const names = LifecycleHooks.map(({ name }) => name)
/** Hooks that are due in each of the two steps of the upgrade. The other hooks are due once, because there is one Cluster and one upgrade. */
const perStep = ['BeforeControlPlaneUpgrade', 'AfterControlPlaneUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade']

/** Returns the number of calls of a hook for each version in its requests; one number for a hook whose request has no version. */
const callsOf = ({ calls }: Story, hook: string): number[] =>
  [...calls].filter(([callText]) => callText.split(' ')[0] === hook).map(([, count]) => count)

/** Returns the expected result of `callsOf` for a hook that is called `calls` times for each version. */
const expectedCalls = (hook: string, calls: number) => (perStep.includes(hook) ? [calls, calls] : [calls])

test('calls each hook once per Cluster, upgrade or upgrade step, in order, when no handler blocks', async () => {
  const story = await runScenario()
  expect(story.order.violations).toEqual([])
  expect(story.trace.join('\n')).toMatchInlineSnapshot(`
    "   0.0  BeforeClusterCreate: proceed
            not initialized
       1.5  AfterControlPlaneInitialized: proceed
            control plane v1.34.0, Machine v1.34.0 | elastic v1.34.0, Machine v1.34.0 | steady v1.34.0, Machine v1.34.0
       3.0  BeforeClusterUpgrade v1.36.0: proceed
            control plane v1.34.0, Machine v1.34.0 | elastic v1.34.0, Machine v1.34.0 | steady v1.34.0, Machine v1.34.0
       3.0  BeforeControlPlaneUpgrade v1.35.0: proceed
            control plane v1.34.0, Machine v1.34.0 | elastic v1.34.0, Machine v1.34.0 | steady v1.34.0, Machine v1.34.0
       3.8  AfterControlPlaneUpgrade v1.35.0: proceed
            control plane v1.35.0, Machine v1.35.0 | elastic v1.34.0, Machine v1.34.0 | steady v1.34.0, Machine v1.34.0
       3.8  BeforeWorkersUpgrade v1.35.0: proceed
            control plane v1.35.0, Machine v1.35.0 | elastic v1.34.0, Machine v1.34.0 | steady v1.34.0, Machine v1.34.0
       5.2  AfterWorkersUpgrade v1.35.0: proceed
            control plane v1.35.0, Machine v1.35.0 | elastic v1.35.0, Machine v1.35.0 | steady v1.35.0, Machine v1.35.0
       5.2  BeforeControlPlaneUpgrade v1.36.0: proceed
            control plane v1.35.0, Machine v1.35.0 | elastic v1.35.0, Machine v1.35.0 | steady v1.35.0, Machine v1.35.0
       6.0  AfterControlPlaneUpgrade v1.36.0: proceed
            control plane v1.36.0, Machine v1.36.0 | elastic v1.35.0, Machine v1.35.0 | steady v1.35.0, Machine v1.35.0
       6.0  BeforeWorkersUpgrade v1.36.0: proceed
            control plane v1.36.0, Machine v1.36.0 | elastic v1.35.0, Machine v1.35.0 | steady v1.35.0, Machine v1.35.0
       7.4  AfterWorkersUpgrade v1.36.0: proceed
            control plane v1.36.0, Machine v1.36.0 | elastic v1.36.0, Machine v1.36.0 | late v1.36.0, Machine v1.36.0 | steady v1.36.0, Machine v1.36.0
       7.4  AfterClusterUpgrade v1.36.0: proceed
            control plane v1.36.0, Machine v1.36.0 | elastic v1.36.0, Machine v1.36.0 | late v1.36.0, Machine v1.36.0 | steady v1.36.0, Machine v1.36.0
       8.0  BeforeClusterDelete: proceed
            deleting | control plane v1.36.0, Machine v1.36.0 | elastic v1.36.0, Machine v1.36.0 | late v1.36.0, Machine v1.36.0 | steady v1.36.0, Machine v1.36.0"
  `)
})

describe('a blocking handler', async () => {
  const recordedStates = new Map<string, { condition: string | undefined; waiting: unknown }>()
  let rejected = ''
  const story = await runScenario({
    respond({ hook, nth }) {
      if (nth > 1) return undefined
      // A blocking response of this hook is ignored.
      if (hook === 'AfterControlPlaneInitialized') return Response.json({ status: 'Success', retryAfterSeconds: 7 })
      return holdFor(7, `${hook} is not done`)
    },
    async everySecond({ blocking, reconciled, waiting, env }) {
      if (blocking === undefined || recordedStates.has(blocking)) return
      recordedStates.set(blocking, { condition: await reconciled(), waiting: await waiting() })
      if (!blocking.startsWith('AfterClusterUpgrade')) return
      const next = { spec: { topology: { version: 'v1.37.0' } } }
      rejected = await env.client.patch(Cluster, key, { type: 'merge', body: next }).then(
        () => 'accepted',
        (err: Error) => err.message,
      )
    },
  })

  test('causes no violation of the order', () => expect(story.order.violations).toEqual([]))

  test.each(names)('of %s is called once more, if the hook can block', (hook) => {
    expect(callsOf(story, hook)).toEqual(expectedCalls(hook, hook === 'AfterControlPlaneInitialized' ? 1 : 2))
  })

  test("is reported with upstream's messages", () => {
    const conditions = [...recordedStates].map(
      ([callText, { condition }]) => `${callText}\n  ${condition?.replaceAll('\n', '\n  ')}`,
    )
    expect(conditions.join('\n')).toMatchInlineSnapshot(`
      "BeforeClusterCreate
        False ClusterCreating: Following hooks are blocking Cluster topology creation: BeforeClusterCreate: BeforeClusterCreate is not done
      AfterControlPlaneInitialized
        True ReconcileSucceeded
      BeforeClusterUpgrade v1.36.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: BeforeClusterUpgrade: BeforeClusterUpgrade is not done
          * LocalControlPlane pending upgrade to version v1.35.0, v1.36.0
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.35.0, v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      BeforeControlPlaneUpgrade v1.35.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: BeforeControlPlaneUpgrade: BeforeControlPlaneUpgrade is not done
          * LocalControlPlane pending upgrade to version v1.35.0, v1.36.0
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.35.0, v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      AfterControlPlaneUpgrade v1.35.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: AfterControlPlaneUpgrade: AfterControlPlaneUpgrade is not done
          * LocalControlPlane pending upgrade to version v1.36.0
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.35.0, v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      BeforeWorkersUpgrade v1.35.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: BeforeWorkersUpgrade: BeforeWorkersUpgrade is not done
          * LocalControlPlane pending upgrade to version v1.36.0
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.35.0, v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      AfterWorkersUpgrade v1.35.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: AfterWorkersUpgrade: AfterWorkersUpgrade is not done
          * LocalControlPlane pending upgrade to version v1.36.0
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      BeforeControlPlaneUpgrade v1.36.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: BeforeControlPlaneUpgrade: BeforeControlPlaneUpgrade is not done
          * LocalControlPlane pending upgrade to version v1.36.0
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      AfterControlPlaneUpgrade v1.36.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: AfterControlPlaneUpgrade: AfterControlPlaneUpgrade is not done
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      BeforeWorkersUpgrade v1.36.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: BeforeWorkersUpgrade: BeforeWorkersUpgrade is not done
          * MachineDeployments demo-elastic, demo-steady pending upgrade to version v1.36.0
          * MachineDeployment late creation deferred while control plane upgrade is in progress
      AfterWorkersUpgrade v1.36.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: AfterWorkersUpgrade: AfterWorkersUpgrade is not done
      AfterClusterUpgrade v1.36.0
        False ClusterUpgrading: Cluster is upgrading to v1.36.0
          * Following hooks are blocking upgrade: AfterClusterUpgrade: AfterClusterUpgrade is not done
      BeforeClusterDelete
        False Deleting: Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: BeforeClusterDelete is not done"
    `)
  })

  test('has a record with the handler, the start, the next call, the number of calls and the last message', () => {
    expect(
      [...recordedStates].map(([callText, { waiting }]) => [callText, JSON.stringify(waiting)].join('\n  ')).join('\n'),
    ).toMatchInlineSnapshot(`
      "BeforeClusterCreate
        [{"hook":"BeforeClusterCreate","handlers":["gate.beforeclustercreate"],"since":"2026-01-01T00:00:00Z","until":"2026-01-01T00:00:07Z","requestKey":"omJHwuticVUcnkxR5d7plLutf5AlnjCJ7NYMaPEQSiM","calls":1,"message":"BeforeClusterCreate is not done"}]
      AfterControlPlaneInitialized
        []
      BeforeClusterUpgrade v1.36.0
        [{"hook":"BeforeClusterUpgrade","handlers":["gate.beforeclusterupgrade"],"since":"2026-01-01T00:00:10Z","until":"2026-01-01T00:00:17Z","requestKey":"xwHgKbtrPncFJ5jM2Dzmt9Il1JoIkpmZhbFefN8691A","calls":1,"message":"BeforeClusterUpgrade is not done"}]
      BeforeControlPlaneUpgrade v1.35.0
        [{"hook":"BeforeControlPlaneUpgrade","handlers":["gate.beforecontrolplaneupgrade"],"since":"2026-01-01T00:00:17Z","until":"2026-01-01T00:00:24Z","requestKey":"NHw-NmptpTbk-c1UTC7t1TuTOMRr7LVXrlrdpwqwiMs","calls":1,"message":"BeforeControlPlaneUpgrade is not done"}]
      AfterControlPlaneUpgrade v1.35.0
        [{"hook":"AfterControlPlaneUpgrade","handlers":["gate.aftercontrolplaneupgrade"],"since":"2026-01-01T00:00:24Z","until":"2026-01-01T00:00:32Z","requestKey":"dhIoL0aiT8JgT-KbDPPug-HuBqsXXAa765Ub7zRvCMU","calls":1,"message":"AfterControlPlaneUpgrade is not done"}]
      BeforeWorkersUpgrade v1.35.0
        [{"hook":"BeforeWorkersUpgrade","handlers":["gate.beforeworkersupgrade"],"since":"2026-01-01T00:00:31Z","until":"2026-01-01T00:00:39Z","requestKey":"Hmzr0ovjO15HSY8W3c9zJZqgB2znETS56gAm9v7K9D4","calls":1,"message":"BeforeWorkersUpgrade is not done"}]
      AfterWorkersUpgrade v1.35.0
        [{"hook":"AfterWorkersUpgrade","handlers":["gate.afterworkersupgrade"],"since":"2026-01-01T00:00:40Z","until":"2026-01-01T00:00:48Z","requestKey":"r9aBJwhzQaBByeutJqF9UOMaiftHoJSqO3lw_WcJSwg","calls":1,"message":"AfterWorkersUpgrade is not done"}]
      BeforeControlPlaneUpgrade v1.36.0
        [{"hook":"BeforeControlPlaneUpgrade","handlers":["gate.beforecontrolplaneupgrade"],"since":"2026-01-01T00:00:47Z","until":"2026-01-01T00:00:55Z","requestKey":"R67nOyaTyWYqt0t-xcl-4Q7MUtIPwzPg44GVzzxIdrk","calls":1,"message":"BeforeControlPlaneUpgrade is not done"}]
      AfterControlPlaneUpgrade v1.36.0
        [{"hook":"AfterControlPlaneUpgrade","handlers":["gate.aftercontrolplaneupgrade"],"since":"2026-01-01T00:00:55Z","until":"2026-01-01T00:01:02Z","requestKey":"Kg1XAWyrvD4TWr3mkWOp9-hDt-UdGYordheq2ut9Vfk","calls":1,"message":"AfterControlPlaneUpgrade is not done"}]
      BeforeWorkersUpgrade v1.36.0
        [{"hook":"BeforeWorkersUpgrade","handlers":["gate.beforeworkersupgrade"],"since":"2026-01-01T00:01:02Z","until":"2026-01-01T00:01:09Z","requestKey":"r9DdHWuxT3B_uRKFIWlx14hAAxio0NV_POo_BHzxn7o","calls":1,"message":"BeforeWorkersUpgrade is not done"}]
      AfterWorkersUpgrade v1.36.0
        [{"hook":"AfterWorkersUpgrade","handlers":["gate.afterworkersupgrade"],"since":"2026-01-01T00:01:10Z","until":"2026-01-01T00:01:18Z","requestKey":"N74MZ_Bl4A0pABkK7pyned860Jke-Q392A2ACrnC-Rs","calls":1,"message":"AfterWorkersUpgrade is not done"}]
      AfterClusterUpgrade v1.36.0
        [{"hook":"AfterClusterUpgrade","handlers":["gate.afterclusterupgrade"],"since":"2026-01-01T00:01:17Z","until":"2026-01-01T00:01:25Z","requestKey":"S1T7fKCSPXjV6jwhcelncgPTEYRXdYxEo8fUjRWHuDQ","calls":1,"message":"AfterClusterUpgrade is not done"}]
      BeforeClusterDelete
        [{"hook":"BeforeClusterDelete","handlers":["gate.beforeclusterdelete"],"since":"2026-01-01T00:01:25Z","until":"2026-01-01T00:01:32Z","requestKey":"eOzqF0SqUDT-Pyk-wi5Baggtd6nzkIbm2zhYAObwF1Y","calls":1,"message":"BeforeClusterDelete is not done"}]"
    `)
  })

  test('of AfterClusterUpgrade prevents the next version', () => {
    expect(rejected).toContain('version cannot be changed when the "AfterClusterUpgrade" hook is still blocking')
  })
})

/**
 * Returns a `respond` that kills the process that makes the first call of a hook for a version: during the call if `writes` is 0, otherwise
 * after that number of further writes.
 */
const killCaller = (writes: number): NonNullable<HookScenario['respond']> => {
  return ({ nth, by }) => {
    if (nth === 1) by.kill(writes)
    return undefined
  }
}

/**
 * Returns a scenario in which handlers respond with a retry time of one hour and are removed while they block. The handler of
 * AfterControlPlaneInitialized fails instead, because this hook cannot block.
 */
const blockUntilRemoved = (how: 'unregister' | 'delete'): HookScenario => ({
  respond: ({ hook }) => (hook === 'AfterControlPlaneInitialized' ? fail('broken') : holdFor(3600, 'for long')),
  async everySecond({ blocking, remove }) {
    if (blocking !== undefined) await remove(blocking.split(' ')[0]!, how)
  },
})

async function keepTwoManagers({ env }: Story): Promise<void> {
  while (env.managers.length < 2) await env.start()
}

/** The number of calls that a scenario expects: a title, and the expected result of `callsOf`. */
interface CallCount {
  readonly title: string
  readonly expected: (hook: string) => unknown
}

const twice: CallCount = { title: 'is called twice for each version', expected: (hook) => expectedCalls(hook, 2) }

const atMostTwice: CallCount = {
  title: 'is called once or twice for each version',
  expected: () => expect.toSatisfy((calls: number[]) => calls.length > 0 && calls.every((count) => count <= 2)),
}

/** The handler of AfterControlPlaneInitialized fails, and is called again until it is removed. */
const untilRemoved: CallCount = {
  title: 'is called once (AfterControlPlaneInitialized: any number of times)',
  expected: (hook) => (hook === 'AfterControlPlaneInitialized' ? [expect.any(Number)] : [1]),
}

describe.each<[what: string, scenario: HookScenario, calls: CallCount]>([
  ['fails with HTTP 500', { respond: ({ nth }) => (nth === 1 ? new Response('no', { status: 500 }) : undefined) }, twice],
  ['returns a Failure', { respond: ({ nth }) => (nth === 1 ? fail('not now') : undefined) }, twice],
  ['is removed from discovery while it blocks', blockUntilRemoved('unregister'), untilRemoved],
  ['loses its ExtensionConfig while it blocks', blockUntilRemoved('delete'), untilRemoved],
  ['is called by a process that is killed during the call', { respond: killCaller(0) }, twice],
  [
    'is called by a leader that is killed during the call',
    { leaderElection: true, respond: killCaller(0), everySecond: keepTwoManagers },
    twice,
  ],
  [
    'is called by a leader that is killed right after its next write',
    { leaderElection: true, respond: killCaller(1), everySecond: keepTwoManagers },
    atMostTwice,
  ],
])('a handler that %s', async (_, scenario, calls) => {
  const story = await runScenario(scenario)
  test('causes no violation of the order', () => expect(story.order.violations).toEqual([]))
  const maxMinutes = scenario.leaderElection ? 10 : 1
  test(`lets the lifecycle of the Cluster end within ${maxMinutes} min of virtual time`, () =>
    expect(story.took).toBeLessThan(minutes(maxMinutes)))
  test.each(names)(`of %s ${calls.title}`, (hook) => expect(callsOf(story, hook)).toEqual(calls.expected(hook)))
})

describe('core in a process that is killed after each hook, and replaced,', () => {
  // Numbers of writes between a hook and the kill: by default a sample; with CAPSTAN_STOPS=24, as in CI, every 24th write;
  // with CAPSTAN_STOPS=1, each write. Between two hooks there are fewer than `maxWrites` writes.
  const maxWrites = 264
  const every = Number(process.env.CAPSTAN_STOPS)
  const stops = every ? Array.from({ length: Math.ceil(maxWrites / every) }, (_, i) => i * every + 1) : [1, 2, 4, 9, 33]
  test.each(stops)(
    'keeps the order and calls each hook at most twice for each version when %i writes precede the kill',
    async (writes) => {
      const story = await runScenario({ respond: killCaller(writes) })
      expect(story.order.violations).toEqual([])
      expect(names.filter((hook) => callsOf(story, hook).some((calls) => calls > 2))).toEqual([])
    },
    every ? 600_000 : 240_000,
  )
})
