/**
 * Runs the same scripts with upstream's core and with Capstan's, each with its own API server and webhooks and with the same
 * stub providers, and compares all objects when both cores are idle. `interop/README.md` describes how to add a case.
 */
import { CustomResourceDefinition, messageOf, ValidatingWebhookConfiguration } from '@capstan/kube'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { type CapstanProcess, startCapstan } from './processes/capstan-process.ts'
import { cases, restartCases, timedCases } from './core-twin/cases/index.ts'
import { differing } from './core-twin/differing.ts'
import { explained } from './core-twin/explained.ts'
import { Interruption, type StoppableManagers } from './core-twin/interruption.ts'
import { report } from './core-twin/normalize.ts'
import { unreachedReasons } from './core-twin/reached-reasons.ts'
import { isRestarted, randomCases } from './core-twin/random/cases.ts'
import { Side } from './core-twin/side.ts'
import { stubDefinitions } from './core-twin/stub-kinds.ts'
import { type Case, type Cases, Twin } from './core-twin/twin.ts'
import type { ApiServerOptions, RunningApiServer } from './processes/api-server.ts'
import { chosenByCommit, type Suite, type SuiteOptions, namesWith } from './shared/suite.ts'
import { freePorts } from './processes/programs.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { moduleFolder } from './shared/tools.ts'
import { components, install, type Managers, managersUser, startManagers } from './upstream/managers.ts'
import { until } from './shared/until.ts'

const core = components.filter(({ tool }) => tool === 'capi-core')
const gates = 'ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true,MachinePool=true,MachineTaintPropagation=true'

const scriptedCases: Cases = { ...timedCases, ...cases, ...restartCases }

/** Number of random cases for a seed. */
const RandomCases = 60

/** Number of concurrent cases. */
const MaxConcurrentCases = 16

export const coreTwinSuite: Suite = {
  shows: "upstream's core and Capstan's on the same scripts: the same objects, events and responses",
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'capi-core'],
  ownNetwork: true,
  minutes: 60,
  async prepare() {
    for (const { tool, module } of core) await moduleFolder(tool, module)
  },
  async run(options: SuiteOptions = {}) {
    const allCases = options.seed === undefined ? scriptedCases : randomCases(options.seed, RandomCases)
    const chosen = chosenCases(Object.keys(allCases), options)
    const chosenFrom = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, allCases[name]!]))
    console.log(`${chosen.length} of ${Object.keys(allCases).length} cases`)
    const outcomes = [await compareOn(startCapstanApiServer, chosenFrom(chosen), options)]
    if (options.real) {
      const sample = chosen.filter((_, index) => options.only !== undefined || index % 10 === 0)
      console.log(`${sample.length} of ${Object.keys(allCases).length} cases on kube-apiserver`)
      outcomes.push(await compareOn(startRealApiServer, chosenFrom(sample)))
    }
    const sumOf = (part: 'passed' | 'failed') => outcomes.reduce((sum, outcome) => sum + outcome[part], 0)
    return {
      passed: sumOf('passed'),
      failed: sumOf('failed'),
      failedCases: [...new Set(outcomes.flatMap(({ differing }) => differing))],
    }
  },
}

/** Returns the names of the cases to run: those that contain one of the texts of --only, all with --all or --seed, otherwise a third. */
function chosenCases(names: readonly string[], { all, only, seed }: SuiteOptions): readonly string[] {
  if (only !== undefined) return namesWith(names, only)
  if (all || seed !== undefined) return names
  return chosenByCommit(names, 3)
}

type StartApiServer = (options: ApiServerOptions) => Promise<RunningApiServer>

async function compareOn(start: StartApiServer, chosen: Cases, { all = false }: SuiteOptions = {}): Promise<Outcomes> {
  const startedAt = performance.now()
  await using theirApiServer = await start({ users: [managersUser] })
  await using ourApiServer = await start({})
  await install(theirApiServer.client(), stubDefinitions)
  await install(ourApiServer.client(), stubDefinitions)
  await using managers = await startManagers(theirApiServer, () => {}, { components: core, gates })
  // Capstan's manager keeps its port after a restart, so that the webhook configurations stay valid.
  const [webhookPort] = await freePorts(1)
  const flags = [
    '--kubeconfig',
    ourApiServer.kubeconfig,
    '--providers',
    'core',
    '--diagnostics-port',
    '0',
    '--log-level',
    'error',
  ]
  const startOurs = () => startCapstan(['manager', ...flags, '--webhook-port', String(webhookPort)], /Manager ready/)
  let manager: CapstanProcess = await startOurs()
  const bothManagers: StoppableManagers = {
    async stop() {
      await Promise.all([killUpstream(managers), manager.kill()])
    },
    async start() {
      const [restarted] = await Promise.all([startOurs(), managers.restart(core.map(({ tool }) => tool))])
      manager = restarted
    },
  }
  try {
    await until(
      ourApiServer.client(),
      ValidatingWebhookConfiguration,
      "webhooks of Capstan's core",
      (configurations) => configurations.length > 0,
    )
    await using theirs = await Side.open('theirs', theirApiServer, await servedBy(theirApiServer))
    await using ours = await Side.open('ours', ourApiServer, await servedBy(ourApiServer))
    console.log(`both cores ready after ${((performance.now() - startedAt) / 1000).toFixed(1)} s on ${theirApiServer.name}`)
    const sides = [theirs, ours] as const
    const outcome = new Outcomes()
    const isTimed = (name: string) => name in timedCases
    const isInterrupted = (name: string) => name in restartCases || isRestarted(name)
    const chosenWhere = (isChosen: (name: string) => boolean): [string, Case][] =>
      Object.entries(chosen).filter(([name]) => isChosen(name))
    // Timed cases require that both cores reconcile within two seconds, so they run before the other cases, which keep the machine busy.
    await runAll(chosenWhere(isTimed), sides, outcome)
    await runAll(
      chosenWhere((name) => !isTimed(name) && !isInterrupted(name)),
      sides,
      outcome,
    )
    // Cases of restarts run last and together, because stopping the managers affects every running case.
    const interrupted = chosenWhere(isInterrupted)
    for (let next = interrupted.splice(0, MaxConcurrentCases); next.length > 0; next = interrupted.splice(0, MaxConcurrentCases))
      await runAll(next, sides, outcome, new Interruption(bothManagers, next.length))
    outcome.print()
    if (all) for (const line of unreachedReasons(sides.map((side) => side.reachedReasons))) console.log(`no case reached ${line}`)
    console.log(`${Object.keys(chosen).length} cases in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
    // `programs` begins with the managers that interruptions killed. Only the last programs, one for each component, should still run.
    for (const program of managers.programs.slice(-core.length))
      if (program.ending) console.log(`${program.name} ${program.ending}\n${program.tail()}`)
    return outcome
  } finally {
    await manager.kill()
  }
}

/** Returns the names of the CustomResourceDefinitions with version v1beta2 (kinds of core) or v1 (stub kinds). */
async function servedBy(apiServer: RunningApiServer): Promise<ReadonlySet<string>> {
  const { items } = await apiServer.client().list(CustomResourceDefinition)
  const isComparedVersion = (name: string) => name === 'v1beta2' || name === 'v1'
  return new Set(
    items.filter(({ spec }) => spec.versions.some(({ name }) => isComparedVersion(name))).map(({ metadata }) => metadata.name),
  )
}

async function killUpstream({ programs }: Managers): Promise<void> {
  await Promise.all(programs.map((program) => program.kill()))
}

/** Maximum number of case names printed for each explanation. */
const MaxNames = 5

/** Results of all cases. */
class Outcomes {
  passed = 0
  /** Names of cases that threw an error or have unexplained differences, and are not listed in `differing.ts`. */
  readonly differing: string[] = []
  /** Number of cases that threw an error or have unexplained differences, and are listed in `differing.ts`. */
  known = 0
  /** Number of compared admission responses. */
  comparedResponses = 0
  /**
   * Steps in which the sides became equal only after objects were also refreshed for Capstan's core, as `CASE: STEP`. Before the refresh,
   * both cores, or only Capstan's, had missed a change.
   */
  readonly refreshedSteps: string[] = []
  /** Names of cases by the explanation that they needed. */
  readonly casesByExplanation = new Map<string, string[]>()

  get failed(): number {
    return this.differing.length
  }

  print(): void {
    console.log(`${this.comparedResponses} admission responses compared`)
    for (const step of this.refreshedSteps) console.log(`refreshed on both sides: ${step}`)
    for (const { what } of explained) {
      const names = this.casesByExplanation.get(what)
      if (names) console.log(`explained: ${what} (${names.length} cases: ${names.slice(0, MaxNames).join(', ')})`)
    }
    console.log(`${this.passed} the same, ${this.failed} different, ${this.known} with known differences`)
  }
}

async function runAll(
  named: readonly (readonly [name: string, run: Case])[],
  sides: readonly [Side, Side],
  outcome: Outcomes,
  interruption?: Interruption,
): Promise<void> {
  const pending = [...named]
  const work = async () => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift())
      await runOne(next, new Twin(next[0], sides, interruption), outcome)
  }
  await Promise.all(Array.from({ length: MaxConcurrentCases }, work))
}

async function runOne([name, run]: readonly [name: string, run: Case], twin: Twin, outcome: Outcomes): Promise<void> {
  const startedAt = performance.now()
  let failure: string | undefined
  try {
    await twin.open()
    await run(twin)
  } catch (err) {
    failure = messageOf(err)
  } finally {
    twin.close()
  }
  for (const { what } of twin.explained)
    outcome.casesByExplanation.set(what, [...(outcome.casesByExplanation.get(what) ?? []), name])
  outcome.comparedResponses += twin.comparedResponses
  outcome.refreshedSteps.push(...twin.refreshedSteps.map((step) => `${name}: ${step}`))
  const isEqual = failure === undefined && twin.differingSteps.length === 0
  const reason = differing[name]
  if (isEqual) outcome.passed++
  else if (reason !== undefined) outcome.known++
  else outcome.differing.push(name)
  const verdict = isEqual ? 'same     ' : reason === undefined ? 'DIFFERENT' : 'known    '
  console.log(`${verdict}  ${name} (${((performance.now() - startedAt) / 1000).toFixed(0)} s)`)
  if (reason !== undefined) console.log(`  differs: ${reason}`)
  if (failure !== undefined) console.log(`  broken: ${failure}`)
  for (const { step, differences } of twin.differingSteps) {
    console.log(`  ${step}`)
    console.log(report(differences).replace(/^/gm, '    '))
  }
}
