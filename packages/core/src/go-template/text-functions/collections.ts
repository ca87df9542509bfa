/**
 * Sprig's functions on lists and dictionaries. Where Go's order of map keys is random, the order here is sorted. Upstream: sprig v3,
 * list.go and dict.go.
 */
import type { GoMap, TemplateFunction, Value } from '../value.ts'
import { goFunction, has, isMap, mapOf, sortedKeys, typeName, variadic } from '../value.ts'
import { deepEqual } from './comparison.ts'
import { isEmpty, isNil, listOf, stringOf, stringsOf } from './convert.ts'

const listFunctions: Readonly<Record<string, TemplateFunction>> = {
  first: goFunction(['any'], (value) => listOf(value, 'Cannot find first on type')[0] ?? null),
  last: goFunction(['any'], (value) => listOf(value, 'Cannot find last on type').at(-1) ?? null),
  rest: goFunction(['any'], (value) => listOf(value, 'Cannot find rest on type').slice(1)),
  initial: goFunction(['any'], (value) => listOf(value, 'Cannot find initial on type').slice(0, -1)),
  append: goFunction(['any', 'any'], (value, item) => [...listOf(value, 'Cannot push on type'), item]),
  push: goFunction(['any', 'any'], (value, item) => [...listOf(value, 'Cannot push on type'), item]),
  prepend: goFunction(['any', 'any'], (value, item) => [item, ...listOf(value, 'Cannot prepend on type')]),
  reverse: goFunction(['any'], (value) => listOf(value, 'Cannot find reverse on type').toReversed()),
  compact: goFunction(['any'], (value) => listOf(value, 'Cannot compact on type').filter((item) => !isEmpty(item))),
  uniq: goFunction(['any'], (value) =>
    listOf(value, 'Cannot find uniq on type').filter(
      (item, index, items) => items.findIndex((other) => deepEqual(other, item)) === index,
    ),
  ),
  without: variadic(['any'], 'any', (value, ...unwanted) =>
    listOf(value, 'Cannot find without on type').filter((item) => !unwanted.some((other) => deepEqual(other, item))),
  ),
  has: goFunction(
    ['any', 'any'],
    (item, value) => !isNil(value) && listOf(value, 'Cannot find has on type').some((other) => deepEqual(other, item)),
  ),
  slice: variadic(['any'], 'any', (value, ...bounds) => {
    const list = listOf(value, 'list should be type of slice or array but')
    if (list.length === 0) return null
    const [from = 0, to = list.length] = bounds.map((bound) => Number(bound))
    if (from > to || to > list.length) throw new Error(`runtime error: slice bounds out of range [${from}:${to}]`)
    return list.slice(from, to)
  }),
  chunk: goFunction(['int', 'any'], (size, value) => {
    if (size <= 0n) throw new Error('runtime error: integer divide by zero')
    const list = listOf(value, 'Cannot chunk type')
    return Array.from({ length: Math.ceil(list.length / Number(size)) }, (_, i) =>
      list.slice(i * Number(size), (i + 1) * Number(size)),
    )
  }),
}

const mergeFunctions: Readonly<Record<string, TemplateFunction>> = {
  merge: variadic(['map'], 'map', (target, ...sources) => {
    for (const source of sources) mergeInto(target, source, false)
    return target
  }),
  mergeOverwrite: variadic(['map'], 'map', (target, ...sources) => {
    for (const source of sources) mergeInto(target, source, true)
    return target
  }),
  deepCopy: goFunction(['any'], deepCopy),
}

export const collectionFunctions: Readonly<Record<string, TemplateFunction>> = {
  ...listFunctions,
  ...mergeFunctions,
  ...Object.fromEntries(
    Object.entries({ ...listFunctions, ...mergeFunctions }).map(([name, templateFunction]) => [
      `must${name[0]!.toUpperCase()}${name.slice(1)}`,
      templateFunction,
    ]),
  ),
  list: variadic([], 'any', (...items) => items),
  tuple: variadic([], 'any', (...items) => items),
  concat: variadic([], 'any', (...values) => values.flatMap((value) => listOf(value, 'Cannot concat type', ' as list'))),
  sortAlpha: goFunction(['any'], (value) => stringsOf(value).sort()),

  dict: variadic([], 'any', (...pairs) => {
    const entries: [string, Value][] = []
    for (let i = 0; i < pairs.length; i += 2) entries.push([stringOf(pairs[i]), i + 1 < pairs.length ? pairs[i + 1] : ''])
    return mapOf(entries)
  }),
  get: goFunction(['map', 'string'], (map, key) => (has(map, key) ? map[key] : '')),
  set: goFunction(['map', 'string', 'any'], (map, key, value) => {
    put(map, key, value)
    return map
  }),
  unset: goFunction(['map', 'string'], (map, key) => {
    delete map[key]
    return map
  }),
  hasKey: goFunction(['map', 'string'], (map, key) => has(map, key)),
  keys: variadic([], 'map', (...maps) => maps.flatMap(sortedKeys)),
  values: goFunction(['map'], (map) => sortedKeys(map).map((key) => map[key])),
  pick: variadic(['map'], 'string', (map, ...keys) => mapOf(keys.filter((key) => has(map, key)).map((key) => [key, map[key]]))),
  omit: variadic(['map'], 'string', (map, ...keys) => mapOf(Object.entries(map).filter(([key]) => !keys.includes(key)))),
  pluck: variadic(['string'], 'map', (key, ...maps) => maps.filter((map) => has(map, key)).map((map) => map[key])),
  dig: variadic(['any', 'any'], 'any', (...args) => {
    if (args.length < 3) throw new Error('dig needs at least three arguments')
    const fallback = args.at(-2)
    let value = args.at(-1)
    for (const key of args.slice(0, -2)) {
      if (!isMap(value)) throw notA('map[string]interface {}', value)
      if (typeof key !== 'string') throw notA('string', key)
      if (!has(value, key)) return fallback
      value = value[key]
    }
    return value
  }),
}

const notA = (goType: string, value: Value): Error =>
  new Error(`interface conversion: interface {} is ${isNil(value) ? 'nil' : typeName(value)}, not ${goType}`)

/** Limit of the values in a copy. A list that contains another one twice, and so on, has exponentially many values. */
const MaxCopiedValues = 1_000_000

/**
 * Copies lists and maps. A version remains as it is; in upstream, `deepCopy` makes it 0.0.0.
 * @throws Error when the copy has too many values
 */
function deepCopy(original: Value): Value {
  let count = 0
  const copy = (value: Value): Value => {
    if (++count > MaxCopiedValues) throw new Error(`copy contains more than ${MaxCopiedValues} values`)
    if (Array.isArray(value)) return value.map(copy)
    return isMap(value) ? mapOf(Object.entries(value).map(([key, item]) => [key, copy(item)])) : value
  }
  return copy(original)
}

/** Sets any key, also `__proto__`. */
const put = (map: GoMap, key: string, value: Value): void => {
  Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true })
}

/** Merges `source` into `target`, recursively. Without `overwrites`, sets only keys that are missing or empty in `target`. */
function mergeInto(target: GoMap, source: GoMap, overwrites: boolean): void {
  for (const [key, value] of Object.entries(source)) {
    const present = has(target, key) ? target[key] : undefined
    if (isMap(present) && present !== null && isMap(value) && value !== null) mergeInto(present, value, overwrites)
    else if (overwrites || isEmpty(present)) put(target, key, deepCopy(value))
  }
}
