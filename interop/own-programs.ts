/** Capstan's own programs as a person uses them: projects made, installed and built, `capstan dev`, the guides line by line. */
import { Checks } from './capstan-process.ts'
import type { Suite } from './suite.ts'
import { runTests } from './tests.ts'

export const programsSuite: Suite = {
  shows: 'projects of capstan new, capstan dev, and the guides line by line',
  ci: true,
  tools: [],
  async run() {
    const checks = new Checks()
    for (const [name, status] of await runTests([], { CAPSTAN_PROGRAMS: '1' })) checks.check(name, status === 'passed', status)
    return checks
  },
}
