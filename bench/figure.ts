/** One measured figure. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: 'ms' | 's' | 'MB' | 'KB' | '/s' | '%' | 'times' | 'requests'
}

export interface BenchOptions {
  /** Fewer objects and rounds: for CI, where only "does it run" counts. */
  readonly short: boolean
  /** How many Clusters, for benches of managers, instead of their own choice. */
  readonly clusters?: readonly number[]
  /** How many core managers share the Clusters, one number for each run; then upstream's managers are not measured. */
  readonly managers?: readonly number[]
}

export const now = (): number => performance.now()

/** Runs `work` for every item with at most `inFlight` at once. Resolves with the seconds it took. */
export async function inParallel(count: number, inFlight: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const started = now()
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker))
  return (now() - started) / 1000
}

/** The middle one of several runs. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

export const megabytes = (bytes: number): number => bytes / 2 ** 20
