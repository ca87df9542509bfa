/** Types of server-side apply, derived from schemas: which values are atomic, which are merged, and by which keys. */
import { isNumeric } from '../json-text.ts'
import type { JSONSchema } from '../schema.ts'
import { ObjectMetaSchema } from '../structural/object-meta.ts'

/** Type of a value. Most types allow one form of values: scalar, list or map. Some allow several. */
export interface Type {
  readonly scalar?: ScalarType
  readonly list?: ListType
  readonly map?: MapType
}

export type ScalarType = 'string' | 'numeric' | 'boolean' | 'untyped'

export interface ListType {
  /** Whether the list is atomic. Otherwise items are identified by `keys`, or by their values if `keys` is empty. */
  readonly atomic: boolean
  readonly keys: readonly string[]
  readonly element: Type
}

export interface MapType {
  readonly atomic: boolean
  readonly fields: ReadonlyMap<string, Field>
  /** Type of members that are not declared; absent when only declared members are allowed. */
  readonly element: Type | undefined
}

export interface Field {
  readonly type: Type
  readonly default?: unknown
}

const NoFields: ReadonlyMap<string, Field> = new Map()

/** Type that allows every value. Lists and maps are atomic. */
export const atomicType: Type = recursiveType((self) => ({
  scalar: 'untyped',
  list: { atomic: true, keys: [], element: self },
  map: { atomic: true, fields: NoFields, element: self },
}))

/** Type that allows every value. Maps are merged member by member, lists are atomic. */
export const deducedType: Type = recursiveType((self) => ({
  scalar: 'untyped',
  list: { atomic: true, keys: [], element: atomicType },
  map: { atomic: false, fields: NoFields, element: self },
}))

/** Creates a type that refers to itself. */
function recursiveType(define: (self: Type) => Type): Type {
  const self: Type = {}
  return Object.assign(self, define(self))
}

const types = new WeakMap<JSONSchema, Type>()

/** Returns the type of whole objects with this schema. Created once for each schema object. */
export function typeOfSchema(schema: JSONSchema): Type {
  let type = types.get(schema)
  if (!type) types.set(schema, (type = convert(schema, true)))
  return type
}

function convert(schema: JSONSchema, isResource: boolean): Type {
  if (schema['x-kubernetes-int-or-string']) return { scalar: 'untyped' }
  const preservesUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true
  switch (schema.type) {
    case 'string':
      return { scalar: 'string' }
    case 'boolean':
      return { scalar: 'boolean' }
    case 'integer':
    case 'number':
      return { scalar: 'numeric' }
    case 'array': {
      const listType = schema['x-kubernetes-list-type'] ?? 'atomic'
      const element = schema.items ? convert(schema.items, false) : deducedType
      return {
        list: {
          atomic: listType === 'atomic',
          keys: listType === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : [],
          element,
        },
      }
    }
    case 'object':
      return { map: convertMap(schema, preservesUnknown, isResource || schema['x-kubernetes-embedded-resource'] === true) }
    case undefined:
    default:
      return schema.properties || schema.additionalProperties
        ? { map: convertMap(schema, preservesUnknown, isResource) }
        : deducedType
  }
}

function convertMap(schema: JSONSchema, preservesUnknown: boolean, isResource: boolean): MapType {
  const fields = new Map<string, Field>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    // `x-capstan-zero` is the zero value of a field of a built-in kind. It identifies list items that omit the field, as a default does.
    const value = property.default ?? property['x-capstan-zero']
    fields.set(name, { type: convert(property, false), ...(value === undefined ? {} : { default: value }) })
  }
  if (isResource) {
    fields.set('apiVersion', { type: { scalar: 'string' } })
    fields.set('kind', { type: { scalar: 'string' } })
    fields.set('metadata', { type: metadataType })
  }
  const element = undeclaredMemberType(schema, preservesUnknown, fields.size > 0)
  return { atomic: schema['x-kubernetes-map-type'] === 'atomic', fields, element }
}

/** Returns the type of members that are not declared; `undefined` when only declared members are allowed. */
function undeclaredMemberType(schema: JSONSchema, preservesUnknown: boolean, hasFields: boolean): Type | undefined {
  const { additionalProperties } = schema
  if (preservesUnknown || additionalProperties === true) return deducedType
  if (typeof additionalProperties === 'object') return convert(additionalProperties, false)
  return hasFields ? undefined : atomicType
}

const metadataType: Type = convert(ObjectMetaSchema, false)

/** Returns a type with only the form that fits the value; the unchanged type if no form fits, or the value is null or absent. */
export function formsOf(type: Type, value: unknown): Type {
  if (typeof value === 'string' || isNumeric(value) || typeof value === 'boolean') {
    return type.scalar && (type.list || type.map) ? { scalar: type.scalar } : type
  }
  if (typeof value !== 'object' || value === null) return type
  if (Array.isArray(value)) return type.list && (type.scalar || type.map) ? { list: type.list } : type
  return type.map && (type.scalar || type.list) ? { map: type.map } : type
}

export const memberType = (map: MapType, name: string): Type | undefined => map.fields.get(name)?.type ?? map.element
