/** Setup file of vitest: after each test file, writes a file with the statements that the tests have reached. `run-tests.ts` uses it. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { afterAll, beforeAll, expect, inject } from 'vitest'
import type { TestCoverage } from './task.ts'

declare module 'vitest' {
  interface ProvidedContext {
    coverageFolder: string
  }
}

declare global {
  /** By id of a statement, unique across all instrumented files: 1 if the current test file has run the statement. */
  var reachedStatements: Uint8Array | undefined
}

let started = 0

beforeAll(() => {
  started = performance.now()
})

afterAll(() => {
  const test = relative(process.cwd(), expect.getState().testPath!)
  const reached = [...(globalThis.reachedStatements ?? []).entries()].flatMap(([id, isReached]) => (isReached ? [id] : []))
  globalThis.reachedStatements?.fill(0)
  const coverage: TestCoverage = { test, seconds: (performance.now() - started) / 1000, reached }
  const name = createHash('sha256').update(test).digest('hex').slice(0, 16)
  writeFileSync(`${inject('coverageFolder')}/${name}.json`, JSON.stringify(coverage))
})
