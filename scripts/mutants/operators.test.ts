import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { applyMutant, instrument, mutantsOf } from './operators.ts'

const changesOf = (text: string) =>
  mutantsOf(text).mutants.map((mutant) => `${mutant.operator}: ${applyMutant(text, mutant).replace(/\s+/g, ' ').trim()}`)

const inFunction = (body: string) => `const f = (a, b, c) => ${body}`

describe('mutantsOf', () => {
  test.each([
    ['a && b || c', ['&& to ||: ((a) || (b)) || c', '|| to &&: ((a && b) && (c))']],
    ['a ?? b', ['drop default: a']],
    ['a < b', ['< to <=: a <= b']],
    ['a >= b', ['>= to >: a > b']],
    ['a !== b', ['!== to ===: a === b']],
    ['a + 1', ['+ to -: a - 1']],
    ['a + b', []],
    ['a ? b : c', ['negate condition: !(a) ? b : c']],
    ['a.every(b)', ['every to some: a.some(b)']],
    ['Math.min(a, b)', ['min to max: Math.max(a, b)']],
    ['a.filter(b)', ['drop filter: a']],
    ['a(b, { c })', ['drop argument: a(b)']],
    ['a(b, options)', ['drop argument: a(b)']],
    ['a(b, c)', []],
    ['a(true)', ['swap boolean: a(false)']],
    ['(a as string | undefined)', []],
  ])('returns the mutants of the expression %s', (expression, expected) =>
    expect(changesOf(inFunction(expression)).map((change) => change.replace(inFunction(''), ''))).toEqual(expected),
  )

  test.each([
    ['a()', ['remove statement: const f = () => { ; }']],
    ['await a()', ['remove statement: const f = () => { ; }', 'remove await: const f = () => { void a() }']],
    ['throw a', ['remove throw: const f = () => { ; }']],
    ['log.info(a && b)', []],
    [
      'a(); b()',
      [
        'return early: const f = () => {}',
        'remove statement: const f = () => { ; b() }',
        'remove statement: const f = () => { a(); ; }',
      ],
    ],
    ['a(); return b', ['remove statement: const f = () => { ; return b }']],
  ])('returns the mutants of the statements %s', (statements, expected) => {
    const changes = changesOf(`const f = () => { ${statements} }`.replace('() => { await', 'async () => { await'))
    expect(changes.map((change) => change.replace('async ', ''))).toEqual(expected)
  })

  test('returns no mutants of module-level tables, types, or default values of parameters', () =>
    expect(changesOf('const table = { a: true, b: x && y }\ntype T = A extends B ? C : D\nconst f = (a = b && c) => a')).toEqual(
      [],
    ))

  test('returns the line and the statement of a mutant', () => {
    const { mutants, statements } = mutantsOf('function f() {\n  const a = 1\n  return a < 2\n}')
    expect(mutants.map(({ line, operator }) => `${line} ${operator}`)).toEqual(['3 < to <='])
    expect(statements[mutants[0]!.statement]!.start).toBe(31)
  })
})

test('an instrumented file behaves as before and reports the statements that it reaches', () => {
  const text =
    'const f = (n) => n > 1 ? n : 0\nfunction g(n) {\n  let sum = 0\n  if (n > 1) {\n    sum = f(n)\n  }\n  return sum\n}'
  const { statements } = mutantsOf(text)
  const run = (argument: number) => {
    const reached: number[] = []
    const program = `${instrument(text, statements, (index) => `reach(${index})`)}\ng(${argument})`
    const result: unknown = runInNewContext(program, { reach: (index: number) => reached.push(index) })
    return { result, lines: new Set(reached.map((index) => text.slice(0, statements[index]!.start).split('\n').length)) }
  }
  expect(run(5)).toEqual({ result: 5, lines: new Set([1, 3, 4, 5, 7]) })
  expect(run(0)).toEqual({ result: 0, lines: new Set([3, 4, 7]) })
})
