/** A measured value with its unit. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ms' | 's' | 'MB' | 'KB' | '/s' | '%' | 'times' | 'requests'
}

export interface BenchOptions {
  /** Whether to use fewer objects and repetitions, for CI, which only checks that the benches run. */
  readonly short: boolean
  /** Numbers of Clusters for the bench of managers, instead of its default. */
  readonly clusters?: readonly number[]
  /** For the bench `abuse`: texts, separated by commas. Only hostile inputs whose names contain one of the texts are measured. */
  readonly only?: string
  /** Sides of the bench of managers: `capstan`, `one-process`, `upstream`. Default: `capstan` and `upstream`; with `short`, only `capstan`. */
  readonly sides?: readonly string[]
  /** Numbers of core managers that share the Clusters, one for each run. If present, upstream's managers are not measured. */
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

export const megabytes = (bytes: number): number => bytes / 2 ** 20
