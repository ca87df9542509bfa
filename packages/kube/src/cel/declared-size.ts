/**
 * Maximum sizes of values by their schema (`maxLength`, `maxItems`, `maxProperties`, `enum`, `format`). Where the schema sets no limit, the
 * size limit of a request applies.
 * Upstream: apiserver/pkg/cel/common/schemas.go and apiserver/pkg/cel/limits.go, v0.36.
 */
import { largest } from '../lists.ts'
import type { JSONSchema } from '../schema.ts'
import { expressionName } from './schema-view.ts'

/** Size limits of a value, and of the values inside it, by which the cost of an expression is estimated. */
export interface DeclaredSize {
  /**
   * Maximum length of a string or an int-or-string in bytes, of a list in items, or of a map in entries. 0 for keys of maps and for all other
   * values.
   */
  readonly max: number
  /** Minimum length of a value in JSON. */
  readonly serialized: number
  /** Declared fields, by their names in expressions. */
  readonly fields?: { readonly [name: string]: DeclaredSize }
  /** Members of an object that are not declared by name. */
  readonly others?: DeclaredSize
  /** Keys of a map. */
  readonly key?: DeclaredSize
  /** Items of a list, values of a map. */
  readonly item?: DeclaredSize
}

const MaxRequest = 3 * 1024 * 1024

/** Returns how many times a value can occur in one object if the schemas around it set no limits. Upstream: maxCardinality. */
export const mostOccurrences = ({ serialized }: DeclaredSize): number => Math.floor(MaxRequest / (serialized + 1))

const scalar = (serialized: number, max = 0): DeclaredSize => ({ max, serialized })
const MinStringLength = 2
const stringSize = scalar(MinStringLength)

/**
 * Returns the size of values of a schema; `undefined` when expressions cannot access them. `isRoot`: the schema describes a whole API
 * object.
 */
export function declaredSize(schema: JSONSchema, isRoot: boolean): DeclaredSize | undefined {
  if (schema['x-kubernetes-int-or-string']) return scalar(1, lengthLimit(schema))
  switch (schema.type) {
    case 'object':
      return sizeOfObject(schema, isRoot)
    case 'array':
      return sizeOfList(schema)
    case 'string':
      return sizeOfString(schema)
    case 'boolean':
      return scalar(4)
    case 'number':
    case 'integer':
      return scalar(1)
    case undefined:
      return undefined
  }
}

const sizeOfInner = (schema: JSONSchema) => declaredSize(schema, schema['x-kubernetes-embedded-resource'] === true)
/** Converts a limit of a schema to a number of at least 0. The limit may be negative or a bigint. */
const atLeastZero = (limit: number): number => Math.max(0, Number(limit))

function sizeOfList({ items, maxItems }: JSONSchema): DeclaredSize | undefined {
  const item = items && sizeOfInner(items)
  if (!item) return undefined
  const max = maxItems === undefined ? Math.floor((MaxRequest - 2) / (item.serialized + 1)) : atLeastZero(maxItems)
  return { max, serialized: 2, item }
}

function sizeOfObject(schema: JSONSchema, isRoot: boolean): DeclaredSize | undefined {
  const { additionalProperties, maxProperties, required = [] } = schema
  if (typeof additionalProperties === 'object') {
    const item = sizeOfInner(additionalProperties)
    if (!item) return undefined
    // Besides the value, an entry has at least a key of two characters, two quotes, a colon and a comma.
    const max = maxProperties === undefined ? Math.floor((MaxRequest - 2) / (item.serialized + 6)) : atLeastZero(maxProperties)
    return { max, serialized: 2, key: stringSize, item }
  }
  const text: JSONSchema = { type: 'string' }
  const properties: { readonly [name: string]: JSONSchema } = {
    ...schema.properties,
    ...(isRoot
      ? { apiVersion: text, kind: text, metadata: { type: 'object', properties: { name: text, generateName: text } } }
      : {}),
  }
  const fields: { [name: string]: DeclaredSize } = {}
  let serialized = 2
  for (const [name, property] of Object.entries(properties)) {
    const size = sizeOfInner(property)
    if (!size) continue
    fields[expressionName(name)] = size
    if (required.includes(name) && property.default === undefined) serialized += name.length + size.serialized + 4
  }
  return { max: 0, serialized, fields }
}

function sizeOfString(schema: JSONSchema): DeclaredSize {
  const { format, maxLength, enum: values = [] } = schema
  switch (format) {
    case 'byte':
      return scalar(MinStringLength, maxLength === undefined ? MaxRequest - 2 : atLeastZero(maxLength))
    case 'duration':
      return scalar(3, 32)
    case 'date':
      return scalar(12, 12)
    case 'date-time':
      return scalar(21, 32)
    case undefined:
    default: {
      const longest = Math.max(0, largest(values.map((value) => (typeof value === 'string' ? value.length : 0))))
      return scalar(MinStringLength, maxLength === undefined && values.length > 0 ? longest : lengthLimit(schema))
    }
  }
}

/** Returns the maximum length of a string in bytes. As upstream, counts four bytes for each character that `maxLength` allows. */
const lengthLimit = ({ maxLength }: JSONSchema): number => (maxLength === undefined ? MaxRequest - 2 : atLeastZero(maxLength) * 4)
