/**
 * Runs the tests of a controller-runtime project (`interop/go`) as its author would: first with Capstan's launchers in
 * `KUBEBUILDER_ASSETS`, then with the real programs. All tests must pass both times. Prints time and memory of each run.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Checks } from './processes/capstan-process.ts'
import { CannotRun, type Outcome, type Suite } from './shared/suite.ts'
import { toolPaths } from './shared/tools.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const project = join(root, 'interop/go')
const tools = ['etcd', 'kube-apiserver', 'kubectl'] as const

export const envtestSuite: Suite = {
  shows: 'the tests of a controller-runtime project pass with the launchers of capstan envtest and with the real programs',
  ci: true,
  tools,
  prepare: compile,
  run: runBoth,
}

/** Returns the path of the compiled tests, in the folder that has the folders of the other programs. */
const testsProgram = async (): Promise<string> => join(dirname((await toolPaths('etcd'))[0]), '../interop-go.test')

async function compile(): Promise<void> {
  // With -trimpath, as in scripts/tools, Go's build cache is reused.
  await go(
    project,
    'test',
    '-mod=readonly',
    '-trimpath',
    '-p',
    String(availableParallelism()),
    '-c',
    '-o',
    await testsProgram(),
    '.',
  )
}

async function runBoth(): Promise<Outcome> {
  const checks = new Checks()
  const folder = mkdtempSync(join(tmpdir(), 'capstan-envtest-'))
  try {
    const tests = await testsProgram()
    const capstanAssets = join(folder, 'capstan')
    const capstan = join(root, 'packages/cli/bin/capstan.js')
    const paths = await toolPaths(...tools)
    const kubectl = dirname(paths[2])
    const env = { ...process.env, PATH: `${kubectl}:${process.env.PATH}` }
    const launcherOutput = await finished(
      spawn(process.execPath, [capstan, 'envtest', capstanAssets], { env, stdio: ['ignore', 'pipe', 'inherit'] }),
    )
    checks.check(
      'capstan envtest prints the folder that it has written',
      launcherOutput.lines.join() === capstanAssets,
      launcherOutput,
    )
    const realAssets = join(folder, 'real')
    await mkdir(realAssets)
    for (const path of paths) symlinkSync(path, join(realAssets, basename(path)))

    const runs = { capstan: await runTests(tests, capstanAssets), real: await runTests(tests, realAssets) }
    for (const [name, run] of Object.entries(runs)) {
      for (const [test, passed] of run.tests) checks.check(`${test} on ${name}`, passed)
      checks.check(`all tests pass on ${name}`, run.code === 0, output(run))
    }
    const missing = [...runs.real.tests.keys()].filter((test) => !runs.capstan.tests.has(test))
    checks.check('all tests that ran on the real server ran on capstan', missing.length === 0, missing)
    const restart = runs.capstan.lines.find((line) => line.startsWith('restart: '))
    checks.check('no informer lists again after a restart', restart?.endsWith(' 0 after the restart') === true, restart)
    for (const [name, run] of Object.entries(runs)) console.log(`${name.padEnd(8)} ${formatMeasurements(run)}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return checks
}

/** Omits lines about started and passed tests, info lines and warnings of logs from the output. Returns the last 40 of the other lines. */
const output = ({ lines }: Run): string[] => lines.filter((line) => !/^(=== RUN|--- PASS|PASS$|[IW]\d{4} )/.test(line)).slice(-40)

interface Run {
  readonly code: number | null
  readonly lines: readonly string[]
  /** By name of the test: false if the test failed, true if it passed or was skipped. */
  readonly tests: ReadonlyMap<string, boolean>
  readonly milliseconds: number
  /** Sum of the peak memory, in KB, of the API server and etcd that run as long as the tests; 0 where the operating system does not report it. */
  readonly peakMemory: number
}

async function runTests(tests: string, assets: string): Promise<Run> {
  const started = performance.now()
  const child = spawn(tests, ['-test.v', '-test.timeout', '8m'], {
    cwd: project,
    env: { ...process.env, KUBEBUILDER_ASSETS: assets },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const peaks = new Map<number, number>()
  const sampling = setInterval(() => {
    // The API server and etcd that run as long as the tests start first. Before each of them, a program that prints its flags may run.
    for (const pid of childrenOf(child.pid!).slice(0, 2)) peaks.set(pid, peakOf(pid) ?? peaks.get(pid) ?? 0)
  }, 500)
  const { code, lines } = await finished(child)
  clearInterval(sampling)
  const results = new Map<string, boolean>()
  for (const line of lines) {
    const [, verdict, test] = /^--- (PASS|FAIL|SKIP): (\w+)/.exec(line) ?? []
    if (test !== undefined) results.set(test, verdict !== 'FAIL')
  }
  // Programs that only print their flags and end need less memory, so the two largest peaks are those of the API server and etcd.
  const largestPeaks = [...peaks.values()].sort((a, b) => b - a).slice(0, 2)
  return {
    code,
    lines,
    tests: results,
    milliseconds: performance.now() - started,
    peakMemory: largestPeaks.reduce((sum, kilobytes) => sum + kilobytes, 0),
  }
}

const formatMeasurements = ({ tests, milliseconds, peakMemory, lines }: Run): string => {
  const start = /^environment started in (\d+) ms$/m.exec(lines.join('\n'))?.[1]
  return `${tests.size} tests in ${(milliseconds / 1000).toFixed(1)} s, the environment ready after ${start} ms, peak memory of API server and etcd ${Math.round(peakMemory / 1024)} MB`
}

function childrenOf(parent: number): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && readStat(name)[3] === String(parent))
      .map(Number)
      .sort((a, b) => a - b)
  } catch {
    return []
  }
}

/** Returns the fields of /proc/PID/stat, with an empty command name, because the name may contain spaces. */
function readStat(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return [pid, '', ...text.slice(text.lastIndexOf(')') + 2).split(' ')]
  } catch {
    return []
  }
}

/** Returns the peak memory of a process in KB; `undefined` if it is not known. */
function peakOf(pid: number): number | undefined {
  try {
    // A process that has ended but was not waited for has no memory.
    const [, peak] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return peak === undefined ? undefined : Number(peak)
  } catch {
    return undefined
  }
}

/**
 * Runs the go command in a folder. Returns the lines that it printed.
 * @throws CannotRun if go is not installed; Error with the end of its output if it fails
 */
export async function go(cwd: string, ...args: string[]): Promise<{ lines: string[] }> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off', GOFLAGS: '', CGO_ENABLED: '0' }
  const { code, lines } = await finished(spawn('go', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })).catch(
    (err: NodeJS.ErrnoException) => {
      throw err.code === 'ENOENT' ? new CannotRun('there is no "go" on the PATH') : err
    },
  )
  if (code !== 0) throw new Error(`go ${args.join(' ')} failed:\n${lines.slice(-20).join('\n')}`)
  return { lines }
}

/** Waits until a child process has ended. Returns its exit code (`null` after a signal) and all lines that it wrote to pipes. */
export async function finished(child: ReturnType<typeof spawn>): Promise<{ code: number | null; lines: string[] }> {
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) if (stream) createInterface(stream).on('line', (line) => lines.push(line))
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  return { code, lines }
}
