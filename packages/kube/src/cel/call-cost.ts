/**
 * Estimates the cost of calls and the size of their results from the types, sizes and literal values of their arguments.
 * Upstream: cel-go v0.26 (checker/cost.go and ext), apiserver v0.36 (pkg/cel/library/cost.go).
 */
import type { Type } from './type.ts'

/** Upstream's estimates are 64-bit integers that saturate at the maximum. */
const MaxValue = 2 ** 64

/** A range of costs or sizes, from the least to the greatest. */
export class Range {
  readonly min: number
  readonly max: number

  constructor(min: number, max: number) {
    this.min = Math.min(min, MaxValue)
    this.max = Math.min(max, MaxValue)
  }
  plus(other: Range): Range {
    return new Range(this.min + other.min, this.max + other.max)
  }
  times(other: Range): Range {
    return new Range(this.min * other.min, this.max * other.max)
  }
  /** Multiplies by a factor and rounds up. */
  by(factor: number): Range {
    return new Range(Math.ceil(this.min * factor), Math.ceil(this.max * factor))
  }
  union(other: Range): Range {
    return new Range(Math.min(this.min, other.min), Math.max(this.max, other.max))
  }
}

export const unknownRange = new Range(0, MaxValue)

/** An argument of a call, or the target of a method call. */
export interface Operand {
  readonly type: Type
  /**
   * Number of characters, bytes, items or entries. From 0 to `DeclaredSize.max` for a value whose declared size is known; otherwise 1 for a
   * number, a boolean, a duration or a timestamp. `unknownRange` without a known limit.
   */
  readonly size: Range
  /** Items of a list; for a map, as upstream, the type of its keys and the size of its values. Absent for other types. */
  readonly items?: { readonly type: Type; readonly size: Range }
  /** The value, if the operand is an integer literal. */
  readonly literal?: number
}

export interface CallOfOverload {
  readonly name: string
  /** Parameter types of the overload. The first one of a method is its target. */
  readonly parameters: readonly Type[]
  readonly target: Operand | undefined
  readonly args: readonly Operand[]
}

export interface CallCost {
  /** Cost without the cost of the arguments. */
  readonly cost: Range
  /** Size of the result; absent when it is not estimated from the arguments. */
  readonly size?: Range
}

const one = new Range(1, 1)
const PerCharacter = 0.1
const PerPatternCharacter = 0.25
const unitCost: CallCost = { cost: one }

/** Estimates a call of one overload; the default cost is 1. */
export function callCost(call: CallOfOverload): CallCost {
  const estimated = Object.hasOwn(costs, call.name) ? costs[call.name]!(call) : undefined
  return estimated ?? unitCost
}

type Cost = (call: CallOfOverload) => CallCost | undefined

const traversal = (size: Range, times = 1): Range => size.by(times * PerCharacter)
const isText = ({ kind }: Type): boolean => kind === 'string' || kind === 'bytes'

const firstArgumentCost: Cost = ({ args }) => args[0] && { cost: traversal(args[0].size) }
const targetCost: Cost = ({ target }) => target && { cost: traversal(target.size), size: target.size }

/** Cost of a method that visits each item of a list, with the characters or bytes of the item; or each character of a string. */
const itemsCost: Cost = ({ target }) => {
  if (!target) return undefined
  if (!target.items) return { cost: traversal(target.size) }
  const { type, size } = target.items
  return { cost: target.size.times(isText(type) ? one.plus(traversal(size)) : one) }
}

const listCost = (factor: number, size: Range): CallCost => ({ cost: size.by(factor).plus(new Range(11, 11)), size })
const squared = (size: Range): Range => size.times(size)

const setsCost =
  (factor: number): Cost =>
  ({ args: [a, b] }) =>
    a && b && { cost: a.size.times(b.size).by(factor).plus(one) }

const patternCost = (text: Range, expression: Range): Range =>
  text.plus(one).by(PerCharacter).times(expression.by(PerPatternCharacter))

const findCost: Cost = ({ target, args: [expression] }) =>
  target && expression && { cost: patternCost(target.size, expression.size), size: new Range(0, target.size.max) }

const orderCost: Cost = ({ parameters, args: [a, b] }) =>
  isText(parameters[0]!) ? { cost: comparisonCost(a!.size, b!.size) } : undefined

/** Cost of a comparison, which the shorter of two values determines. */
function comparisonCost(a: Range, b: Range): Range {
  const max = Math.min(a.max, b.max)
  return new Range(max > 0 ? 1 : 0, max).by(PerCharacter)
}

const defaultEqualityCost: Cost = ({ args: [a, b] }) => ({ cost: comparisonCost(a!.size, b!.size) })

/** Cost of `==`. Values of Kubernetes' own types have their own comparison costs; upstream does not apply them to `!=`. */
const equalityCost: Cost = (call) => {
  const [a, b] = call.args as [Operand, Operand]
  if (a.type.kind === 'opaque' && b.type.kind === 'opaque' && a.type.name === b.type.name) {
    if (a.type.name === 'kubernetes.URL') return { cost: new Range(1, b.size.max === MaxValue ? 1 : b.size.max).by(PerCharacter) }
    if (a.type.name === 'kubernetes.NamedFormat') return { cost: new Range(1, 64).by(PerCharacter) }
    return unitCost
  }
  return defaultEqualityCost(call)
}

/** Size of an IP address in bytes. */
const addressSize = new Range(4, 16)

const containmentCost =
  (isNetwork: boolean): Cost =>
  ({ parameters, args: [other] }) => {
    const compared = traversal(addressSize.plus(addressSize))
    const masked = isNetwork ? traversal(addressSize).plus(one) : new Range(0, 0)
    const read = parameters[1]?.kind === 'string' ? traversal(other!.size) : new Range(0, 0)
    return { cost: compared.plus(masked).plus(read) }
  }

const replaceCost: Cost = ({ target, args: [search, replacement] }) => {
  if (!target || !search || !replacement) return undefined
  const { size } = target
  // For the longest and the shortest result: the number of inserted replacements, and the characters of the target that are kept.
  const max =
    search.size.min === 0
      ? { count: size.max + 1, kept: size.max }
      : replacement.size.max <= search.size.min
        ? { count: 0, kept: size.max }
        : { count: Math.ceil(size.max / search.size.min), kept: 0 }
  const min =
    search.size.max === 0
      ? { count: size.min + 1, kept: size.min }
      : search.size.max <= replacement.size.min
        ? { count: 0, kept: size.min }
        : { count: Math.ceil(size.min / search.size.max), kept: 0 }
  const result = new Range(min.count, max.count).times(replacement.size).plus(new Range(min.kept, max.kept))
  return { cost: traversal(size, 2), size: result }
}

const splitCost: Cost = ({ target, args: [, limit] }) => {
  if (!target) return undefined
  // Upstream: a negative number means that there is no limit.
  const max = limit?.literal === undefined ? target.size.max : limit.literal < 0 ? MaxValue : limit.literal
  return { cost: traversal(target.size, 2), size: new Range(0, max) }
}

const joinCost: Cost = ({ target, args: [separator] }) => {
  if (!target) return undefined
  const { size, items } = target
  const characters = items ? size.times(items.size) : new Range(0, 0)
  const between = new Range(Math.max(0, size.min - 1), Math.max(0, size.max - 1))
  const result = separator ? characters.plus(separator.size.times(between)) : characters
  return { cost: traversal(result), size: result }
}

const additionCost: Cost = ({ parameters, args: [a, b] }) => {
  const [{ kind }] = parameters as [Type]
  if (kind !== 'list' && kind !== 'string' && kind !== 'bytes') return undefined
  const size = a!.size.plus(b!.size)
  return { cost: kind === 'list' ? one : traversal(size), size }
}

const selectorCost = (size: Range): Range => new Range(10, 10).plus(traversal(size)).plus(size.by(0.5).by(50))

const costs: { readonly [name: string]: Cost } = {
  check: () => ({ cost: new Range(350_000, 350_000) }),
  fieldSelector: ({ args: [text] }) => ({ cost: selectorCost(text!.size) }),
  labelSelector: ({ args: [text] }) => ({ cost: selectorCost(text!.size) }),
  '_==_': equalityCost,
  '_!=_': defaultEqualityCost,
  '_<_': orderCost,
  '_<=_': orderCost,
  '_>_': orderCost,
  '_>=_': orderCost,
  '_+_': additionCost,
  '@in': ({ parameters, args: [, list] }) => (parameters[1]!.kind === 'list' ? { cost: list!.size } : undefined),
  bytes: ({ parameters, args: [text] }) =>
    parameters[0]!.kind === 'string'
      ? { cost: traversal(text!.size), size: new Range(text!.size.min, text!.size.max * 4) }
      : undefined,
  string: ({ parameters, args: [bytes] }) =>
    parameters[0]!.kind === 'bytes'
      ? { cost: traversal(bytes!.size), size: new Range(Math.floor(bytes!.size.min / 4), bytes!.size.max) }
      : undefined,
  'strings.quote': ({ args: [text] }) => ({
    cost: traversal(text!.size),
    size: new Range(text!.size.min + 2, text!.size.max * 2 + 2),
  }),
  format: ({ target }) => target && { cost: traversal(target.size) },
  startsWith: firstArgumentCost,
  endsWith: firstArgumentCost,
  contains: ({ target, args: [part] }) => target && { cost: traversal(target.size).times(traversal(part!.size)) },
  // The cost of the method. Upstream has no cost estimator for the function `matches(text, pattern)`, which gets the default cost.
  matches: ({ target, args: [expression] }) => target && { cost: patternCost(target.size, expression!.size) },
  find: findCost,
  findAll: findCost,

  isSorted: itemsCost,
  sum: itemsCost,
  min: itemsCost,
  max: itemsCost,
  indexOf: itemsCost,
  lastIndexOf: itemsCost,
  'sets.contains': setsCost(1),
  'sets.intersects': setsCost(1),
  'sets.equivalent': setsCost(2),
  slice: ({ target, args: [from, to] }) => {
    const end = to?.literal ?? target!.size.max
    return listCost(1, new Range(end - (from?.literal ?? 0), end - (from?.literal ?? 0)))
  },
  flatten: ({ target, args: [depth] }) => listCost(depth ? (depth.literal ?? MaxValue) : 1, target!.size),
  reverse: ({ target }) => listCost(1, target!.size),
  distinct: ({ target }) => listCost(2, squared(target!.size)),
  sort: ({ parameters: [list], target }) => listCost(list?.kind === 'list' && isText(list.item) ? 2.1 : 2, squared(target!.size)),
  '@sortByAssociatedKeys': ({ parameters, args: [keys] }) => {
    const [, type] = parameters
    return listCost(type?.kind === 'list' && isText(type.item) ? 2.1 : 2, squared(keys!.size))
  },
  'lists.range': ({ args: [count] }) => listCost(1, new Range(count?.literal ?? MaxValue, count?.literal ?? MaxValue)),

  url: ({ args: [text] }) => ({ cost: traversal(text!.size), size: text!.size }),
  lowerAscii: targetCost,
  upperAscii: targetCost,
  substring: targetCost,
  trim: targetCost,
  replace: replaceCost,
  split: splitCost,
  join: joinCost,
  cidr: firstArgumentCost,
  isIP: firstArgumentCost,
  isCIDR: firstArgumentCost,
  ip: ({ parameters: [first], args: [text] }) => (first!.kind === 'string' ? { cost: traversal(text!.size) } : undefined),
  'ip.isCanonical': ({ args: [text] }) => ({ cost: traversal(text!.size, 2) }),
  containsIP: containmentCost(false),
  containsCIDR: containmentCost(true),
  quantity: firstArgumentCost,
  isQuantity: firstArgumentCost,
  semver: firstArgumentCost,
  isSemver: firstArgumentCost,
  validate: ({ args: [text] }) => ({ cost: traversal(text!.size).by(128 * PerPatternCharacter) }),
}
