import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { MutantTask, Result, Task } from './task.ts'

test('a mutant is killed only by a failure in its own test run', () => {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-mutants-'))
  const results = join(folder, 'results')
  const aMutant = (id: string, name: string, replacement: string): MutantTask => ({
    id,
    file: `packages/controller/src/${name}.ts`,
    start: 0,
    end: 0,
    replacement,
    tests: [`packages/controller/src/${name}.test.ts`],
  })
  const mutants = [
    aMutant('none', 'queue', ''),
    aMutant('broken', 'queue', 'throw new Error("broken");'),
    aMutant('another file', 'lease', ''),
    aMutant('none again', 'queue', ''),
  ]
  writeFileSync(join(folder, 'task'), JSON.stringify({ kind: 'mutants', mutants, results } satisfies Task))
  const script = fileURLToPath(new URL('run-tests.ts', import.meta.url))
  const { status } = spawnSync(process.execPath, [script, join(folder, 'task')], {
    stdio: 'ignore',
    // With CAPSTAN_PROGRAMS=1, vitest.config.ts selects only tests such as this one, not those that the mutants need.
    env: { ...process.env, CAPSTAN_PROGRAMS: '' },
  })
  const reported = readFileSync(results, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result)
  rmSync(folder, { recursive: true, force: true })
  expect(status).toBe(0)
  expect(reported.filter(({ state }) => state !== 'started').map(({ id, state }) => `${id}: ${state}`)).toEqual([
    'none: survived',
    'broken: killed',
    'another file: survived',
    'none again: survived',
  ])
})
