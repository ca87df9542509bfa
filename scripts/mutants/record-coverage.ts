/** A setup file of vitest: after each test file it writes the statements that the test file has reached. See `run-tests.ts`. */
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
  /** One element for each statement, which the instrumented statement sets to 1. */
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
