/** One measured figure. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ms' | 's' | 'MB' | 'KB' | '/s' | '%' | 'times' | 'requests'
}

export interface BenchOptions {
  /** Fewer objects and repetitions: for CI, which only checks that the benches run. */
  readonly short: boolean
  /** Numbers of Clusters for the bench of managers, instead of its default. */
  readonly clusters?: readonly number[]
  /** Measures only the hostile inputs whose names contain one of the texts, separated by commas. */
  readonly only?: string
  /** Sides of the bench of managers; absent: all. */
  readonly sides?: readonly string[]
  /** How many core managers share the Clusters, one number for each run; then upstream's managers are not measured. */
  readonly managers?: readonly number[]
}

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

/** Returns the median; of an even number of values, the upper one of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

export const megabytes = (bytes: number): number => bytes / 2 ** 20
