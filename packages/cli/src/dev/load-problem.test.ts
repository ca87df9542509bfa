import { expect, test } from 'vitest'
import { loadProblem } from './load-problem.ts'

const failed = (stack: string, message = 'Expression expected'): Error => {
  const err = new SyntaxError(message)
  err.stack = stack
  return err
}
const frames =
  '\n    at parseTypeScript (node:internal/modules/typescript:72:36)\n    at ModuleLoader.load (node:internal/modules/esm/loader:787:26)'

test.each([
  [
    'a file URL, which Node writes for a .ts file below a package.json with "type": "module"',
    `file:///home/me/app/extension.ts:9\nconst half =\n\nSyntaxError: Expression expected${frames}`,
  ],
  [
    'a path, which Node writes for a .ts file without a package.json with "type": "module"',
    `/home/me/app/extension.ts:9\nconst half =\n\nSyntaxError: Expression expected${frames}`,
  ],
])('names the line of a syntax error when the stack has %s', (_, stack) =>
  expect(loadProblem(failed(stack), '/home/me/app')).toBe('extension.ts:9: Expression expected'),
)

test('names the frame of the extension, not of a package it calls', () => {
  const stack = [
    'Error: at load',
    '    at parse (file:///home/me/app/node_modules/yaml/index.js:4:1)',
    '    at file:///home/me/app/lib/rules.ts:3:7',
  ].join('\n')
  expect(loadProblem(failed(stack, 'at load'), '/home/me/app')).toBe('lib/rules.ts:3: at load')
})

test('names the module that was read last when the stack of a syntax error contains no file', () =>
  expect(
    loadProblem(failed(`SyntaxError: Unexpected token${frames}`, 'Unexpected token'), '/home/me/app', '/home/me/app/a.ts'),
  ).toBe('a.ts: Unexpected token'))
