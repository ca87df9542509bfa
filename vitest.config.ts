import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts', 'interop/**/*.test.ts'],
    // Tests of projects that are yet to be made.
    exclude: [...configDefaults.exclude, 'packages/cli/templates/**'],
    pool: 'threads',
    isolate: false,
    testTimeout: 20_000,
  },
})
