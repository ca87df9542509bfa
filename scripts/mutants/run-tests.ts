/**
 * Runs tests with mutants, one after the other, or records the coverage of tests. A process of its own, so that `scripts/mutants.ts` can
 * end it when a mutant loops. Files on disk stay as they are: vitest receives the changed text from a plugin.
 * Usage: node scripts/mutants/run-tests.ts TASK
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVitest, type TestSpecification, type Vitest } from 'vitest/node'
import { applyMutant, instrument, mutantsOf } from './operators.ts'
import type { MutantTask, Result, Task } from './task.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Maximum number of statements of all files. */
const mostStatements = 1 << 17

/** Keeps the order of the specifications. */
class InOrder {
  sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(files)
  }
  shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    return Promise.resolve(files)
  }
}

type Transform = (file: string, text: string) => string | undefined

async function startVitest(transform: Transform, options: { setupFiles?: string[]; bail?: number }): Promise<Vitest> {
  return createVitest(
    { root, watch: false, reporters: [{}], maxWorkers: 2, sequence: { sequencer: InOrder }, fsModuleCache: false, ...options },
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
  const found = await vitest.globTestSpecifications()
  return new Map(found.map((specification) => [relative(root, specification.moduleId), specification]))
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
    const callOf = (index: number) => `(globalThis.reachedStatements ??= new Uint8Array(${mostStatements}))[${first + index}] = 1`
    texts.set(file, instrument(text, statements, callOf))
  }
  writeFileSync(`${folder}/files.json`, JSON.stringify(firstOf))
  const setupFiles = [fileURLToPath(new URL('record-coverage.ts', import.meta.url))]
  const vitest = await startVitest((file) => texts.get(file), { setupFiles })
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
  const vitest = await startVitest((file, text) => (current?.file === file ? applyMutant(text, current) : undefined), { bail: 1 })
  const specifications = await specificationsOf(vitest)
  const report = (result: Result) => appendFileSync(results, `${JSON.stringify(result)}\n`)
  for (const mutant of mutants) {
    report({ id: mutant.id, state: 'started' })
    const started = performance.now()
    const before = current?.file
    current = mutant
    for (const file of new Set([before, mutant.file])) if (file !== undefined) vitest.invalidateFile(`${root}${file}`)
    const chosen = mutant.tests.flatMap((test) => specifications.get(test) ?? [])
    const by = await firstFailure(vitest, chosen)
    const seconds = (performance.now() - started) / 1000
    report(by === undefined ? { id: mutant.id, state: 'survived', seconds } : { id: mutant.id, state: 'killed', seconds, by })
  }
  await vitest.close()
}

/** Returns the name of a failed test or an error outside of tests; `undefined` when all tests pass. */
async function firstFailure(vitest: Vitest, specifications: TestSpecification[]): Promise<string | undefined> {
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications, false)
  for (const module of testModules) {
    const file = relative(root, module.moduleId)
    for (const test of module.children.allTests('failed')) return `${file}: ${test.fullName}`
    const [error] = module.errors()
    if (error) return `${file}: ${error.message}`
    if (module.state() === 'failed') return file
  }
  const [error] = unhandledErrors
  return error === undefined ? undefined : `unhandled: ${(error as Error).message}`
}

const task = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Task
if (task.kind === 'coverage') await recordCoverage(task)
else await runMutants(task)
process.exit(0)
