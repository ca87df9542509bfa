/**
 * Measures how long small requests of another user wait while `capstan apiserver` processes one hostile request. The requests contain the lists,
 * maps and texts of `interop/abuse/inputs.ts`, each as long as a request may be.
 */
import { type HostileInput, hostileInputs, largestInputs } from '../interop/abuse/inputs.ts'
import { type Observed, prepareSide } from '../interop/abuse/observe.ts'
import { startCapstanApiServer } from '../interop/capstan-api-server.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { median } from './figure.ts'

/** Number of measurements with each of the worst inputs, and without an input. */
const Runs = { full: 20, short: 3 }
/** Number of the worst inputs that are measured several times, because the order after a single measurement is partly random. */
const Worst = 12

export async function* abuseBench({ short, only }: BenchOptions): AsyncIterable<Figure> {
  await using apiServer = await startCapstanApiServer({ users: [{ name: 'other' }] })
  const side = await prepareSide(apiServer)
  const runs = short ? Runs.short : Runs.full
  const all = [...largestInputs(), ...hostileInputs().filter(({ method }) => method === 'GET')]
  const isNamed = ({ name }: HostileInput): boolean => only!.split(',').some((text) => name.includes(text))
  const inputs =
    only !== undefined ? all.filter(isNamed) : short ? largestInputs(30_000).filter((_, index) => index % 8 === 0) : all
  try {
    const idle = { name: 'no hostile input', method: 'GET', path: '/version' } as const
    const mediansOf = async (input: HostileInput): Promise<{ delay: number; cpu: number }> => {
      const all: Observed[] = []
      for (let run = 0; run < runs; run++) all.push(await side.observe(input))
      return { delay: median(all.map(({ delay }) => delay)), cpu: median(all.map(({ cpu }) => cpu)) }
    }
    yield { name: 'delay of small requests without a hostile one', value: (await mediansOf(idle)).delay, unit: 'ms' }
    const once: { readonly input: (typeof inputs)[number]; readonly delay: number }[] = []
    for (const input of inputs) once.push({ input, delay: (await side.observe(input)).delay })
    yield { name: `median delay of ${inputs.length} hostile inputs`, value: median(once.map(({ delay }) => delay)), unit: 'ms' }
    for (const { input, delay } of once.toSorted((a, b) => b.delay - a.delay).slice(0, only === undefined ? Worst : undefined)) {
      yield { name: `${input.name}: once`, value: delay, unit: 'ms' }
      const medians = await mediansOf(input)
      yield { name: `${input.name}: median of ${runs}`, value: medians.delay, unit: 'ms' }
      yield { name: `${input.name}: CPU of the server meanwhile`, value: medians.cpu, unit: 'ms' }
    }
  } finally {
    side.close()
  }
}
