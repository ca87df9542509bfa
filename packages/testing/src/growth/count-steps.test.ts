import { expect, test } from 'vitest'
import { countSteps } from './count-steps.ts'

const textOf = (length: number, text = 'a') => text.repeat(length)
const range = (count: number) => Array.from({ length: count }, (_, index) => index)

/** Doubles the input of `work` three times; returns the ratio of each increase of the step count to the previous increase. */
async function ratios(work: (input: number[]) => unknown): Promise<number[]> {
  const steps: number[] = []
  for (const count of [500, 1000, 2000, 4000]) {
    const input = range(count)
    steps.push(await countSteps(() => work(input)))
  }
  const [a = 0, b = 0, c = 0, d = 0] = steps
  return [(c - b) / (b - a), (d - c) / (c - b)]
}

test('the same work has the same number of steps', async () => {
  const work = () => range(100).map((one) => one * 2)
  await countSteps(work)
  expect(await countSteps(work)).toBe(await countSteps(work))
})

test.each<[string, (input: number[]) => unknown]>([
  ['a loop', (input) => input.map((one) => one + 1)],
  ['a regular expression', (input) => textOf(input.length).replace(/a/g, 'b')],
  ['a split text', (input) => textOf(input.length, 'a,').split(/,/)],
  [
    'the first of a list in a loop',
    (input) =>
      input.map(() => {
        const [first] = input
        return first
      }),
  ],
  ['a set in a loop', (input) => input.filter((one) => new Set([1]).has(one))],
])('the steps of %s grow at most linearly with its input', async (_name, work) => {
  for (const ratio of await ratios(work)) expect(ratio).toBeLessThan(2.1)
})

test.each<[string, (input: number[]) => unknown]>([
  ['a loop in a loop', (input) => input.filter((one) => input.some((other) => other === one + 0.5))],
  ['a search in a loop', (input) => input.filter((one) => input.includes(one + 0.5))],
  ['a copy in a loop', (input) => input.reduce<number[]>((copied, one) => copied.concat(one), [])],
  ['a regular expression in a loop', (input) => input.filter(() => /[xy]/.test(textOf(input.length)))],
  ['a replacement in a loop', (input) => input.map(() => textOf(input.length).replace(/x/g, 'y'))],
  ['a sorted copy in a loop', (input) => input.map(() => input.toSorted((a, b) => a - b))],
  ['JSON in a loop', (input) => input.map(() => JSON.stringify(input))],
  ['parsed JSON in a loop', (input) => input.map(() => JSON.parse(`[${textOf(input.length, '1,')}1]`) as unknown)],
  ['spread in a loop', (input) => input.map(() => [...input])],
  ['keys in a loop', (input) => input.map(() => Object.keys(input))],
  ['text in lower case in a loop', (input) => input.map(() => textOf(input.length).toLowerCase())],
])('the steps of %s grow at least quadratically with its input', async (_name, work) => {
  for (const ratio of await ratios(work)) expect(ratio).toBeGreaterThan(3.5)
})
