/**
 * Runs Capstan's own programs as a user does: scaffolded projects are installed and built, `capstan dev` runs, and the guides are executed
 * line by line.
 */
import { delimiter, dirname } from 'node:path'
import { Checks } from './capstan-process.ts'
import type { Suite } from './suite.ts'
import { runTests } from './tests.ts'
import { toolPaths } from './tools.ts'

export const programsSuite: Suite = {
  shows: 'projects of capstan new, capstan dev, and the guides line by line',
  ci: true,
  tools: ['kubectl'],
  async run() {
    const checks = new Checks()
    const [kubectl] = await toolPaths('kubectl')
    const PATH = `${dirname(kubectl)}${delimiter}${process.env.PATH}`
    for (const [name, status] of await runTests([], { CAPSTAN_PROGRAMS: '1', PATH })) {
      checks.check(name, status === 'passed', status)
    }
    return checks
  },
}
