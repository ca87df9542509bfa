/**
 * Provides API objects as values of CEL expressions. The schema determines which numbers are `int` or `double`, which strings are timestamps,
 * and the names of properties. Views read the object itself, without a copy. Upstream: apiserver/pkg/cel/common, v0.36.
 */
import { isNumeric, isInt64, writeJSON } from '../json-text.ts'
import type { JSONSchema } from '../schema.ts'
import { isKeyword } from './identifier.ts'
import { durationOf, timestampOf } from './library/time.ts'
import { bool, dyn, int, listOf, mapOf, string, type Type } from './type.ts'
import { CelList, CelMap, EvaluationError, type ListKind, Opaque, type Value } from './value.ts'

/** Type of the values of a schema in expressions, and the conversion of these values from JSON. */
export interface SchemaView {
  readonly type: Type
  readonly view: (raw: unknown) => Value
}

const views = new WeakMap<JSONSchema, SchemaView>()

/**
 * Returns the view of a schema; `undefined` for a schema with neither `type` nor `x-kubernetes-int-or-string`, and for an array without
 * `items`. Expressions cannot read a property with such a schema; items of lists and values of maps get `unknownView` instead.
 */
export function schemaView(schema: JSONSchema): SchemaView | undefined {
  const cached = views.get(schema)
  if (cached) return cached
  const created = viewOf(schema)
  if (created) views.set(schema, created)
  return created
}

/** View of a whole API object, whose schema need not declare apiVersion, kind and metadata. */
export const objectSchemaView = (schema: JSONSchema): SchemaView => objectView(withTypeAndMetadata(schema))

function viewOf(schema: JSONSchema): SchemaView | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    return nullableView(dyn, (raw) => (typeof raw === 'string' ? raw : integer(raw, 'int-or-string')))
  }
  switch (schema.type) {
    case 'object':
      return containerView(schema)
    case 'array':
      return arrayView(schema)
    case 'string':
      return stringView(schema.format)
    case 'boolean':
      return nullableView(bool, (raw) => (typeof raw === 'boolean' ? raw : typeMismatch(raw, 'boolean')))
    case 'number':
      return nullableView({ kind: 'double' }, (raw) => (isNumeric(raw) ? Number(raw) : typeMismatch(raw, 'number')))
    case 'integer':
      return nullableView(int, (raw) => integer(raw, 'integer'))
    case undefined:
      return undefined
  }
}

/**
 * Returns a view in which null and `undefined` are null. Fields that are not nullable need no check, because decoding drops their nulls or
 * replaces them by the default.
 */
const nullableView = (type: Type, view: (raw: unknown) => Value): SchemaView => ({
  type,
  view: (raw) => (raw === null || raw === undefined ? null : view(raw)),
})

function containerView(schema: JSONSchema): SchemaView {
  if (schema['x-kubernetes-embedded-resource']) return objectView(withTypeAndMetadata(schema))
  const { properties, additionalProperties } = schema
  if (properties || typeof additionalProperties !== 'object') return objectView(schema)
  const values = schemaView(additionalProperties)
  if (!values) return nullableView(mapOf(string, dyn), (raw) => new ObjectValue(record(raw), () => unknownView, false))
  return nullableView(mapOf(string, values.type), (raw) => new ObjectValue(record(raw), () => values, false))
}

function objectView({ properties = {} }: JSONSchema): SchemaView {
  const byName = (name: string): SchemaView | undefined =>
    Object.hasOwn(properties, name) ? schemaView(properties[name]!) : undefined
  const field = (name: string) => {
    const property = propertyName(name)
    return property === undefined ? undefined : byName(property)?.type
  }
  return nullableView({ kind: 'object', field }, (raw) => new ObjectValue(record(raw), byName, true))
}

/**
 * Adds the fields that rules can read in every API object, even if the schema does not declare them: apiVersion, kind, and of metadata only
 * name and generateName.
 */
const withTypeAndMetadata = (schema: JSONSchema): JSONSchema => ({
  ...schema,
  properties: {
    ...schema.properties,
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object', properties: { name: { type: 'string' }, generateName: { type: 'string' } } },
  },
})

function arrayView(schema: JSONSchema): SchemaView | undefined {
  const items = schema.items && schemaView(schema.items)
  if (!items) return schema.items ? nullableView(listOf(dyn), (raw) => new CelList(array(raw), unknownView.view)) : undefined
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const kind: ListKind = listType === 'set' ? 'set' : listType === 'map' ? { keys: keys.map(expressionName) } : 'atomic'
  return nullableView(listOf(items.type), (raw) => new CelList(array(raw), items.view, kind))
}

function stringView(format: string | undefined): SchemaView {
  switch (format ?? '') {
    case 'byte':
      return nullableView({ kind: 'bytes' }, (raw) => bytesOf(textOf(raw)))
    case 'duration':
      return nullableView({ kind: 'duration' }, (raw) => durationOf(textOf(raw)))
    case 'date':
      return nullableView({ kind: 'timestamp' }, (raw) => timestampOf(`${textOf(raw)}T00:00:00Z`))
    case 'date-time':
      return nullableView({ kind: 'timestamp' }, (raw) => timestampOf(textOf(raw)))
    default:
      return nullableView(string, textOf)
  }
}

/** Throws the error for a value that does not have the type of its schema. Ratcheting accepts such a value while it is unchanged. */
function typeMismatch(raw: unknown, type: string): never {
  const actualType = Array.isArray(raw) ? 'array' : isNumeric(raw) ? 'number' : typeof raw
  throw new EvaluationError(`invalid data, expected ${type} to match the provided schema, got ${actualType}`)
}

const textOf = (raw: unknown): string => (typeof raw === 'string' ? raw : typeMismatch(raw, 'string'))
const integer = (raw: unknown, type: string): bigint => (isInt64(raw) ? BigInt(raw) : typeMismatch(raw, type))

function bytesOf(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    throw new EvaluationError('byte formatted string is not valid base64')
  }
}

function record(raw: unknown): Readonly<Record<string, unknown>> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw)
    ? (raw as Record<string, unknown>)
    : typeMismatch(raw, 'object')
}

const array = (raw: unknown): readonly unknown[] => (Array.isArray(raw) ? raw : typeMismatch(raw, 'array'))

/**
 * An object or map of the API. Two values with the same `raw` object are equal, which saves a comparison of their content. With
 * `hasDeclaredNames`, only members with a view exist, and expressions use their escaped names (`expressionName`).
 */
export class ObjectValue extends CelMap {
  readonly raw: Readonly<Record<string, unknown>>
  readonly #viewOf: (property: string) => SchemaView | undefined
  readonly #hasDeclaredNames: boolean

  constructor(
    raw: Readonly<Record<string, unknown>>,
    view: (property: string) => SchemaView | undefined,
    hasDeclaredNames: boolean,
  ) {
    super()
    this.raw = raw
    this.#viewOf = view
    this.#hasDeclaredNames = hasDeclaredNames
  }

  get size(): number {
    return this.#hasDeclaredNames ? this.keys().length : Object.keys(this.raw).length
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined
    const property = this.#hasDeclaredNames ? propertyName(key) : key
    if (property === undefined || !Object.hasOwn(this.raw, property)) return undefined
    return this.#viewOf(property)?.view(this.raw[property])
  }

  keys(): readonly Value[] {
    const names = Object.keys(this.raw)
    return this.#hasDeclaredNames ? names.filter((name) => this.#viewOf(name)).map(expressionName) : names
  }
}

/** A value of a schema for which `schemaView` returns `undefined`: it can only be compared. */
class Unknown extends Opaque {
  readonly type = 'kubernetes.Unknown'
  readonly text: string
  constructor(raw: unknown) {
    super()
    this.text = writeJSON(raw)
  }
  equals(other: Opaque): boolean {
    return other instanceof Unknown && other.text === this.text
  }
}
/** View of values of a schema for which `schemaView` returns `undefined`. */
export const unknownView: SchemaView = nullableView(dyn, (raw) => new Unknown(raw))

/** View of values without a schema: safe integers and bigints are `int`, other numbers `double`. */
export const dynamicView: SchemaView = nullableView(dyn, (raw) => {
  if (Array.isArray(raw)) return new CelList(raw, dynamicView.view)
  if (typeof raw === 'object') return new ObjectValue(record(raw), () => dynamicView, false)
  return typeof raw === 'number' && Number.isSafeInteger(raw) ? BigInt(raw) : (raw as Value)
})

const Escapes: { readonly [name: string]: string } = { underscores: '__', dot: '.', dash: '-', slash: '/' }

/** Returns the name of a property in expressions. Escapes `__`, `.`, `-`, `/` (`a-b` is `a__dash__b`) and keywords (`in` is `__in__`). */
export function expressionName(property: string): string {
  if (isKeyword(property)) return `__${property}__`
  return property.replaceAll(/__|[.\-/]/g, (part) => `__${Object.keys(Escapes).find((name) => Escapes[name] === part)}__`)
}

/** Returns the property of a name in an expression; `undefined` for an invalid escape, and for a keyword that is not escaped. */
function propertyName(name: string): string | undefined {
  if (!name.includes('__')) return isKeyword(name) ? undefined : name
  const keyword = /^__(\w+?)__$/.exec(name)?.[1]
  if (keyword !== undefined && isKeyword(keyword)) return keyword
  let isKnown = true
  const property = name.replaceAll(/__([a-z]+)__/g, (_all, word: string) => {
    if (!Object.hasOwn(Escapes, word)) isKnown = false
    return Escapes[word] ?? ''
  })
  return isKnown && expressionName(property) === name ? property : undefined
}
