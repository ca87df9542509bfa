/**
 * Runs tests with mutants, one mutant after another, or records the coverage of tests. This is a separate process, so that
 * `scripts/mutants.ts` can kill it when the tests of a mutant do not end. Source files on disk do not change: a plugin passes the
 * changed text to vitest. Usage: node scripts/mutants/run-tests.ts TASK, where TASK is a JSON file that contains a `Task`.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVitest, type Reporter, type TestCase, type TestModule, type TestSpecification, type Vitest } from 'vitest/node'
import { applyMutant, instrument, mutantsOf } from './operators.ts'
import type { MutantTask, Result, Task } from './task.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Maximum number of statements in all files together. */
const maxStatements = 1 << 17

/** Runs test files in the given order. */
class InOrder {
  sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(files)
  }
  shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(files)
  }
}

/**
 * Records the first failure of a run. Calls `onFailure` if the failure belongs to a test or a test file, but not if it is reported when the
 * run ends. The results that `runTestSpecifications` returns cannot be used for several runs, because they also contain failures of
 * earlier runs.
 */
class FirstFailure implements Reporter {
  failure: string | undefined
  readonly #onFailure: () => void

  constructor(onFailure: () => void) {
    this.#onFailure = onFailure
  }

  #record(failure: string): void {
    if (this.failure !== undefined) return
    this.failure = failure
    this.#onFailure()
  }

  onTestCaseResult(test: TestCase): void {
    if (test.result().state === 'failed') this.#record(`${relative(root, test.module.moduleId)}: ${test.fullName}`)
  }

  onTestModuleEnd(module: TestModule): void {
    const [error] = module.errors()
    if (error) this.#record(`${relative(root, module.moduleId)}: ${error.message}`)
  }

  onTestRunEnd(_: unknown, [error]: readonly { readonly message: string }[]): void {
    if (error) this.failure ??= `outside of tests: ${error.message}`
  }
}

type Transform = (file: string, text: string) => string | undefined

async function startVitest(transform: Transform, options: { reporters: Reporter[]; setupFiles?: string[] }): Promise<Vitest> {
  return createVitest(
    { root, watch: false, maxWorkers: 2, sequence: { sequencer: InOrder }, fsModuleCache: false, ...options },
    {
      plugins: [
        {
          name: 'mutants',
          enforce: 'pre',
          transform(code, id) {
            const changed = transform(relative(root, id.split('?')[0]!), code)
            return changed === undefined ? undefined : { code: changed, map: null }
          },
        },
      ],
    },
  )
}

async function specificationsOf(vitest: Vitest): Promise<Map<string, TestSpecification>> {
  const specifications = await vitest.globTestSpecifications()
  return new Map(specifications.map((specification) => [relative(root, specification.moduleId), specification]))
}

async function recordCoverage({ files, tests, folder }: Extract<Task, { kind: 'coverage' }>): Promise<void> {
  const firstOf: Record<string, number> = {}
  let next = 0
  const texts = new Map<string, string>()
  for (const file of files) {
    const text = readFileSync(`${root}${file}`, 'utf8')
    const { statements } = mutantsOf(text)
    const first = (firstOf[file] = next)
    next += statements.length
    const recordingOf = (index: number) =>
      `(globalThis.reachedStatements ??= new Uint8Array(${maxStatements}))[${first + index}] = 1`
    texts.set(file, instrument(text, statements, recordingOf))
  }
  writeFileSync(`${folder}/files.json`, JSON.stringify(firstOf))
  const setupFiles = [fileURLToPath(new URL('record-coverage.ts', import.meta.url))]
  const vitest = await startVitest((file) => texts.get(file), { setupFiles, reporters: [{}] })
  vitest.provide('coverageFolder', folder)
  const specifications = await specificationsOf(vitest)
  const chosen = tests.length === 0 ? [...specifications.values()] : tests.flatMap((test) => specifications.get(test) ?? [])
  const { testModules } = await vitest.runTestSpecifications(chosen, false)
  const failed = testModules.filter((module) => !module.ok())
  for (const module of failed) console.error(`fails without a mutant: ${relative(root, module.moduleId)}`)
  await vitest.close()
}

async function runMutants({ mutants, results }: Extract<Task, { kind: 'mutants' }>): Promise<void> {
  let current: MutantTask | undefined
  // Cancels the run after its first failure. With the option `bail`, vitest cancels it once for each worker with a failure, and the second
  // cancellation ends the workers before they have reported the failures.
  const reporter = new FirstFailure(() => void vitest.cancelCurrentRun('test-failure'))
  const vitest = await startVitest((file, text) => (current?.file === file ? applyMutant(text, current) : undefined), {
    reporters: [reporter],
  })
  const specifications = await specificationsOf(vitest)
  const report = (result: Result) => appendFileSync(results, `${JSON.stringify(result)}\n`)
  for (const mutant of mutants) {
    report({ id: mutant.id, state: 'started' })
    const started = performance.now()
    const previousFile = current?.file
    current = mutant
    for (const file of new Set([previousFile, mutant.file])) if (file !== undefined) vitest.invalidateFile(`${root}${file}`)
    reporter.failure = undefined
    const chosen = mutant.tests.flatMap((test) => specifications.get(test) ?? [])
    await vitest.runTestSpecifications(chosen, false)
    const { failure } = reporter
    const seconds = (performance.now() - started) / 1000
    report(
      failure === undefined
        ? { id: mutant.id, state: 'survived', seconds }
        : { id: mutant.id, state: 'killed', seconds, by: failure },
    )
  }
  await vitest.close()
}

const task = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Task
if (task.kind === 'coverage') await recordCoverage(task)
else await runMutants(task)
process.exit(0)
