/**
 * Runs suites of whole processes, many of them against upstream's programs. `npm run interop` runs the suites of CI, `npm run
 * interop -- SUITE…` the named suites; `--jobs N` runs N at once, `--list` lists all suites. `--prepare` builds and downloads the
 * tools of the suites of CI, or of the named suites, and runs no suite. A suite that could not run counts as failed, and the summary
 * has the reason. Suites that run at once slow down each other's programs: with `--jobs` above 1, failed suites are run again, one
 * at a time. A failed suite that names its failed cases is run again with these names as `--only`, also without `--jobs`. No suite is run
 * again if more than five suites failed, nor a suite of which more than five cases failed. The summary lists both results. `--all`,
 * `--only`, `--real` and `--seed` are options of the suites (`SuiteOptions`). `--inside` is internal: it marks the child process that
 * runs one suite.
 */
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { messageOf } from '@capstan/kube'
import { abuseSuite } from '../interop/abuse.ts'
import { coreTwinSuite } from '../interop/core-twin.ts'
import { clusterctlCapstanSuite } from '../interop/clusterctl-capstan.ts'
import { clusterctlSuite } from '../interop/clusterctl.ts'
import { clientNodeSuite } from '../interop/client-node.ts'
import { conformSuite } from '../interop/conform.ts'
import { conversionSuite } from '../interop/conversion.ts'
import { controllerRuntimeSuite } from '../interop/controller-runtime.ts'
import { controllersSuite } from '../interop/controllers.ts'
import { envtestSuite } from '../interop/envtest.ts'
import { goldenSuite } from '../interop/golden.ts'
import { fullDiskSuite } from '../interop/full-disk.ts'
import { highAvailabilitySuite } from '../interop/high-availability.ts'
import { imageSuite } from '../interop/image.ts'
import { inPlaceSuite } from '../interop/in-place.ts'
import { growthSuite } from '../interop/growth.ts'
import { hooksPeerSuite } from '../interop/hooks-peer.ts'
import { killSuite } from '../interop/kill.ts'
import { kubectlSuite } from '../interop/kubectl.ts'
import { kubectlCompareSuite } from '../interop/kubectl-compare.ts'
import { packagesSuite } from '../interop/packages.ts'
import { lintSuite } from '../interop/lint.ts'
import { manifestsSuite } from '../interop/manifests.ts'
import { managerOnKubernetesSuite, managerSuite } from '../interop/manager.ts'
import { programsSuite } from '../interop/programs.ts'
import { oldContractSuite } from '../interop/old-contract.ts'
import { ownNetwork } from '../interop/processes/own-network.ts'
import { soakSuite } from '../interop/soak.ts'
import { swapSuite } from '../interop/swap.ts'
import { restartSuite } from '../interop/restart.ts'
import { runtimeExtensionSuite } from '../interop/runtime-extension.ts'
import { CannotRun, type Outcome, type Suite, type SuiteOptions } from '../interop/shared/suite.ts'
import { testExtensionSuite } from '../interop/test-extension.ts'
import { toolPaths } from '../interop/shared/tools.ts'
import { upstreamSuite } from '../interop/upstream.ts'

/** Long suites of CI come first, so that several jobs end at about the same time. */
const suites: { readonly [name: string]: Suite } = {
  golden: goldenSuite,
  'core-twin': coreTwinSuite,
  upstream: upstreamSuite,
  conform: conformSuite,
  'kubectl-compare': kubectlCompareSuite,
  controllers: controllersSuite,
  programs: programsSuite,
  'old-contract': oldContractSuite,
  kill: { shows: 'kill -9 under load loses no acknowledged write', ci: true, tools: [], run: killSuite },
  envtest: envtestSuite,
  soak: soakSuite,
  image: imageSuite,
  'high-availability': highAvailabilitySuite,
  packages: packagesSuite,
  'manager-on-kubernetes': managerOnKubernetesSuite,
  manager: managerSuite,
  manifests: manifestsSuite,
  swap: swapSuite,
  'full-disk': fullDiskSuite,
  kubectl: {
    shows: 'real kubectl and clusterctl against capstan up',
    ci: true,
    tools: ['kubectl', 'clusterctl'],
    run: kubectlSuite,
  },
  clusterctl: clusterctlSuite,
  'clusterctl-capstan': clusterctlCapstanSuite,
  'runtime-extension': runtimeExtensionSuite,
  'test-extension': testExtensionSuite,
  'in-place': inPlaceSuite,
  'hooks-peer': hooksPeerSuite,
  conversion: conversionSuite,
  lint: lintSuite,
  growth: growthSuite,
  abuse: abuseSuite,
  'client-node': clientNodeSuite,
  restart: restartSuite,
  'controller-runtime': controllerRuntimeSuite,
}

type Ending =
  | ({ readonly kind: 'ran' } & Outcome)
  | { readonly kind: 'not run'; readonly why: string }
  | { readonly kind: 'broken'; readonly why: string }
  | { readonly kind: 'late' }

interface SuiteRun {
  /** Name of the suite. */
  readonly name: string
  readonly options: SuiteOptions
}

const NameWidth = 22

/** Default time limit of a suite in minutes. On two idle cores, every suite takes less than half of its limit without `--all`. */
const Limit = 15

/**
 * Maximum number of failed suites, and of failed cases of one suite, that are run again. If more fail, none is run again, because load
 * alone does not cause that many failures.
 */
const MaxRepeated = 5

const { values: options, positionals: requested } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean' },
    prepare: { type: 'boolean' },
    inside: { type: 'boolean' },
    jobs: { type: 'string', default: '1' },
    all: { type: 'boolean' },
    only: { type: 'string' },
    real: { type: 'boolean' },
    seed: { type: 'string' },
  },
})
const suiteOptions: SuiteOptions = {
  ...(options.all ? { all: true } : {}),
  ...(options.only === undefined ? {} : { only: options.only }),
  ...(options.real ? { real: true } : {}),
  ...(options.seed === undefined ? {} : { seed: Number(options.seed) }),
}
const jobs = Number(options.jobs)
const unknown = requested.filter((name) => !suites[name])
if (unknown.length > 0) fail(`There is no interop suite ${unknown.join(', ')}: there are ${Object.keys(suites).join(', ')}`)
if (!Number.isInteger(jobs) || jobs < 1) fail(`--jobs ${options.jobs}: must be a number of suites, 1 or more`)
const chosen = Object.keys(suites).filter((name) => (requested.length > 0 ? requested.includes(name) : suites[name]!.ci))

if (options.seed !== undefined && !Number.isSafeInteger(suiteOptions.seed)) fail(`--seed ${options.seed}: must be a whole number`)

if (options.list) {
  for (const [name, { shows, ci }] of Object.entries(suites))
    console.log(`${name.padEnd(NameWidth)} ${ci ? 'CI' : '  '}  ${shows}`)
} else if (options.prepare) {
  for (const name of chosen) await prepare(suites[name]!)
} else if (options.inside) {
  // Ends when the parent process has ended.
  process.once('disconnect', () => process.exit(1))
  process.send!(await run(suites[requested[0]!]!), () => process.exit())
} else {
  const endings = await runAll(
    chosen.map((name) => ({ name, options: suiteOptions })),
    jobs,
  )
  const repeatedEndings = await runAll(repeatedRuns(endings), 1)
  console.log('')
  for (const [name, ending] of endings) {
    const repeatedEnding = repeatedEndings.get(name)
    console.log(
      `${name.padEnd(NameWidth)} ${textOf(ending)}${repeatedEnding ? `; run again alone: ${textOf(repeatedEnding)}` : ''}`,
    )
  }
  const notRequested = Object.keys(suites).filter((name) => !chosen.includes(name))
  if (notRequested.length > 0) console.log(`not requested: ${notRequested.join(', ')}`)
  process.exitCode = [...endings].every(([name, ending]) => hasPassed(repeatedEndings.get(name) ?? ending)) ? 0 : 1
}

function fail(reason: string): never {
  console.error(reason)
  process.exit(2)
}

/** Returns the suites, or the failed cases of suites, that are run again, one suite at a time. */
function repeatedRuns(endings: ReadonlyMap<string, Ending>): SuiteRun[] {
  const failed = [...endings].filter(([, ending]) => !hasPassed(ending))
  if (failed.length > MaxRepeated) return []
  return failed.flatMap(([name, ending]) => {
    const cases = ending.kind === 'ran' ? ending.failedCases : undefined
    if (cases === undefined) return jobs > 1 ? [{ name, options: suiteOptions }] : []
    return cases.length > MaxRepeated ? [] : [{ name, options: { ...suiteOptions, only: cases.join(',') } }]
  })
}

/** Runs up to `jobs` suites at once. With several jobs it prints the output of each suite when the suite ends. */
async function runAll(runs: readonly SuiteRun[], jobs: number): Promise<ReadonlyMap<string, Ending>> {
  const endings = new Map<string, Ending>()
  const pendingRuns = [...runs]
  const job = async () => {
    for (let run = pendingRuns.shift(); run !== undefined; run = pendingRuns.shift()) {
      const { name } = run
      const started = performance.now()
      console.log(jobs === 1 ? `=== ${name}: ${suites[name]!.shows}` : `... ${name} begins`)
      const printed: Buffer[] = []
      const ending = await start(run, suites[name]!, jobs === 1 ? undefined : printed)
      if (jobs > 1) {
        console.log(`=== ${name}: ${suites[name]!.shows}`)
        process.stdout.write(Buffer.concat(printed))
      }
      console.log(`=== ${name}: ${textOf(ending)} (${Math.round((performance.now() - started) / 1000)} s)`)
      endings.set(name, ending)
    }
  }
  await Promise.all(Array.from({ length: jobs }, job))
  return endings
}

/** Runs a suite in a child process, in a separate network namespace if the suite needs one and the machine allows one. */
async function start(suiteRun: SuiteRun, suite: Suite, printed: Buffer[] | undefined): Promise<Ending> {
  try {
    await prepare(suite)
  } catch (err) {
    return { kind: 'not run', why: messageOf(err) }
  }
  if (!suite.ownNetwork) return runInside(suiteRun, [], printed)
  const network = ownNetwork()
  if (network.kind === 'available') return runInside(suiteRun, network.prefix, printed)
  console.log(
    `${suiteRun.name}: programs of this suite listen on every address of this machine, because the machine allows no separate network namespace: ${network.why}`,
  )
  return runInside(suiteRun, [], printed)
}

/** Builds and downloads the tools of a suite, which takes minutes the first time on a machine. */
async function prepare({ tools, prepare: prepareSuite }: Suite): Promise<void> {
  if (tools.length > 0) await toolPaths(...tools)
  await prepareSuite?.()
}

async function run(suite: Suite): Promise<Ending> {
  try {
    const outcome = await Promise.race([suite.run(suiteOptions), timeLimit(suite.minutes ?? Limit)])
    if (outcome === 'late') return { kind: 'late' }
    return { kind: 'ran', ...outcome }
  } catch (err) {
    if (err instanceof CannotRun) return { kind: 'not run', why: err.message }
    return { kind: 'broken', why: err instanceof Error ? (err.stack ?? err.message) : String(err) }
  }
}

function timeLimit(minutes: number): Promise<'late'> {
  return new Promise((resolve) => void setTimeout(() => resolve('late'), minutes * 60_000).unref())
}

/** Runs a suite in a child process of this program, which sends its result to the parent. The programs of the suite end with the child. */
function runInside({ name, options }: SuiteRun, prefix: readonly string[], printed: Buffer[] | undefined): Promise<Ending> {
  const [command, ...args] = [
    ...prefix,
    process.execPath,
    ...process.execArgv,
    process.argv[1]!,
    '--inside',
    ...flagsOf(options),
    name,
  ]
  const output = printed ? 'pipe' : 'inherit'
  const child = spawn(command!, args, { stdio: ['ignore', output, output, 'ipc'] })
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => printed!.push(bytes))
  return new Promise((resolve) => {
    let ending: Ending | undefined
    child.once('message', (message) => {
      ending = message as Ending
    })
    child.once('error', (err) => resolve({ kind: 'not run', why: messageOf(err) }))
    child.once('exit', (code, signal) => {
      ending ??= { kind: 'broken', why: `its process ended with ${signal ?? code}` }
    })
    child.once('close', () => resolve(ending!))
  })
}

/** Returns the options of a suite, as command line flags. */
function flagsOf({ all, only, real, seed }: SuiteOptions): string[] {
  return [
    ...(all ? ['--all'] : []),
    ...(only === undefined ? [] : ['--only', only]),
    ...(real ? ['--real'] : []),
    ...(seed === undefined ? [] : ['--seed', String(seed)]),
  ]
}

function hasPassed(ending: Ending): boolean {
  return ending.kind === 'ran' && ending.failed === 0
}

function textOf(ending: Ending): string {
  switch (ending.kind) {
    case 'ran':
      return `${ending.passed} passed, ${ending.failed} failed`
    case 'not run':
      return `COULD NOT RUN: ${ending.why}`
    case 'broken':
      return `ABORTED: ${ending.why}`
    case 'late':
      return 'ABORTED: it exceeded its time limit'
  }
}
