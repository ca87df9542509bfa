import { RuleTester } from 'oxlint/plugins-dev'
import { describe, test } from 'vitest'
import plugin from './capstan.ts'

RuleTester.describe = describe
RuleTester.it = test

const error = { message: /^A long list overflows the stack/ }

new RuleTester().run('no-spread-arguments', plugin.rules['no-spread-arguments'] as never, {
  valid: [
    'list.push(...[1, 2])',
    'list.push(...(found ? [1] : []))',
    'const all = [...list, ...list]',
    'const pass = (...args) => call(...args)',
    "const names = ['a', 'b']; call(...names)",
  ],
  invalid: [
    { code: 'errors.push(...found)', errors: [error] },
    { code: 'Math.max(0, ...sizes)', errors: [error] },
    { code: 'new Set(...lists)', errors: [error] },
    { code: 'errors.push(...[...found])', errors: [error] },
    { code: 'const pass = (args) => call(...args)', errors: [error] },
  ],
})
