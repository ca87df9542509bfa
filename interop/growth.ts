/**
 * Runs `growth.test.ts` and `documents.test.ts` of `packages/testing/src/growth`. They check that work grows linearly with its input, or
 * little faster: the work of requests with every list, map and string of every kind (`npm test` measures a sample), and the work to process
 * documents that are not API objects.
 */
import { Checks } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'

export const growthSuite: Suite = {
  shows: 'work grows linearly with its input, or little faster',
  ci: false,
  tools: [],
  minutes: 60,
  async run() {
    const checks = new Checks()
    const tests = await runTests(
      ['packages/testing/src/growth/growth.test.ts', 'packages/testing/src/growth/documents.test.ts'],
      { CAPSTAN_GROWTH: 'all' },
    )
    for (const [name, status] of tests) checks.check(name, status === 'passed', status)
    return checks
  },
}
