/**
 * Mutation test: changes one place of the code at a time, runs tests that reach it, and reports the changes that none of
 * them detects.
 *
 *   node scripts/mutants.ts [--number 60] [--skip 0] [--seed 1] [PATH...]
 *   node scripts/mutants.ts --since main     mutants of the lines changed since a commit
 *
 * First, one run of all tests records which test file reaches which statement. With `--reuse`, if no mutated file has changed, this step
 * keeps the last record, and runs only the tests that are new or have changed since. docs/reference/testing.md describes all options.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { seededRandom } from '../packages/kube/src/random.ts'
import { type Mutant, mutantsOf } from './mutants/operators.ts'
import type { MutantTask, Result, Task, TestCoverage } from './mutants/task.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = `${root}node_modules/.cache/mutants`

/** Folders whose code is mutated. */
export const mutatedFolders = [
  'packages/apiserver/src/store/',
  'packages/apiserver/src/verbs/',
  'packages/apiserver/src/auth/',
  'packages/apiserver/src/admission/',
  'packages/kubernetes-kinds/src/auth/',
  'packages/kubernetes-kinds/src/admission/',
  'packages/controller/src/',
  'packages/core/src/',
]

/** Matches tests and helpers of tests. They are not mutated. */
const testFiles = /\.(?:test|suite)\.ts$|\/(?:crash-writer|crash-rounds|simulated-disk)\.ts$/

export const isMutated = (file: string): boolean =>
  file.endsWith('.ts') && !testFiles.test(file) && mutatedFolders.some((folder) => file.startsWith(folder))

/** Number of test files that always run for a mutant, if as many reach its statement. */
const minTests = 10

/** Limit for the sum of the recorded durations of the further test files that run for a mutant. */
const maxFurtherSeconds = 40

/** Time limit for the tests of a mutant. A mutant that exceeds it is assumed to loop, and counts as killed. */
const timeoutMs = 180_000

export interface FileMutant extends Mutant {
  readonly id: string
  readonly file: string
  /** The text that the mutant replaces. */
  readonly before: string
}

export interface Coverage {
  /** Number of the first statement of each file: the statements of all files are numbered consecutively. */
  readonly firstOf: Readonly<Record<string, number>>
  readonly tests: readonly TestCoverage[]
}

type Outcome =
  | { readonly state: 'killed'; readonly by: string }
  | { readonly state: 'survived'; readonly tests: number }
  | { readonly state: 'not covered' }

function git(...args: string[]): string[] {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    .split('\n')
    .filter(Boolean)
}

/** Returns the mutants of a file, each with an id that depends only on the path and the text of the file. */
function mutantsIn(file: string): FileMutant[] {
  const text = readFileSync(`${root}${file}`, 'utf8')
  return mutantsOf(text).mutants.map((mutant) => ({
    ...mutant,
    file,
    before: text.slice(mutant.start, mutant.end),
    id: `${file}:${mutant.line} ${mutant.operator} @${mutant.start}-${mutant.end}`,
  }))
}

/** Selects a random sample without duplicates. A smaller sample of a seed is the beginning of a larger sample. */
export function sample<T>(all: readonly T[], number: number, seed: number): T[] {
  const random = seededRandom(seed)
  const remaining = [...all]
  const drawn: T[] = []
  while (drawn.length < number && remaining.length > 0)
    drawn.push(...remaining.splice(Math.floor(random.next() * remaining.length), 1))
  return drawn
}

/**
 * Returns the test files to run for a mutant, from those that reach its statement, limited by `minTests` and `maxFurtherSeconds`: first
 * those of the same folder, then those of the same package, then others. Each of these three groups begins with its fastest test file.
 */
export function testsFor(mutant: Pick<FileMutant, 'file' | 'statement'>, { firstOf, tests }: Coverage): string[] {
  const id = firstOf[mutant.file]! + mutant.statement
  const folder = dirname(mutant.file)
  const distance = (test: string) =>
    dirname(test) === folder ? 0 : test.startsWith(mutant.file.split('/').slice(0, 2).join('/')) ? 1 : 2
  const reaching = tests
    .filter(({ reached }) => reached.includes(id))
    .toSorted((a, b) => distance(a.test) - distance(b.test) || a.seconds - b.seconds)
  const chosen = reaching.slice(0, minTests)
  let furtherSeconds = 0
  for (const further of reaching.slice(minTests)) {
    furtherSeconds += further.seconds
    if (furtherSeconds > maxFurtherSeconds) break
    chosen.push(further)
  }
  return chosen.map(({ test }) => test)
}

/** Returns the numbers of the lines that a diff without context adds or changes, by file. */
export function changedLines(diff: string): Map<string, Set<number>> {
  const changed = new Map<string, Set<number>>()
  let file = ''
  for (const line of diff.split('\n')) {
    if (line.startsWith('+++ ')) file = line.replace(/^\+\+\+ (?:b\/)?/, '')
    const [, first, count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? []
    if (first === undefined) continue
    const lines = changed.get(file) ?? new Set()
    changed.set(file, lines)
    for (let i = 0; i < Number(count); i++) lines.add(Number(first) + i)
  }
  return changed
}

/**
 * Runs a task in a child process; returns its exit code. `onResults` is called when the file of results has grown. Kills the process if
 * the tests of a mutant exceed the time limit.
 */
async function runTask(task: Task, onResults: () => void = () => {}): Promise<number | null> {
  const file = `${cache}/task.json`
  writeFileSync(file, JSON.stringify(task))
  const script = fileURLToPath(new URL('mutants/run-tests.ts', import.meta.url))
  const child = spawn(process.execPath, ['--max-old-space-size=3072', script, file], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: process.platform !== 'win32',
  })
  const stop = () => (process.platform === 'win32' ? child.kill('SIGKILL') : process.kill(-child.pid!, 'SIGKILL'))
  let lastResultAt = Date.now()
  let size = 0
  const timer = setInterval(() => {
    const currentSize = task.kind === 'mutants' && existsSync(task.results) ? statSync(task.results).size : 0
    if (currentSize !== size) {
      ;[lastResultAt, size] = [Date.now(), currentSize]
      onResults()
    }
    if (task.kind === 'mutants' && Date.now() - lastResultAt > timeoutMs) stop()
  }, 500)
  const onSignal = () => {
    stop()
    process.exit(1)
  }
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  clearInterval(timer)
  return code
}

/**
 * Records which tests reach which statements. With `reuse`, if the code has not changed since the last record, runs only the tests that
 * have changed since then.
 */
async function coverageOf(files: readonly string[], reuse: boolean): Promise<Coverage> {
  const folder = `${cache}/coverage`
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(`${root}${file}`))
  const code = hash.digest('hex')
  const recorded = statSync(`${folder}/code`, { throwIfNoEntry: false })
  const isSame = recorded !== undefined && readFileSync(`${folder}/code`, 'utf8') === code
  if (!reuse || !isSame) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    console.log('recording which tests reach which statements')
    await runTask({ kind: 'coverage', files, tests: [], folder })
  } else {
    const tests = git('ls-files', '*.test.ts').filter((test) => (changedAt(`${root}${test}`) ?? 0) > recorded.mtimeMs)
    if (tests.length > 0) await runTask({ kind: 'coverage', files, tests, folder })
  }
  writeFileSync(`${folder}/code`, code)
  const firstOf = JSON.parse(readFileSync(`${folder}/files.json`, 'utf8')) as Record<string, number>
  const tests = globSync('*.json', { cwd: folder })
    .filter((name) => name !== 'files.json')
    .map((name) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as TestCoverage)
  return { firstOf, tests }
}

const changedAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.mtimeMs

const resultsIn = (file: string): Result[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Result)
    : []

/**
 * Runs the mutants. A mutant that ends the process or exceeds the time limit counts as killed; a new process continues with the next one.
 */
async function run(mutants: readonly FileMutant[], coverage: Coverage): Promise<Map<FileMutant, Outcome>> {
  const outcomes = new Map<FileMutant, Outcome>()
  const tasks = new Map<string, MutantTask>()
  const byId = new Map(mutants.map((mutant) => [mutant.id, mutant]))
  for (const mutant of mutants) {
    const tests = testsFor(mutant, coverage)
    if (tests.length === 0) outcomes.set(mutant, { state: 'not covered' })
    else tasks.set(mutant.id, { ...mutant, tests })
  }
  const results = `${cache}/results.jsonl`
  const report = () => process.stderr.write(`\r${mutants.length - tasks.size} of ${mutants.length}`)
  const readResults = (hasEnded: boolean) => {
    const lines = resultsIn(results)
    for (const result of lines) {
      const mutant = byId.get(result.id)!
      const task = tasks.get(result.id)
      if (!task || result.state === 'started') continue
      tasks.delete(result.id)
      outcomes.set(
        mutant,
        result.state === 'killed' ? { state: 'killed', by: result.by } : { state: 'survived', tests: task.tests.length },
      )
    }
    const last = lines.at(-1)
    if (hasEnded && last?.state === 'started') {
      tasks.delete(last.id)
      outcomes.set(byId.get(last.id)!, { state: 'killed', by: 'the tests do not end, or the process ends' })
    }
    report()
  }
  while (tasks.size > 0) {
    rmSync(results, { force: true })
    const before = tasks.size
    const code = await runTask({ kind: 'mutants', mutants: [...tasks.values()], results }, () => readResults(false))
    readResults(true)
    if (tasks.size === before) throw new Error(`the process that runs the tests ended with ${code} before it had run one mutant`)
  }
  process.stderr.write('\n')
  return outcomes
}

function describe({ file, line, operator, before, replacement }: FileMutant): string {
  const short = (text: string) => {
    const flat = text.replace(/\s+/g, ' ')
    return flat.length > 90 ? `${flat.slice(0, 87)}...` : flat
  }
  return `${file}:${line} ${operator}: ${short(before)} -> ${short(replacement)}`
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      number: { type: 'string', default: '60' },
      skip: { type: 'string', default: '0' },
      seed: { type: 'string', default: '1' },
      since: { type: 'string' },
      reuse: { type: 'boolean', default: false },
      report: { type: 'string' },
      least: { type: 'string', default: '0' },
    },
  })
  mkdirSync(cache, { recursive: true })
  const files = git('ls-files', 'packages').filter((file) => isMutated(file) && existsSync(`${root}${file}`))
  let chosen = positionals.length > 0 ? files.filter((file) => positionals.some((path) => file.startsWith(path))) : files
  let all: FileMutant[]
  if (values.since === undefined) all = chosen.flatMap(mutantsIn)
  else {
    const changed = changedLines(git('diff', '-U0', values.since, '--', ...mutatedFolders).join('\n'))
    chosen = chosen.filter((file) => changed.has(file))
    all = chosen.flatMap((file) => mutantsIn(file).filter(({ line }) => changed.get(file)!.has(line)))
  }
  const skip = Number(values.skip)
  const mutants = sample(all, skip + Number(values.number), Number(values.seed)).slice(skip)
  if (mutants.length === 0) return console.log('there are no mutants to run')
  console.log(
    `running ${mutants.length} of ${all.length} mutants in ${chosen.length} files (--seed ${values.seed} --skip ${skip})`,
  )
  const outcomes = await run(mutants, await coverageOf(files, values.reuse))
  const rows = mutants.map((mutant) => ({ mutant, outcome: outcomes.get(mutant)! }))
  const killed = rows.filter(({ outcome }) => outcome.state === 'killed').length
  for (const { mutant, outcome } of rows) {
    if (outcome.state === 'survived') console.log(`survived ${outcome.tests} test files: ${describe(mutant)}`)
    if (outcome.state === 'not covered') console.log(`reached by no test: ${describe(mutant)}`)
  }
  const percent = (100 * killed) / mutants.length
  console.log(`${killed} of ${mutants.length} killed (${percent.toFixed(1)} %)`)
  if (values.report !== undefined)
    writeFileSync(values.report, rows.map((row) => `${JSON.stringify({ ...row.outcome, mutant: row.mutant })}\n`).join(''))
  if (percent < Number(values.least)) {
    console.error(`at least ${values.least} % must be killed`)
    process.exitCode = 1
  }
}

if (import.meta.main) await main()
