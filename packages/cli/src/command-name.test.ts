import { expect, test } from 'vitest'
import { commandName } from './command-name.ts'

test.each([
  [{}, false, 'capstan'],
  [{ npm_command: 'exec' }, false, 'npx @capstan/cli'],
  [{ npm_command: 'run-script' }, false, 'npx @capstan/cli'],
  [{}, true, 'npx @capstan/cli'],
] as const)('with environment %j and checkout %j printed commands start with %s', (env, isCheckout, name) => {
  expect(commandName(env, isCheckout)).toBe(name)
})
