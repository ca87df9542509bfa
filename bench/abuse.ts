/**
 * Measures how long small requests of another user wait while `capstan apiserver` processes one hostile request. The requests contain the lists,
 * maps and texts of `interop/abuse/inputs.ts`, each as long as a request may be.
 */
import { hostileInputs, largestInputs } from '../interop/abuse/inputs.ts'
import { observed } from '../interop/abuse/observe.ts'
import { startCapstanPlane } from '../interop/capstan-plane.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { median } from './figure.ts'

/** Runs of each of the worst inputs, and of the measurement without an input. */
const Runs = { full: 20, short: 3 }
/** Number of the worst inputs that are measured several times: the order after one run of each is partly chance. */
const Worst = 3

export async function* abuseBench({ short }: BenchOptions): AsyncIterable<Figure> {
  await using plane = await startCapstanPlane({ users: [{ name: 'other' }] })
  const side = await observed(plane)
  const runs = short ? Runs.short : Runs.full
  const inputs = short
    ? largestInputs(30_000).filter((_, index) => index % 8 === 0)
    : [...largestInputs(), ...hostileInputs().filter(({ method }) => method === 'GET')]
  try {
    const idle = { name: 'an input of no length', method: 'GET', path: '/version' } as const
    const medianOf = async (input: Parameters<typeof side.observe>[0]): Promise<number> => {
      const delays: number[] = []
      for (let run = 0; run < runs; run++) delays.push((await side.observe(input)).delay)
      return median(delays)
    }
    yield { name: 'delay of small requests without a hostile one', value: await medianOf(idle), unit: 'ms' }
    const once: { readonly input: (typeof inputs)[number]; readonly delay: number }[] = []
    for (const input of inputs) once.push({ input, delay: (await side.observe(input)).delay })
    yield { name: `median delay of ${inputs.length} hostile inputs`, value: median(once.map(({ delay }) => delay)), unit: 'ms' }
    for (const { input, delay } of once.toSorted((a, b) => b.delay - a.delay).slice(0, Worst)) {
      yield { name: `${input.name}: once`, value: delay, unit: 'ms' }
      yield { name: `${input.name}: median of ${runs}`, value: await medianOf(input), unit: 'ms' }
    }
  } finally {
    side.close()
  }
}
