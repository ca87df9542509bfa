/** Measures how the steps of a computation grow with its input. */
import { countSteps } from './count-steps.ts'

/** Largest accepted growth when the input doubles. Linear work doubles, n log n grows a little more, quadratic work fourfold. */
export const MaxPerDoubling = 2.3

const Sizes = [120, 240, 480, 960]

/**
 * Work that seems to grow too much is measured again at these sizes. Objects of 500 to 2,000 elements exceed the limits of caches, so
 * that the steps of each element rise up to twofold there; larger objects are in no cache.
 */
const LargerSizes = [1920, 3840, 7680, 15_360]

/** Work with fewer added steps for each element counts as constant, because such differences are random. */
const FewSteps = 4

/** Number of additional measurements of work that seems to grow too much. */
const MaxRepeated = 3

export interface GrowthMeasurement {
  readonly name: string
  readonly steps: readonly number[]
  /** The smaller ratio of added steps between one doubling and the next; 1 for constant work and for falling ratios. */
  readonly perDoubling: number
}

/**
 * Counts the steps of the work at each size, a doubling apart. A limit that is reached between two sizes changes one ratio; only work that
 * grows too much at both doublings is reported.
 *
 * @param prepare called for each of the larger sizes; returns whether the work accepts this size
 */
export async function measureGrowth(
  name: string,
  work: (size: number) => unknown,
  prepare: (size: number) => Promise<boolean> = async () => true,
): Promise<GrowthMeasurement> {
  const grown = await measureSizes(name, work, Sizes)
  if (grown.perDoubling <= MaxPerDoubling) return grown
  for (const size of LargerSizes) if (!(await prepare(size))) return grown
  return measureSizes(name, work, LargerSizes)
}

async function measureSizes(name: string, work: (size: number) => unknown, sizes: readonly number[]): Promise<GrowthMeasurement> {
  // The result of the first run is discarded, because it includes compilation and the filling of caches. This run needs `countSteps`, too:
  // V8 does not count code that first ran before coverage was enabled.
  await countSteps(() => work(sizes[0]! / 2))
  let grown = grownBy(name, sizes, await stepsOf(work, sizes))
  // Other work in the process can only add steps. If a ratio is too large, it is measured again, and the smaller counts are used.
  for (let again = 0; again < MaxRepeated && grown.perDoubling > MaxPerDoubling; again++) {
    const stepsAgain = await stepsOf(work, sizes)
    grown = grownBy(
      name,
      sizes,
      grown.steps.map((count, index) => Math.min(count, stepsAgain[index]!)),
    )
  }
  return grown
}

async function stepsOf(work: (size: number) => unknown, sizes: readonly number[]): Promise<number[]> {
  const steps: number[] = []
  for (const size of sizes) steps.push(await countSteps(() => work(size)))
  return steps
}

function grownBy(name: string, sizes: readonly number[], steps: readonly number[]): GrowthMeasurement {
  const [a = 0, b = 0, c = 0, d = 0] = steps
  const isConstant = d - c < FewSteps * (sizes[3]! - sizes[2]!)
  const [first, second] = [ratio(b - a, c - b), ratio(c - b, d - c)]
  // Falling ratios occur for work with an upper bound per element, such as a filling cache.
  const isBounded = second < 0.9 * first && second < 3
  return { name, steps, perDoubling: isConstant || isBounded ? 1 : Math.min(first, second) }
}

const ratio = (before: number, after: number): number => after / Math.max(before, 1)

/** Returns a line for each computation whose steps grow too fast. */
export const growthProblems = (measurements: readonly GrowthMeasurement[]): string[] =>
  measurements
    .filter(({ perDoubling }) => perDoubling > MaxPerDoubling)
    .map(({ name, steps, perDoubling }) => `${name}: ${perDoubling.toFixed(2)}-fold per doubling (${steps.join(', ')} steps)`)
