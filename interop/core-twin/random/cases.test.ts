import { expect, test } from 'vitest'
import type { Twin } from '../twin.ts'
import { randomCases } from './cases.ts'

/** Returns the names of the steps of each case, without performing anything. */
async function stepsOf(seed: number): Promise<{ [name: string]: string[] }> {
  const steps: { [name: string]: string[] } = {}
  for (const [name, run] of Object.entries(randomCases(seed, 12))) {
    const performed: string[] = (steps[name] = [])
    const settle = (step: string) => void performed.push(step)
    await run(new Proxy({} as Twin, { get: (_, member) => (member === 'settle' ? settle : () => Promise.resolve()) }))
  }
  return steps
}

test('a seed determines the random cases, and every case has seven changes', async () => {
  const steps = await stepsOf(1)
  expect(await stepsOf(1)).toEqual(steps)
  expect(Object.values(await stepsOf(2))).not.toEqual(Object.values(steps))
  for (const [name, performed] of Object.entries(steps))
    expect(
      performed.filter((step) => /^\d: /.test(step)),
      name,
    ).toHaveLength(7)
})
