import { expect, test } from 'vitest'
import type { Twin } from '../twin.ts'
import { randomCases } from './cases.ts'

/** Returns the names of the steps of each case, without performing anything. */
async function stepsOf(seed: number): Promise<{ [name: string]: string[] }> {
  const stepsByCase: { [name: string]: string[] } = {}
  for (const [name, run] of Object.entries(randomCases(seed, 12))) {
    const steps: string[] = (stepsByCase[name] = [])
    const settle = (step: string) => void steps.push(step)
    await run(new Proxy({} as Twin, { get: (_, member) => (member === 'settle' ? settle : () => Promise.resolve()) }))
  }
  return stepsByCase
}

test('a seed determines the random cases, and every case has seven changes', async () => {
  const stepsByCase = await stepsOf(1)
  expect(await stepsOf(1)).toEqual(stepsByCase)
  expect(Object.values(await stepsOf(2))).not.toEqual(Object.values(stepsByCase))
  for (const [name, steps] of Object.entries(stepsByCase))
    expect(
      steps.filter((step) => /^\d: /.test(step)),
      name,
    ).toHaveLength(7)
})
