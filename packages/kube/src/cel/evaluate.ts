/**
 * Run-time operations of compiled expressions. Calls, selections, iterations, and literals of lists and maps add to the cost of the
 * evaluation, which stops when the cost exceeds the limit.
 */
import { largest } from '../lists.ts'
import {
  CelList,
  CelMap,
  contains,
  equalValues,
  EvaluationError,
  none,
  Optional,
  OutOfBudget,
  Uint,
  type Value,
} from './value.ts'

/** State of one evaluation: the values of its variables, and the cost so far. */
export interface Run {
  readonly slots: Value[]
  spent: number
  readonly limit: number
}

export type Evaluate = (run: Run) => Value

/** Adds to the cost of an evaluation. @throws OutOfBudget when the cost exceeds the limit */
export function spend(run: Run, cost: number): void {
  run.spent += cost
  if (run.spent > run.limit) throw new OutOfBudget('actual cost limit exceeded')
}

export const noOverload = (): EvaluationError => new EvaluationError('no such overload')

/** Returns the member of a map or an object; `undefined` when it does not exist, and for an empty optional. */
export function lookUp(value: Value, field: string): Value | undefined {
  if (value instanceof Optional) return value.value === undefined ? undefined : lookUp(value.value, field)
  if (value instanceof CelMap) return value.get(field)
  throw noOverload()
}

/** Like `lookUp`, for selections without `?`: returns `undefined` also for null and scalars. As upstream, `has` is therefore false for them. */
export const lookUpPlain = (value: Value, field: string): Value | undefined =>
  value instanceof Optional || value instanceof CelMap || value instanceof CelList ? lookUp(value, field) : undefined

export const asOptional = (value: Value | undefined): Optional => (value === undefined ? none : new Optional(value))

/**
 * Returns an item of a list, or the value of a key of a map; `undefined` when it does not exist, and for an empty optional.
 */
export function lookUpIndex(container: Value, index: Value): Value | undefined {
  if (container instanceof Optional) return container.value === undefined ? undefined : lookUpIndex(container.value, index)
  if (container instanceof CelMap) return container.get(index)
  if (!(container instanceof CelList)) throw noOverload()
  const position = typeof index === 'bigint' ? Number(index) : index instanceof Uint ? Number(index.value) : index
  if (typeof position !== 'number') throw noOverload()
  return Number.isInteger(position) && position >= 0 && position < container.size ? container.at(position) : undefined
}

/**
 * Evaluates `container[index]`. For an optional container, returns an optional, which is empty when the item or key does not exist.
 * @throws EvaluationError when a container that is not optional lacks the item or key, and for a value that is no container
 */
export function indexed(container: Value, index: Value): Value {
  const element = lookUpIndex(container, index)
  if (container instanceof Optional) return asOptional(element)
  if (element !== undefined) return element
  const text = index instanceof Uint ? index.value.toString() : String(index as string | bigint)
  throw new EvaluationError(container instanceof CelList ? `index out of bounds: ${text}` : `no such key: ${text}`)
}

/** Returns the cost of creating or passing on a value: a tenth of its length or number of items, without the content of the items. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length / 10
  return value instanceof CelList || value instanceof CelMap ? value.size / 10 : 0
}

/** Returns the cost of visiting all content of a value, recursively. */
function weightOf(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return 1 + value.length / 10
  if (typeof value !== 'object' || value === null) return 1
  if (value instanceof CelList) return weightOf(value.raw)
  if (value instanceof CelMap && 'raw' in value) return weightOf(value.raw)
  if (value instanceof CelMap) return value.keys().reduce((total: number, key) => total + 1 + weightOf(value.get(key)), 1)
  if (Array.isArray(value)) return value.reduce((total: number, item) => total + weightOf(item), 1)
  if (Object.getPrototypeOf(value) !== Object.prototype) return 1
  return Object.values(value).reduce((total: number, member) => total + weightOf(member), 1)
}

/** Cost of matching a pattern: grows with the product of the lengths of text and pattern. */
export const matchingCost = (text: string, pattern: string): number => 1 + (text.length * (pattern.length + 4)) / 40

/** Returns a function that computes the cost of a call from its arguments. */
export function costOf(name: string): (values: readonly Value[]) => number {
  if (Cheap.has(name)) return () => 1
  // Upstream: this cost limits an expression to two permission checks.
  if (name === 'check') return () => 350_000
  if (Matching.has(name)) return ([text, pattern]) => matchingCost(text as string, pattern as string)
  return (values) => {
    let cost = 1
    for (const value of values) cost += value instanceof CelList ? weightOf(value) : sizeOf(value)
    return Quadratic.has(name) || isUnion(name, values) ? cost * longest(values) : cost
  }
}

const Cheap: ReadonlySet<string> = new Set('size type dyn hasValue value orValue or _<_ _>_ _<=_ _>=_ first last'.split(' '))
const Matching: ReadonlySet<string> = new Set(['matches', 'find', 'findAll'])
/** Functions that compare each item of a list with many other items, or with a value of any size. */
const Quadratic: ReadonlySet<string> = new Set(
  'distinct sets.contains sets.equivalent sets.intersects indexOf lastIndexOf'.split(' '),
)
/** Reports whether a call concatenates lists of type set or map, which compares each item with each other item. */
const isUnion = (name: string, [first]: readonly Value[]): boolean =>
  name === '_+_' && first instanceof CelList && first.kind !== 'atomic'
const longest = (values: readonly Value[]): number =>
  Math.max(1, largest(values.map((value) => (value instanceof CelList ? value.size : 1))))

export function equals(run: Run, a: Value, b: Value): boolean {
  spend(run, 1)
  return equalValues(a, b, (cost) => spend(run, cost))
}

export function isIn(run: Run, value: Value, container: Value): boolean {
  spend(run, 1)
  if (container instanceof CelList) return contains(container, value, (cost) => spend(run, cost))
  if (container instanceof CelMap) return container.get(value) !== undefined
  throw noOverload()
}

/**
 * Evaluates `&&` (`decisive` is false) or `||` (`decisive` is true) over any number of operands. An operand with the decisive value
 * determines the result, even if other operands fail.
 */
export function evaluateLogic(run: Run, operands: readonly Evaluate[], decisive: boolean): boolean {
  let failure: EvaluationError | undefined
  for (const operand of operands) {
    const value = evaluateOperand(run, operand)
    if (value === decisive) return decisive
    if (value instanceof EvaluationError) failure ??= value
  }
  if (failure !== undefined) throw failure
  return !decisive
}

/**
 * Evaluates an operand. Returns an EvaluationError instead of throwing it, because the error counts only if no operand has the decisive
 * value.
 */
function evaluateOperand(run: Run, operand: Evaluate): boolean | EvaluationError {
  try {
    const value = operand(run)
    return typeof value === 'boolean' ? value : noOverload()
  } catch (err) {
    if (!(err instanceof EvaluationError)) throw err
    spend(run, CostOfFailure)
    return err
  }
}

/** Cost of an operand that throws an EvaluationError, which takes longer than other steps. */
const CostOfFailure = 20

/** The iteration of a macro over the items of a list or the keys of a map. */
export interface Loop {
  readonly range: Evaluate
  /** Slot of the first variable; the second variable, if any, has the next slot. */
  readonly slot: number
  /** Whether the macro has two variables: index and item, or key and value. */
  readonly hasTwoVariables: boolean
}

/** Assigns each item of the range to the slots of the loop. Yields the first variable of each item that passes the filter. */
export function* each(run: Run, { range, slot, hasTwoVariables }: Loop, filter?: Evaluate): Generator<Value> {
  const container = range(run)
  const keys = container instanceof CelMap ? container.keys() : undefined
  if (!keys && !(container instanceof CelList)) throw noOverload()
  const size = keys ? keys.length : (container as CelList).size
  for (let index = 0; index < size; index++) {
    spend(run, 1)
    const first = keys ? keys[index]! : hasTwoVariables ? BigInt(index) : (container as CelList).at(index)
    run.slots[slot] = first
    if (hasTwoVariables) run.slots[slot + 1] = keys ? (container as CelMap).get(first)! : (container as CelList).at(index)
    if (filter) {
      const decision = filter(run)
      if (typeof decision !== 'boolean') throw noOverload()
      if (!decision) continue
    }
    yield first
  }
}

/** Compiles `all` (`decisive` is false) and `exists` (`decisive` is true). */
export function quantified(loop: Loop, body: Evaluate, decisive: boolean): Evaluate {
  return (run) => {
    let failure: EvaluationError | undefined
    for (const _ of each(run, loop)) {
      const value = evaluateOperand(run, body)
      if (value === decisive) return decisive
      if (value instanceof EvaluationError) failure ??= value
    }
    if (failure !== undefined) throw failure
    return !decisive
  }
}

/** Returns the first variable of each item for which `body` is true. */
export const selected = (run: Run, loop: Loop, body: Evaluate): Value[] => [...each(run, loop, body)]

/** Yields the entries that `entries` returns for each item that passes the filter. */
export function* mapped(
  run: Run,
  loop: Loop,
  { filter }: { filter: Evaluate | undefined },
  entries: (key: Value) => Iterable<readonly [Value, Value]>,
): Generator<readonly [Value, Value]> {
  for (const key of each(run, loop, filter)) yield* entries(key)
}

export function* entriesOf(map: Value): Generator<readonly [Value, Value]> {
  if (!(map instanceof CelMap)) throw noOverload()
  for (const key of map.keys()) yield [key, map.get(key)!]
}
