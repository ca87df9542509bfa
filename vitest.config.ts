import { configDefaults, defineConfig } from 'vitest/config'

/** Tests that start programs, many and for long: `npm run interop -- programs` runs them, and `npm test` all others. */
const programs = '**/*.process.test.ts'
const all = ['packages/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts', 'interop/**/*.test.ts']
const isProgramsTurn = process.env.CAPSTAN_PROGRAMS === '1'

export default defineConfig({
  test: {
    include: isProgramsTurn ? [programs] : all,
    // Tests of projects that are yet to be made.
    exclude: [...configDefaults.exclude, 'packages/cli/templates/**', ...(isProgramsTurn ? [] : [programs])],
    pool: 'threads',
    isolate: false,
    // All cores: by default one is left out, which is half of two.
    maxWorkers: '100%',
    testTimeout: 20_000,
  },
})
