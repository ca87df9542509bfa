/** Runs tests of this project with vitest in a separate process, and returns the result of each. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type TestStatus = 'passed' | 'failed' | 'skipped'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Runs vitest with these arguments (test files and flags), and returns the status of each test by its full name, such as
 * `a group > a test`. A file that cannot be loaded is a failed entry with the name `file: error`.
 */
export async function runTests(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ReadonlyMap<string, TestStatus>> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-tests-'))
  try {
    const report = join(folder, 'report.json')
    const child = spawn(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', 'run', ...args, '--reporter=verbose', '--reporter=json', `--outputFile.json=${report}`],
      { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env, NO_COLOR: '1' } },
    )
    const end = () => child.kill()
    process.once('exit', end)
    await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
    process.off('exit', end)
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
    return new Map(
      testResults.flatMap(({ name, status, message, assertionResults }) => [
        ...(status === 'failed' && assertionResults.length === 0 ? [[`${name}: ${message}`, 'failed'] as const] : []),
        ...assertionResults.map((test) => [[...test.ancestorTitles, test.title].join(' > '), test.status] as const),
      ]),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The fields of vitest's JSON report that this file reads. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: 'passed' | 'failed'
    readonly message: string
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[]
      readonly title: string
      readonly status: TestStatus
    }[]
  }[]
}
