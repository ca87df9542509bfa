/**
 * Measures how the steps of a computation grow with its input. Steps are executed blocks of code, and elements that built-in functions
 * visit (`count-steps.ts`).
 */
import { countSteps } from './count-steps.ts'

/** Largest accepted `perDoubling`, which is 2 for linear work, a little more for n log n, and 4 for quadratic work. */
export const MaxPerDoubling = 2.3

const Sizes = [120, 240, 480, 960]

/**
 * Work that seems to grow too much is measured again at these sizes. Between 500 and 2,000 elements, objects become too large for the caches
 * of the measured code, so that the steps for each element rise up to twofold. Larger objects are in none of these caches.
 */
const LargerSizes = [1920, 3840, 7680, 15_360]

/** Work with fewer added steps per added element counts as constant, because such differences are random. */
const FewSteps = 4

/** Maximum number of additional measurements of work that seems to grow too much. */
const MaxRepeated = 3

export interface GrowthMeasurement {
  readonly name: string
  /** Number of steps at each size. */
  readonly steps: readonly number[]
  /**
   * The steps that one doubling of the input adds, divided by those that the previous doubling adds. The smaller of the two measured ratios;
   * 1 for constant work, and if the second ratio is below 3 and below 0.9 times the first.
   */
  readonly perDoubling: number
}

/**
 * Counts the steps of the work at four sizes, each twice the one before. A single jump of the steps between two sizes raises at most one of
 * the two ratios of added steps, so the smaller ratio counts. If it is too large, counts the steps at larger sizes instead.
 *
 * @param prepare called for the larger sizes before they are measured; returns whether the work accepts the size. If it rejects one of them,
 *   the result of the smaller sizes is returned.
 */
export async function measureGrowth(
  name: string,
  work: (size: number) => unknown,
  prepare: (size: number) => Promise<boolean> = async () => true,
): Promise<GrowthMeasurement> {
  const measurement = await measureSizes(name, work, Sizes)
  if (measurement.perDoubling <= MaxPerDoubling) return measurement
  for (const size of LargerSizes) if (!(await prepare(size))) return measurement
  return measureSizes(name, work, LargerSizes)
}

async function measureSizes(name: string, work: (size: number) => unknown, sizes: readonly number[]): Promise<GrowthMeasurement> {
  // The result of the first run is discarded, because it includes compilation and the filling of caches. Even this run needs `countSteps`:
  // V8 does not count code that first ran before coverage was enabled.
  await countSteps(() => work(sizes[0]! / 2))
  let measurement = measurementOf(name, sizes, await stepsOf(work, sizes))
  // Other work in the process can only add steps. If the ratio is too large, the steps are counted again, and the smaller counts are used.
  for (let again = 0; again < MaxRepeated && measurement.perDoubling > MaxPerDoubling; again++) {
    const stepsAgain = await stepsOf(work, sizes)
    measurement = measurementOf(
      name,
      sizes,
      measurement.steps.map((count, index) => Math.min(count, stepsAgain[index]!)),
    )
  }
  return measurement
}

async function stepsOf(work: (size: number) => unknown, sizes: readonly number[]): Promise<number[]> {
  const steps: number[] = []
  for (const size of sizes) steps.push(await countSteps(() => work(size)))
  return steps
}

function measurementOf(name: string, sizes: readonly number[], steps: readonly number[]): GrowthMeasurement {
  const [a = 0, b = 0, c = 0, d = 0] = steps
  const isConstant = d - c < FewSteps * (sizes[3]! - sizes[2]!)
  const [first, second] = [ratio(b - a, c - b), ratio(c - b, d - c)]
  // The ratios fall when the steps for each element approach an upper bound, for example while a cache fills.
  const isBounded = second < 0.9 * first && second < 3
  return { name, steps, perDoubling: isConstant || isBounded ? 1 : Math.min(first, second) }
}

const ratio = (before: number, after: number): number => after / Math.max(before, 1)

/** Returns a line for each computation whose steps grow too fast. */
export const growthProblems = (measurements: readonly GrowthMeasurement[]): string[] =>
  measurements
    .filter(({ perDoubling }) => perDoubling > MaxPerDoubling)
    .map(({ name, steps, perDoubling }) => `${name}: ${perDoubling.toFixed(2)}-fold per doubling (${steps.join(', ')} steps)`)
