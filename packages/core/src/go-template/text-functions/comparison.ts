/** Sprig's functions for defaults, conditions and types. Upstream: sprig v3, defaults.go and reflect.go. */
import { typeName, kindName, goFunction, variadic, isMap, GoStruct } from '../value.ts'
import type { TemplateFunction, Value } from '../value.ts'
import { isEmpty, isNil } from './convert.ts'

export const comparisonFunctions: Readonly<Record<string, TemplateFunction>> = {
  default: variadic(['any'], 'any', (fallback, ...values) => (values.length === 0 || isEmpty(values[0]) ? fallback : values[0])),
  empty: goFunction(['any'], isEmpty),
  coalesce: variadic([], 'any', (...values) => values.find((value) => !isEmpty(value)) ?? null),
  all: variadic([], 'any', (...values) => !values.some(isEmpty)),
  any: variadic([], 'any', (...values) => values.some((value) => !isEmpty(value))),
  ternary: goFunction(['any', 'any', 'bool'], (yes, no, test) => (test ? yes : no)),
  fail: goFunction(['string'], (message) => {
    throw new Error(message)
  }),
  typeOf: goFunction(['any'], typeName),
  kindOf: goFunction(['any'], kindName),
  typeIs: goFunction(['string', 'any'], (name, value) => name === typeName(value)),
  kindIs: goFunction(['string', 'any'], (name, value) => name === kindName(value)),
  typeIsLike: goFunction(['string', 'any'], (name, value) => name === typeName(value) || `*${name}` === typeName(value)),
  deepEqual: goFunction(['any', 'any'], deepEqual),
}

export function deepEqual(a: Value, b: Value): boolean {
  if (isNil(a) || isNil(b)) return isNil(a) && isNil(b)
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, index) => deepEqual(item, b[index]))
  if (a instanceof GoStruct && b instanceof GoStruct) return a.typeName === b.typeName && a.identity === b.identity
  if (!isMap(a) || !isMap(b)) return a === b
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && deepEqual(a[key], b[key]))
}
