/**
 * Sprig's functions on numbers: on float64 for names that end in `f` and for `float64`, `ceil`, `floor` and `round`, else on int64.
 * Upstream: sprig v3, numeric.go.
 */
import { text } from '../format.ts'
import type { TemplateFunction, Value } from '../value.ts'
import { goFunction, toInt, variadic } from '../value.ts'
import { clampedInt, floatOf, intOf } from './convert.ts'
import type { Decimal } from './decimals.ts'
import { add, decimalOf, divide, multiply, numberOf, subtract } from './decimals.ts'

const MaxItems = 100_000n

const extremum = (isBetter: (a: bigint, b: bigint) => boolean) =>
  variadic(['any'], 'any', (first, ...others) =>
    others.map(intOf).reduce((best, value) => (isBetter(value, best) ? value : best), intOf(first)),
  )
const floats = (combine: (a: number, b: number) => number) =>
  variadic(['any'], 'any', (first, ...others) => others.map(floatOf).reduce(combine, floatOf(first)))
const decimals = (combine: (a: Decimal, b: Decimal) => Decimal) =>
  variadic(['any'], 'any', (first, ...others) => numberOf(others.map(asDecimal).reduce(combine, asDecimal(first))))
const asDecimal = (value: Value): Decimal => decimalOf(floatOf(value))

export const numberFunctions: Readonly<Record<string, TemplateFunction>> = {
  int: goFunction(['any'], intOf),
  int64: goFunction(['any'], intOf),
  float64: goFunction(['any'], floatOf),
  toDecimal: goFunction(['any'], (value) => octal(text(value))),
  atoi: goFunction(['string'], clampedInt),
  add: variadic([], 'any', (...values) => toInt(values.map(intOf).reduce((sum, value) => sum + value, 0n))),
  add1: goFunction(['any'], (value) => toInt(intOf(value) + 1n)),
  sub: goFunction(['any', 'any'], (a, b) => toInt(intOf(a) - intOf(b))),
  mul: variadic(['any'], 'any', (first, ...others) =>
    others.map(intOf).reduce((product, value) => toInt(product * value), intOf(first)),
  ),
  div: goFunction(['any', 'any'], (a, b) => toInt(intOf(a) / nonZero(b))),
  mod: goFunction(['any', 'any'], (a, b) => intOf(a) % nonZero(b)),
  max: extremum((a, b) => a > b),
  biggest: extremum((a, b) => a > b),
  min: extremum((a, b) => a < b),
  addf: variadic([], 'any', (...values) => numberOf(values.map(asDecimal).reduce(add, asDecimal(0)))),
  add1f: goFunction(['any'], (value) => numberOf(add(asDecimal(value), asDecimal(1)))),
  subf: decimals(subtract),
  mulf: decimals(multiply),
  divf: decimals(divide),
  maxf: floats((a, b) => Math.max(a, b)),
  minf: floats((a, b) => Math.min(a, b)),
  ceil: goFunction(['any'], (value) => Math.ceil(floatOf(value))),
  floor: goFunction(['any'], (value) => Math.floor(floatOf(value))),
  round: variadic(['any', 'int'], 'float64', (value, places, roundFrom = 0.5) => {
    const scale = 10 ** Number(places)
    const scaled = floatOf(value) * scale
    const fraction = scaled - Math.trunc(scaled)
    return (fraction >= roundFrom ? Math.ceil(scaled) : Math.floor(scaled)) / scale
  }),
  until: goFunction(['int'], (count) => steps(0n, count, count < 0n ? -1n : 1n)),
  untilStep: goFunction(['int', 'int', 'int'], steps),
  seq: variadic([], 'int', (...bounds) => {
    const [a, b, c] = bounds
    if (a === undefined || bounds.length > 3) return ''
    if (b === undefined) return sequence(1n, a)
    if (c === undefined) return sequence(a, b)
    return c < a && b > 0n ? '' : steps(a, afterLast(a, c), b).join(' ')
  }),
}

/** Parses an octal number; 0 when it is invalid or exceeds an int64. */
function octal(digits: string): bigint {
  const [, sign, unsigned] = /^([+-]?)([0-7]+)$/.exec(digits) ?? []
  if (unsigned === undefined) return 0n
  const size = BigInt(`0o${unsigned}`)
  const number = sign === '-' ? -size : size
  return number === toInt(number) ? number : 0n
}

function nonZero(value: Value): bigint {
  const divisor = intOf(value)
  if (divisor === 0n) throw new Error('runtime error: integer divide by zero')
  return divisor
}

/** Returns the numbers from `first` to `last`, inclusive, separated by spaces. */
const sequence = (first: bigint, last: bigint): string => steps(first, afterLast(first, last), last < first ? -1n : 1n).join(' ')

const afterLast = (first: bigint, last: bigint): bigint => (last < first ? last - 1n : last + 1n)

/** Returns the numbers from `start`, inclusive, to `stop`, exclusive. */
function steps(start: bigint, stop: bigint, step: bigint): bigint[] {
  if (step === 0n || (stop - start) * step <= 0n) return []
  if ((stop - start) / step > MaxItems) throw new Error(`list is longer than ${MaxItems}`)
  const values: bigint[] = []
  for (let value = start; step > 0n ? value < stop : value > stop; value += step) values.push(value)
  return values
}
