import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts', 'interop/**/*.test.ts'],
    pool: 'threads',
    isolate: false,
    testTimeout: 20_000,
  },
})
