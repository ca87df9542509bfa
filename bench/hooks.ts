/**
 * Runtime hooks: cost of a call compared with upstream's client, delay after an extension allows a step, number of calls, and delay of
 * other Clusters by a hanging extension.
 */
import { messageOf } from '@capstan/kube'
import { CannotRun } from '../interop/shared/suite.ts'
import { toolPaths } from '../interop/shared/tools.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { countedCalls } from './hooks-count.ts'
import { hangingExtension } from './hooks-hanging.ts'
import { blockedClusters } from './hooks-held.ts'
import { type Calls, ourCaller, startHooksServer, upstreamCaller } from './hook-callers.ts'

/** Measures the delay after an extension allows a step, the number of calls, and the cost of a call. */
export async function* hooksBench({ short }: BenchOptions): AsyncIterable<Figure> {
  yield* blockedClusters(short)
  for (const count of short ? [20] : [100, 1000]) yield* countedCalls(count, short ? 0 : 1)
  yield* calls(short)
}

/** Measures how a hanging extension delays other Clusters. Unlike `hooksBench`, it does not need upstream's client. */
export async function* hangingHooksBench({ short }: BenchOptions): AsyncIterable<Figure> {
  yield* hangingExtension(short)
}

/**
 * Calls one handler in a child process, in turn with Capstan's and with upstream's client, so that other load of the machine affects both
 * clients equally.
 */
async function* calls(short: boolean): AsyncIterable<Figure> {
  const [program] = await toolPaths('hooks-client').catch((err: unknown) => {
    throw new CannotRun(messageOf(err))
  })
  const server = await startHooksServer()
  const ours = ourCaller(server.address)
  const theirs = await upstreamCaller(program, server.address)
  try {
    const rounds = short ? 2 : 10
    const perRound = short ? 150 : 1000
    // Warm-up: V8 compiles the code during the first calls.
    for (const caller of [ours, theirs, ours]) await caller.call(perRound * 2, 16)
    for (const inFlight of [1, 16, 64]) {
      const measured: [Calls[], Calls[]] = [[], []]
      for (let round = 0; round < rounds; round++) {
        measured[0].push(await ours.call(perRound, inFlight))
        measured[1].push(await theirs.call(perRound, inFlight))
      }
      yield* compared(inFlight, measured)
    }
  } finally {
    ours.close()
    theirs.close()
    server.stop()
  }
}

function* compared(inFlight: number, measured: readonly [readonly Calls[], readonly Calls[]]): Iterable<Figure> {
  const summaries = measured.map((rounds) => {
    const latencies = rounds.flatMap(({ latencies }) => latencies).sort((a, b) => a - b)
    const quantile = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]!
    return {
      p50: quantile(0.5),
      p99: quantile(0.99),
      rate: latencies.length / rounds.reduce((sum, { seconds }) => sum + seconds, 0),
    }
  })
  const [ours, theirs] = [summaries[0]!, summaries[1]!]
  const figures = [
    ['p50', 'ms', theirs.p50 / ours.p50],
    ['p99', 'ms', theirs.p99 / ours.p99],
    ['rate', '/s', ours.rate / theirs.rate],
  ] as const
  for (const [what, unit, betterBy] of figures) {
    const name = `${what === 'rate' ? 'hook calls' : `hook call, ${what}`}, ${inFlight} in flight`
    yield { name: `${name}: Capstan`, value: ours[what], unit }
    yield { name: `${name}: upstream's runtime client`, value: theirs[what], unit }
    yield { name: `${name}: Capstan is better by`, value: betterBy, unit: 'times' }
  }
}
