import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Tests that start many programs or take too long for `npm test`. `npm run interop -- programs` runs them, and `npm test` runs the other tests
 * of the workspace.
 */
const programTests = '**/*.process.test.ts'
const all = ['packages/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts', 'interop/**/*.test.ts']
const runsProgramTests = process.env.CAPSTAN_PROGRAMS === '1'

/** Whether a file of `npm test` takes longer than most: tests of whole environments and of the command. */
const isLong = ({ moduleId }: TestSpecification): boolean => /\.env\.test\.ts$|\/packages\/cli\//.test(moduleId)

/** Runs long test files first, so that no core is idle at the end, even in a new clone, where vitest has no durations of earlier runs. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export default defineConfig({
  test: {
    include: runsProgramTests ? [programTests] : all,
    // Tests of projects outside of the workspace: templates of new projects, and the project of the interop suite `packages`.
    exclude: [
      ...configDefaults.exclude,
      'packages/cli/templates/**',
      'interop/packages/**',
      ...(runsProgramTests ? [] : [programTests]),
    ],
    pool: 'threads',
    isolate: false,
    // One worker more than cores, because some workers wait for programs and sockets. By default vitest leaves one core idle, which is half
    // of a machine with two cores.
    ...(runsProgramTests ? {} : { maxWorkers: availableParallelism() + 1 }),
    // Node caches the compiled sources of programs that tests start.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url)) },
    sequence: { sequencer: LongFirst },
    // Long enough for a busy machine: only a test that hangs reaches it, because tests of controllers use a virtual clock.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
})
