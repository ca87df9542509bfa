/** A setup file of vitest, which writes after each test file the statements that the test file has reached. `run-tests.ts` uses it. */
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
  /** One element for each statement of all files. An instrumented statement sets its element to 1 when it runs. */
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
