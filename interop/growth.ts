/**
 * Runs `growth.test.ts` and `documents.test.ts` of `packages/testing/src/growth`. They check that work in the API server grows linearly with
 * its input: with every list, map and string of every kind (`npm test` measures a sample), and with documents other than objects.
 */
import { Checks } from './processes/capstan-process.ts'
import type { Suite } from './shared/suite.ts'
import { runTests } from './shared/tests.ts'

export const growthSuite: Suite = {
  shows: 'the work of the API server is linear in its input',
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
