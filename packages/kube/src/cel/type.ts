/** Types of CEL expressions, which the compiler checks. `dyn` is a type that is known only at run time. */
import { CelList, CelMap, Duration, Opaque, Optional, Timestamp, TypeValue, Uint, type Value } from './value.ts'

export type Type =
  /** `any` is the type of a value that is declared without a more precise type: expressions may compare it, but not iterate over it. */
  | { readonly kind: 'dyn'; readonly shown?: 'any' }
  | {
      readonly kind: 'bool' | 'int' | 'uint' | 'double' | 'string' | 'bytes' | 'null' | 'timestamp' | 'duration' | 'type'
    }
  | { readonly kind: 'list'; readonly item: Type }
  | { readonly kind: 'map'; readonly key: Type; readonly value: Type }
  | { readonly kind: 'optional'; readonly of: Type }
  /** An object with declared properties, by their names in expressions. */
  | { readonly kind: 'object'; readonly name?: string; field(name: string): Type | undefined }
  | { readonly kind: 'opaque'; readonly name: string }
  /** A type parameter of a signature, such as `T`. */
  | { readonly kind: 'parameter'; readonly name: string }

export const dyn: Type = { kind: 'dyn' }
export const any: Type = { kind: 'dyn', shown: 'any' }
export const bool: Type = { kind: 'bool' }
export const int: Type = { kind: 'int' }
export const string: Type = { kind: 'string' }
export const listOf = (item: Type): Type => ({ kind: 'list', item })
export const mapOf = (key: Type, value: Type): Type => ({ kind: 'map', key, value })
export const optionalOf = (of: Type): Type => ({ kind: 'optional', of })

export const isAny = (type: Type): boolean => type.kind === 'dyn' && type.shown === 'any'

/** Formats a type as upstream does in messages. */
export function typeText(type: Type): string {
  switch (type.kind) {
    case 'list':
      return `list(${typeText(type.item)})`
    case 'map':
      return `map(${typeText(type.key)}, ${typeText(type.value)})`
    case 'optional':
      return `optional_type(${typeText(type.of)})`
    case 'timestamp':
      return 'google.protobuf.Timestamp'
    case 'duration':
      return 'google.protobuf.Duration'
    case 'opaque':
    case 'parameter':
      return type.name
    case 'dyn':
      return type.shown ?? type.kind
    case 'object':
      return type.name ?? type.kind
    case 'bool':
    case 'int':
    case 'uint':
    case 'double':
    case 'string':
    case 'bytes':
    case 'null':
    case 'type':
      return type.kind
  }
}

/** Types to which the type parameters of a signature are bound in one call. */
export type Bindings = Map<string, Type>

/**
 * Reports whether a value of type `actual` can be used where `required` is expected. Adds to `bindings` the types of type parameters in
 * `required`. A type that is known only at run time fits, because its values are checked at run time.
 */
export function isAssignable(required: Type, actual: Type, bindings: Bindings): boolean {
  if (required.kind === 'parameter') {
    const bound = bindings.get(required.name)
    if (bound === undefined || bound.kind === 'dyn' || (bound.kind === 'null' && mayBeNull(actual))) {
      bindings.set(required.name, actual)
      return true
    }
    return isAssignable(bound, actual, bindings)
  }
  if (required.kind === 'dyn' || actual.kind === 'dyn') return true
  if (required.kind === 'null' || actual.kind === 'null') return mayBeNull(required) && mayBeNull(actual)
  if (required.kind !== actual.kind) return false
  if (required.kind === 'list') return isAssignable(required.item, (actual as typeof required).item, bindings)
  if (required.kind === 'optional') return isAssignable(required.of, (actual as typeof required).of, bindings)
  if (required.kind === 'opaque') return required.name === (actual as typeof required).name
  if (required.kind !== 'map') return true
  const { key, value } = actual as typeof required
  return isAssignable(required.key, key, bindings) && isAssignable(required.value, value, bindings)
}

/** Upstream's type check assumes that numbers, booleans, strings, bytes, lists and maps are not null, even if their schema is nullable. */
const mayBeNull = ({ kind }: Type): boolean =>
  kind === 'null' || kind === 'object' || kind === 'opaque' || kind === 'optional' || kind === 'timestamp' || kind === 'duration'

/** Replaces the type parameters in `type` by the types that they are bound to, unbound parameters by `dyn`. */
export function substitute(type: Type, bindings: Bindings): Type {
  if (type.kind === 'parameter') return bindings.get(type.name) ?? dyn
  if (type.kind === 'list') return listOf(substitute(type.item, bindings))
  if (type.kind === 'optional') return optionalOf(substitute(type.of, bindings))
  if (type.kind === 'map') return mapOf(substitute(type.key, bindings), substitute(type.value, bindings))
  return type
}

/** Reports whether the compiler knows the type of the values: `dyn` is known only at run time, and null is a value of several types. */
export const isKnown = ({ kind }: Type): boolean => kind !== 'dyn' && kind !== 'null'

/** Reports whether a value has the type. Items of lists, entries of maps, fields of objects and values of optionals are not checked. */
export function accepts(type: Type, value: Value): boolean {
  switch (type.kind) {
    case 'dyn':
    case 'parameter':
      return true
    case 'bool':
      return typeof value === 'boolean'
    case 'int':
      return typeof value === 'bigint'
    case 'double':
      return typeof value === 'number'
    case 'string':
      return typeof value === 'string'
    case 'null':
      return value === null
    case 'bytes':
      return value instanceof Uint8Array
    case 'uint':
      return value instanceof Uint
    case 'timestamp':
      return value instanceof Timestamp
    case 'duration':
      return value instanceof Duration
    case 'type':
      return value instanceof TypeValue
    case 'list':
      return value instanceof CelList
    case 'map':
    case 'object':
      return value instanceof CelMap
    case 'optional':
      return value instanceof Optional
    case 'opaque':
      return value instanceof Opaque && value.type === type.name
  }
}
