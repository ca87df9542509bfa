/**
 * Suites of whole processes, and against programs that are not ours. `npm run interop` runs those of CI, `npm run interop -- SUITE…`
 * the ones named, `--except SUITE…` those of CI without some. `--list` says which there are, `--prepare` builds what those of CI need and
 * runs nothing. Says plainly which could not run, and why; one that belongs to CI and did not run is a failure.
 */
import { spawn } from 'node:child_process'
import { messageOf } from '@capstan/kube'
import { clusterctlSuite } from '../interop/clusterctl.ts'
import { clientNodeSuite } from '../interop/client-node.ts'
import { controllerRuntimeSuite } from '../interop/controller-runtime.ts'
import { controllersSuite } from '../interop/controllers.ts'
import { envtestSuite } from '../interop/envtest.ts'
import { goldenSuite } from '../interop/golden.ts'
import { fullDiskSuite } from '../interop/full-disk.ts'
import { killSuite } from '../interop/kill.ts'
import { kubectlSuite } from '../interop/kubectl.ts'
import { kubectlCompareSuite } from '../interop/kubectl-compare.ts'
import { managerOnKubernetesSuite, managerSuite } from '../interop/manager.ts'
import { ownNetwork } from '../interop/own-network.ts'
import { restartSuite } from '../interop/restart.ts'
import { CannotRun, type Outcome, type Suite } from '../interop/suite.ts'
import { testExtensionSuite } from '../interop/test-extension.ts'
import { toolPaths } from '../interop/tools.ts'
import { upstreamSuite } from '../interop/upstream.ts'

const suites: { readonly [name: string]: Suite } = {
  kubectl: { shows: 'real kubectl against capstan up', ci: true, tools: ['kubectl'], run: kubectlSuite },
  'kubectl-compare': kubectlCompareSuite,
  golden: goldenSuite,
  kill: { shows: 'kill -9 under load loses nothing', ci: true, tools: [], run: killSuite },
  restart: restartSuite,
  envtest: envtestSuite,
  'controller-runtime': controllerRuntimeSuite,
  'client-node': clientNodeSuite,
  'full-disk': fullDiskSuite,
  manager: managerSuite,
  'manager-on-kubernetes': managerOnKubernetesSuite,
  controllers: controllersSuite,
  clusterctl: clusterctlSuite,
  'test-extension': testExtensionSuite,
  upstream: upstreamSuite,
}

type Ending =
  | ({ readonly kind: 'ran' } & Outcome)
  | { readonly kind: 'not run'; readonly why: string }
  | { readonly kind: 'broken'; readonly why: string }
  | { readonly kind: 'late' }

/** Minutes that a suite may take; none takes half as long on two cores that have nothing else to do. */
const Limit = 15

const asked = process.argv.slice(2)
if (asked[0] === '--list') {
  for (const [name, { shows, ci }] of Object.entries(suites)) console.log(`${name.padEnd(16)} ${ci ? 'CI' : '  '}  ${shows}`)
  process.exit(0)
}
if (asked[0] === '--prepare') {
  for (const suite of Object.values(suites).filter(({ ci }) => ci)) await prepare(suite)
  process.exit(0)
}
// A suite in a network of its own is this program again, which tells the one that started it how it ended.
const isInside = asked[0] === '--inside'
if (isInside) asked.shift()
/** Those of CI without some, which run elsewhere. */
const except = asked[0] === '--except' ? asked.splice(0).slice(1) : []
const unknown = [...asked, ...except].filter((name) => !suites[name])
if (unknown.length > 0) {
  console.error(`There is no interop suite ${unknown.join(', ')}: there are ${Object.keys(suites).join(', ')}`)
  process.exit(2)
}

// Nobody is there any more who wants to know.
if (isInside) process.once('disconnect', () => process.exit(1))
if (isInside) process.send!(await run(suites[asked[0]!]!), () => process.exit())
else {
  const chosen = Object.keys(suites).filter((name) =>
    asked.length > 0 ? asked.includes(name) : suites[name]!.ci && !except.includes(name),
  )
  const endings = new Map<string, Ending>()
  for (const name of chosen) {
    const started = performance.now()
    console.log(`=== ${name}: ${suites[name]!.shows}`)
    const ending = await start(name, suites[name]!)
    endings.set(name, ending)
    console.log(`=== ${name}: ${textOf(ending)} (${Math.round((performance.now() - started) / 1000)} s)`)
    // It cannot be stopped from outside; the end of this process ends all that it has started.
    if (ending.kind === 'late') break
  }
  console.log('')
  for (const [name, ending] of endings) console.log(`${name.padEnd(16)} ${textOf(ending)}`)
  const notReached = chosen.filter((name) => !endings.has(name))
  if (notReached.length > 0) console.log(`NOT REACHED: ${notReached.join(', ')}`)
  const notAsked = Object.keys(suites).filter((name) => !chosen.includes(name))
  if (notAsked.length > 0) console.log(`not asked for: ${notAsked.join(', ')}`)
  const isGood = [...endings.values()].every((ending) => ending.kind === 'ran' && ending.failed === 0)
  process.exit(isGood ? 0 : 1)
}

async function start(name: string, suite: Suite): Promise<Ending> {
  try {
    await prepare(suite)
  } catch (err) {
    return { kind: 'not run', why: messageOf(err) }
  }
  if (!suite.ownNetwork) return run(suite)
  const network = ownNetwork()
  if (network.kind === 'available') return runInside(name, network.prefix)
  console.log(
    `${name}: programs of this suite listen on every address of this machine, since it gives no network of their own: ${network.why}`,
  )
  return run(suite)
}

/** Builds and fetches what it needs from elsewhere: minutes the first time on a machine, nothing afterwards. */
async function prepare({ tools, prepare: more }: Suite): Promise<void> {
  if (tools.length > 0) await toolPaths(...tools)
  await more?.()
}

async function run(suite: Suite): Promise<Ending> {
  try {
    const outcome = await Promise.race([suite.run(), late()])
    if (outcome === 'late') return { kind: 'late' }
    return { kind: 'ran', passed: outcome.passed, failed: outcome.failed }
  } catch (err) {
    if (err instanceof CannotRun) return { kind: 'not run', why: err.message }
    return { kind: 'broken', why: err instanceof Error ? (err.stack ?? err.message) : String(err) }
  }
}

function late(): Promise<'late'> {
  return new Promise((resolve) => void setTimeout(() => resolve('late'), Limit * 60_000).unref())
}

function runInside(name: string, [command, ...prefix]: readonly string[]): Promise<Ending> {
  const self = [process.execPath, ...process.execArgv, process.argv[1]!, '--inside', name]
  const child = spawn(command!, [...prefix, ...self], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  return new Promise((resolve) => {
    child.once('message', (ending) => resolve(ending as Ending))
    child.once('error', (err) => resolve({ kind: 'not run', why: messageOf(err) }))
    child.once('exit', (code, signal) => resolve({ kind: 'broken', why: `its process ended with ${signal ?? code}` }))
  })
}

function textOf(ending: Ending): string {
  switch (ending.kind) {
    case 'ran':
      return `${ending.passed} passed, ${ending.failed} failed`
    case 'not run':
      return `COULD NOT RUN: ${ending.why}`
    case 'broken':
      return `BROKE: ${ending.why}`
    case 'late':
      return `BROKE: it was not over after ${Limit} minutes; what was to come after it did not run`
  }
}
