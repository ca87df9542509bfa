/**
 * Counts the steps of a computation: executions of each block of source, from V8's precise coverage, and elements visited by built-in
 * functions. Unlike time, the count does not depend on the machine.
 */
import { Session } from 'node:inspector/promises'

/** Runs the work and returns its number of steps. Calls must not overlap. */
export async function countSteps(work: () => unknown): Promise<number> {
  const session = await coverage()
  const restore = countBuiltIns()
  let builtIn: number
  await session.post('Profiler.takePreciseCoverage')
  try {
    await work()
  } finally {
    builtIn = restore()
  }
  const { result } = await session.post('Profiler.takePreciseCoverage')
  let steps = builtIn
  for (const { functions } of result) for (const { ranges } of functions) for (const { count } of ranges) steps += count
  return steps
}

let started: Promise<Session> | undefined

/** Returns a session with precise coverage enabled. Coverage stays enabled, because V8 discards compiled code each time coverage is turned on. */
const coverage = (): Promise<Session> =>
  (started ??= (async () => {
    const session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
    return session
  })())

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Built-in functions that visit elements of lists, members of objects or characters of strings. V8's coverage does not count these visits. */
const scanning: readonly (readonly [holder: object, names: readonly string[]])[] = [
  [JSON, ['parse', 'stringify']],
  [Object, ['assign', 'entries', 'keys', 'values']],
  // When `exec` is replaced, all other methods that match a regular expression call it, such as `test` and `replace`.
  [RegExp.prototype, ['exec']],
  // `next` of array iterators is called for each element of a spread list.
  [Object.getPrototypeOf([].values()) as object, ['next']],
  [
    Array.prototype,
    [
      'concat',
      'fill',
      'includes',
      'indexOf',
      'join',
      'lastIndexOf',
      'reverse',
      'shift',
      'slice',
      'sort',
      'splice',
      'toReversed',
      'toSorted',
      'unshift',
    ],
  ],
  [
    String.prototype,
    ['includes', 'indexOf', 'lastIndexOf', 'normalize', 'replaceAll', 'repeat', 'split', 'toLowerCase', 'toUpperCase', 'trim'],
  ],
]

/** Wraps the scanning built-ins to count elements. The returned function restores them and returns the count. */
function countBuiltIns(): () => number {
  let steps = 0
  const originals: (readonly [holder: Record<string, Method>, name: string, original: Method])[] = []
  for (const [holder, names] of scanning as readonly (readonly [Record<string, Method>, readonly string[]])[]) {
    for (const name of names) {
      const original = holder[name]!
      originals.push([holder, name, original])
      const counting = {
        [name](this: unknown, ...args: unknown[]): unknown {
          const from = this instanceof RegExp ? this.lastIndex : 0
          const result = Reflect.apply(original, this, args)
          steps += this instanceof RegExp ? stepsOfMatch(this, String(args[0]), from, result) : stepsOf(name, this, args, result)
          return result
        },
      }[name]!
      Object.defineProperty(holder, name, { value: counting, writable: true, configurable: true, enumerable: false })
    }
  }
  return () => {
    for (const [holder, name, original] of originals)
      Object.defineProperty(holder, name, { value: original, writable: true, configurable: true, enumerable: false })
    return steps
  }
}

/**
 * Returns the steps of a search: 1, and a sixteenth for each character from the start of the search to the end of the match. Without a
 * match, the characters to the end of the text are counted, or none if the expression is sticky. Backtracking is not counted.
 */
function stepsOfMatch({ sticky, global }: RegExp, text: string, from: number, result: unknown): number {
  const match = result as RegExpExecArray | null
  const start = sticky || global ? from : 0
  const end = match ? match.index + match[0].length : sticky ? start : text.length
  return 1 + Math.max(0, end - start) / 16
}

/**
 * Returns an estimate of the elements that a call visits, copies or moves. Characters of strings count for a sixteenth, except in `indexOf` and
 * `lastIndexOf`, where each counts as an element.
 */
function stepsOf(name: string, receiver: unknown, args: readonly unknown[], result: unknown): number {
  const { length = 0 } = receiver as { length?: number }
  switch (name) {
    case 'next':
      return 1
    case 'parse':
      return String(args[0]).length / 16
    case 'stringify':
      return (typeof result === 'string' ? result.length : 0) / 16
    case 'keys':
    case 'values':
    case 'entries':
      return (result as readonly unknown[]).length
    case 'assign':
      return args.slice(1).reduce<number>((sum, source) => sum + (source ? Reflect.ownKeys(source as object).length : 0), 0)
    case 'sort':
    case 'toSorted':
      return length * Math.log2(length + 1)
    case 'repeat':
      return (result as string).length / 16
    case 'toLowerCase':
    case 'toUpperCase':
    case 'normalize':
    case 'trim':
      return length / 16
    case 'indexOf':
      return (result as number) < 0 ? length : (result as number)
    case 'splice':
      // The elements after the index are moved.
      return Math.max(0, length - Number(args[0] ?? 0))
    case 'slice':
      return (result as { length: number }).length
    case 'replaceAll':
    case 'split':
    case 'includes':
      // V8 scans about sixteen characters at a time.
      return typeof receiver === 'string' ? length / 16 : length
    default:
      return length
  }
}
