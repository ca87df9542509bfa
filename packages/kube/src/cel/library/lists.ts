/**
 * Functions on lists. Upstream: apiserver/pkg/cel/library/lists.go, and the set extension, list extension and optional types of cel-go.
 */
import type { Library } from '../signature.ts'
import {
  CelList,
  compareValues,
  contains,
  Duration,
  equalValues,
  EvaluationError,
  Optional,
  none,
  OutOfBudget,
  Uint,
  type Value,
} from '../value.ts'

const ordered = ['int', 'uint', 'double', 'bool', 'string', 'bytes', 'timestamp', 'duration']

function isSorted(list: CelList): boolean {
  const values = list.values()
  return values.every((value, index) => index === 0 || (compareValues(values[index - 1]!, value) ?? 1) <= 0)
}

/** Returns the implementation of `min` (`sign` is 1) or `max` (`sign` is -1); `name` is its name in errors. */
const extreme =
  (name: string, sign: number) =>
  (list: CelList): Value => {
    const [first, ...others] = list.values()
    if (first === undefined) throw new EvaluationError(`${name} called on empty list`)
    return others.reduce((best, value) => ((compareValues(value, best) ?? 0) * sign < 0 ? value : best), first)
  }

const checkedInt = (value: bigint): bigint => {
  if (BigInt.asIntN(64, value) !== value) throw new EvaluationError('integer overflow')
  return value
}

const checkedUint = (value: bigint): bigint => {
  if (BigInt.asUintN(64, value) !== value) throw new EvaluationError('unsigned integer overflow')
  return value
}

/** The overloads of `sum`. For an empty list, each returns the zero of its item type. */
const sums: Library = {
  'list<int>.sum(): int': (list: CelList) =>
    (list.values() as readonly bigint[]).reduce((sum, value) => checkedInt(sum + value), 0n),
  'list<uint>.sum(): uint': (list: CelList) =>
    new Uint((list.values() as readonly Uint[]).reduce((sum, { value }) => checkedUint(sum + value), 0n)),
  'list<double>.sum(): double': (list: CelList) => (list.values() as readonly number[]).reduce((sum, value) => sum + value, 0),
  'list<duration>.sum(): duration': (list: CelList) =>
    new Duration((list.values() as readonly Duration[]).reduce((sum, { nanos }) => sum + nanos, 0n)),
}

/**
 * Sums a list that is not empty with the overload for the type of its items. The evaluator may have chosen another overload, because it does
 * not check the types of items.
 */
function sumOf(list: CelList): Value {
  const values = list.values()
  const kinds = [
    ['bigint', 'list<int>.sum(): int'],
    ['number', 'list<double>.sum(): double'],
  ] as const
  const kindOfAll = kinds.find(([kind]) => values.every((value) => typeof value === kind))
  if (kindOfAll) return sums[kindOfAll[1]]!(list)
  if (values.every((value) => value instanceof Uint)) return sums['list<uint>.sum(): uint']!(list)
  if (values.every((value) => value instanceof Duration)) return sums['list<duration>.sum(): duration']!(list)
  throw new EvaluationError('no such overload')
}

const position = (index: number): bigint => BigInt(index)

const includesAll = (list: CelList, items: CelList): boolean => items.values().every((value) => contains(list, value))

function distinct(list: CelList): CelList {
  const unique: Value[] = []
  for (const value of list.values()) if (!unique.some((previous) => equalValues(previous, value))) unique.push(value)
  return new CelList(unique)
}

function slice(list: CelList, start: bigint, end: bigint): CelList {
  if (start < 0n || end < 0n) throw new EvaluationError(`cannot slice(${start}, ${end}), negative indexes not supported`)
  if (start > end)
    throw new EvaluationError(`cannot slice(${start}, ${end}), start index must be less than or equal to end index`)
  if (end > BigInt(list.size)) throw new EvaluationError(`cannot slice(${start}, ${end}), list is length ${list.size}`)
  return new CelList(list.values().slice(Number(start), Number(end)))
}

function flatten(list: CelList, depth = 1n): CelList {
  if (depth < 0n) throw new EvaluationError('level must be non-negative')
  const flat = (values: readonly Value[], levels: bigint): Value[] =>
    values.flatMap((value) => (value instanceof CelList && levels > 0n ? flat(value.values(), levels - 1n) : [value]))
  return new CelList(flat(list.values(), depth))
}

/** Maximum length of a range. A longer range counts as exceeding the cost limit. */
const MaxRange = 1_000_000n

function range(end: bigint): CelList {
  if (end > MaxRange) throw new OutOfBudget('actual cost limit exceeded')
  return new CelList(Array.from({ length: Math.max(0, Number(end)) }, (_, index) => BigInt(index)))
}

/** Implements the macro `sortBy`: sorts the items by their keys. */
function sortByKeys(list: CelList, keys: CelList): CelList {
  const pairs = list.values().map((value, index) => ({ value, key: keys.at(index) }))
  return new CelList(pairs.sort((a, b) => compareValues(a.key, b.key) ?? 0).map(({ value }) => value))
}

export const lists: Library = {
  ...Object.fromEntries(
    ordered.flatMap((type) => [
      [`list<${type}>.isSorted(): bool`, isSorted],
      [`list<${type}>.min(): ${type}`, extreme('min', 1)],
      [`list<${type}>.max(): ${type}`, extreme('max', -1)],
      [`list<T>.@sortByAssociatedKeys(list<${type}>): list<T>`, sortByKeys],
      [
        `list<${type}>.sort(): list<${type}>`,
        (list: CelList) => new CelList([...list.values()].sort((a, b) => compareValues(a, b) ?? 0)),
      ],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(sums).map(([signature, sum]) => [signature, (list: CelList) => (list.size === 0 ? sum(list) : sumOf(list))]),
  ),
  'list<T>.indexOf(T): int': (list: CelList, value: Value) =>
    position(list.values().findIndex((item) => equalValues(item, value))),
  'list<T>.lastIndexOf(T): int': (list: CelList, value: Value) =>
    position(list.values().findLastIndex((item) => equalValues(item, value))),
  'list<T>.distinct(): list<T>': distinct,
  'list<T>.reverse(): list<T>': (list: CelList) => new CelList([...list.values()].reverse()),
  'list<T>.slice(int, int): list<T>': slice,
  'list<list<T>>.flatten(): list<T>': flatten,
  'list<dyn>.flatten(int): list<dyn>': flatten,
  'lists.range(int): list<int>': range,
  'list<T>.first(): optional<T>': (list: CelList) => (list.size === 0 ? none : new Optional(list.at(0))),
  'list<T>.last(): optional<T>': (list: CelList) => (list.size === 0 ? none : new Optional(list.at(list.size - 1))),
}

export const sets: Library = {
  'sets.contains(list<T>, list<T>): bool': includesAll,
  'sets.equivalent(list<T>, list<T>): bool': (a: CelList, b: CelList) => includesAll(a, b) && includesAll(b, a),
  'sets.intersects(list<T>, list<T>): bool': (a: CelList, b: CelList) => b.values().some((value) => contains(a, value)),
}
