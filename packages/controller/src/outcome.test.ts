import { expect, test } from 'vitest'
import { type Outcome, type Phase, requeue, runPhases } from './outcome.ts'

const first = new Error('first')
const second = new Error('second')

/** Runs phases of which two fail. Returns the phases that were run, beside the result. */
async function runFailingPhases(options?: { endsAtFailure: boolean }) {
  const performed: string[] = []
  const phase =
    (name: string, result: Outcome | Error): Phase<string[], undefined> =>
    async (scope) => {
      scope.push(name)
      if (result instanceof Error) throw result
      return result
    }
  const phases = [phase('a', requeue(5, 'a')), phase('b', first), phase('c', requeue(3, 'c')), phase('d', second)]
  return { performed, ...(await runPhases(phases, performed, undefined, options)) }
}

test('the phases after a failure run; the result has the earliest requeue and all errors', async () => {
  const all = { performed: ['a', 'b', 'c', 'd'], outcome: requeue(3, 'a; c'), errors: [first, second] }
  expect(await runFailingPhases()).toEqual(all)
  expect(await runFailingPhases({ endsAtFailure: false })).toEqual(all)
})

test('no further phase runs after a failure if endsAtFailure is true', async () => {
  expect(await runFailingPhases({ endsAtFailure: true })).toEqual({
    performed: ['a', 'b'],
    outcome: requeue(5, 'a'),
    errors: [first],
  })
})
