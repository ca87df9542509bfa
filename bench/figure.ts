/** A measured value with its unit. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ms' | 's' | 'MB' | 'KB' | '/s' | '%' | 'times' | 'requests'
}

export interface BenchOptions {
  /** Whether to use fewer objects and repetitions, for CI, which only checks that the benches run. */
  readonly short: boolean
  /** Numbers of Clusters for the bench of managers, one for each run. Default: 1 and 20; with `short`, only 1. */
  readonly clusters?: readonly number[]
  /** For the bench `abuse`: texts, separated by commas. Only hostile inputs whose names contain one of the texts are measured. */
  readonly only?: string
  /**
   * Systems that the bench of managers measures: `capstan`, `one-process` (Capstan with all providers in one process, without
   * webhooks), `upstream`. Default: `capstan` and `upstream`; with `short`, only `capstan`.
   */
  readonly sides?: readonly string[]
  /**
   * For the bench of managers: numbers of Capstan's core managers that share the Clusters, one for each run. If present, `sides` has no
   * effect.
   */
  readonly managers?: readonly number[]
}

/** Returns the milliseconds since this process started. */
export const now = (): number => performance.now()

/** Runs `work` for every index below `count`, at most `inFlight` at once. Resolves with the duration in seconds. */
export async function inParallel(count: number, inFlight: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const started = now()
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker))
  return (now() - started) / 1000
}

/** Returns the median; for an even number of values, the greater of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

/** Converts bytes to MB of 2^20 bytes. */
export const megabytes = (bytes: number): number => bytes / 2 ** 20
