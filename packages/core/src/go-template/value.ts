/**
 * Values of a template. JSON data has Go's types: a JavaScript number is a float64, as encoding/json decodes it. An int is a bigint, which
 * JSON data does not contain. `null` is a nil, for example in a map or list; `undefined` means no value, for example of a missing key.
 */
export type Value = string | number | bigint | boolean | null | undefined | Value[] | { [key: string]: Value } | GoStruct

/** A Go struct or a pointer to one, such as the result of sprig's `semver`. */
export class GoStruct {
  readonly typeName: string
  readonly methods: ReadonlyMap<string, TemplateFunction>
  /** Text in the output of a template. */
  readonly text: string
  /** Equal for two values of one type whose fields are equal. */
  readonly identity: string

  constructor(init: { typeName: string; text: string; identity: string; methods: [string, TemplateFunction][] }) {
    this.typeName = init.typeName
    this.text = init.text
    this.identity = init.identity
    this.methods = new Map(init.methods)
  }
}

export type ParameterType = 'any' | 'string' | 'int' | 'float64' | 'bool' | 'list' | 'map'

/** A function for templates. Its parameters have Go types, against which calls are checked. */
export interface TemplateFunction {
  readonly parameters: readonly ParameterType[]
  /** Type of any number of further arguments. */
  readonly rest?: ParameterType
  call(...args: Value[]): Value
}

type Static = { any: Value; string: string; int: bigint; float64: number; bool: boolean; list: Value[]; map: GoMap }
type Arguments<P extends readonly ParameterType[]> = { [K in keyof P]: Static[P[K]] }

/** Declares a template function; its argument types follow from the parameters. */
export const goFunction = <const P extends readonly ParameterType[]>(
  parameters: P,
  call: (...args: Arguments<P>) => Value,
): TemplateFunction => ({ parameters, call: call as never })

/** Declares a template function that accepts, after its parameters, any number of arguments of type `rest`. */
export const variadic = <const P extends readonly ParameterType[], R extends ParameterType>(
  parameters: P,
  rest: R,
  call: (...args: [...Arguments<P>, ...Static[R][]]) => Value,
): TemplateFunction => ({ parameters, rest, call: call as never })

export type GoMap = { [key: string]: Value }

export const isMap = (value: Value): value is GoMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof GoStruct)

/** Makes a map from entries; supports keys such as `__proto__`. */
export const mapOf = (entries: Iterable<readonly [string, Value]>): GoMap => Object.fromEntries(entries)

export const has = (map: GoMap, key: string): boolean => Object.hasOwn(map, key)

export const sortedKeys = (map: GoMap): string[] => Object.keys(map).sort()

/** Returns the type name that Go uses in messages. */
export function typeName(value: Value): string {
  if (value === null || value === undefined) return '<nil>'
  if (Array.isArray(value)) return '[]interface {}'
  if (value instanceof GoStruct) return value.typeName
  if (isMap(value)) return 'map[string]interface {}'
  return BasicTypes[typeof value]!
}

const BasicTypes: Readonly<Record<string, string>> = { string: 'string', number: 'float64', bigint: 'int', boolean: 'bool' }

/** Go's reflect kind of a value. */
export function kindName(value: Value): string {
  if (value === null || value === undefined) return 'invalid'
  if (Array.isArray(value)) return 'slice'
  if (value instanceof GoStruct) return value.typeName.startsWith('*') ? 'ptr' : 'struct'
  return isMap(value) ? 'map' : typeName(value)
}

/** Whether `if` takes the branch. False for empty strings and collections, zero, false and nil. */
export function truth(value: Value): boolean {
  if (value === null || value === undefined) return false
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof GoStruct) return true
  return isMap(value) ? Object.keys(value).length > 0 : Boolean(value) || Number.isNaN(value)
}

export const byteLength = (text: string): number => Buffer.byteLength(text)

/**
 * Returns the text from the byte offset `from` to before the byte offset `to`, as Go's `text[from:to]`, with two differences: an offset
 * beyond the end counts as the end, and bytes that are only part of a character become U+FFFD.
 */
export function byteSlice(text: string, from: number, to = Number.POSITIVE_INFINITY): string {
  const bytes = Buffer.from(text)
  return bytes.subarray(from, Math.min(to, bytes.length)).toString()
}

/** Converts an integer to an int64, with wraparound on overflow. */
export const toInt = (value: number | bigint): bigint => BigInt.asIntN(64, BigInt(value))
