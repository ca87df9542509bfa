/**
 * Measures how long small requests of another user wait while `capstan apiserver` processes one hostile request. The hostile requests come
 * from `interop/abuse/inputs.ts`: requests with large bodies, close to the size limit where the kind of body allows this, and GET requests.
 * Without the option `only`, a short run sends only every eighth request with a body, which has at most 30,000 bytes, and no GET requests.
 */
import { type HostileInput, hostileInputs, largestInputs } from '../interop/abuse/inputs.ts'
import { type Observed, prepareObserver } from '../interop/abuse/observe.ts'
import { startCapstanApiServer } from '../interop/processes/capstan-api-server.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { median } from './figure.ts'

/** Number of measurements with each of the worst inputs, and without an input. */
const Runs = { full: 20, short: 3 }
/**
 * Number of the worst inputs that are measured several times, because the order after a single measurement is partly random. With the
 * option `only`, all selected inputs are measured several times.
 */
const Worst = 12

export async function* abuseBench({ short, only }: BenchOptions): AsyncIterable<Figure> {
  await using apiServer = await startCapstanApiServer({ users: [{ name: 'other' }] })
  const observer = await prepareObserver(apiServer)
  const runs = short ? Runs.short : Runs.full
  const allInputs = [...largestInputs(), ...hostileInputs().filter(({ method }) => method === 'GET')]
  let inputs = allInputs
  if (only !== undefined) inputs = allInputs.filter(({ name }) => only.split(',').some((text) => name.includes(text)))
  else if (short) inputs = largestInputs(30_000).filter((_, index) => index % 8 === 0)
  try {
    const idle = { name: 'no hostile input', method: 'GET', path: '/version' } as const
    const mediansOf = async (input: HostileInput): Promise<{ delay: number; cpu: number }> => {
      const observations: Observed[] = []
      for (let run = 0; run < runs; run++) observations.push(await observer.observe(input))
      return { delay: median(observations.map(({ delay }) => delay)), cpu: median(observations.map(({ cpu }) => cpu)) }
    }
    yield { name: 'delay of small requests without a hostile one', value: (await mediansOf(idle)).delay, unit: 'ms' }
    const single: { readonly input: (typeof inputs)[number]; readonly delay: number }[] = []
    for (const input of inputs) single.push({ input, delay: (await observer.observe(input)).delay })
    yield { name: `median delay of ${inputs.length} hostile inputs`, value: median(single.map(({ delay }) => delay)), unit: 'ms' }
    for (const { input, delay } of single
      .toSorted((a, b) => b.delay - a.delay)
      .slice(0, only === undefined ? Worst : undefined)) {
      yield { name: `${input.name}: single measurement`, value: delay, unit: 'ms' }
      const medians = await mediansOf(input)
      yield { name: `${input.name}: median of ${runs}`, value: medians.delay, unit: 'ms' }
      yield { name: `${input.name}: CPU of the server during a small request`, value: medians.cpu, unit: 'ms' }
    }
  } finally {
    observer.close()
  }
}
