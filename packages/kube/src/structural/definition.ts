/**
 * Validates the schema of a CustomResourceDefinition: it must be structural, and its list types and defaults must be valid.
 * Upstream: apiextensions-apiserver, v0.36. CEL rules are validated elsewhere (`cel/definition.ts`).
 */
import { asWork, atOnce } from '../clock.ts'
import { appendAll, repeats } from '../lists.ts'
import type { FieldError } from '../errors.ts'
import { forbidden, invalid, notSupported, required } from '../errors.ts'
import { draft, equal } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { compileEmbedded } from './embedded.ts'
import { compilePattern } from './pattern.ts'
import { compilePrune } from './prune.ts'
import { compileValidate } from './validate.ts'

/** A schema from a client, which may contain keywords that are not allowed. */
type GivenSchema = JSONSchema & { readonly [keyword: string]: unknown }

/**
 * Validates the schema of a CustomResourceDefinition. `path` is the path of the schema, such as `spec.versions[0].schema.openAPIV3Schema`.
 * Later checks rely on earlier checks, so only the errors of the first failing check are returned.
 */
export function validateStructural(schema: JSONSchema, path: string): FieldError[] {
  const checks = [keywordErrors, structureErrors, defaultErrors]
  for (const check of checks) {
    const errors = check(schema, path)
    if (errors.length > 0) return errors
  }
  return []
}

/**
 * Returns errors of schemas below `allOf`, `anyOf`, `oneOf` and `not`, at every level of a schema: they may not declare types, defaults or
 * descriptions, for example, and their patterns must be valid.
 */
export const nestedSchemaErrors = (schema: JSONSchema, path: string): FieldError[] =>
  [...schemasIn(schema, path, false)].flatMap(([inner, innerPath]) => junctorErrors(inner, innerPath))

/** Yields a schema and the schemas inside of it, with their paths. `throughJunctors`: also those in `allOf`, `anyOf`, `oneOf` and `not`. */
function* schemasIn(schema: JSONSchema, path: string, throughJunctors: boolean): Generator<readonly [GivenSchema, string]> {
  yield [schema as GivenSchema, path]
  for (const [inner, innerPath] of membersOf(schema, path)) yield* schemasIn(inner, innerPath, throughJunctors)
  if (throughJunctors)
    for (const [inner, innerPath] of junctorsOf(schema, path)) yield* schemasIn(inner, innerPath, throughJunctors)
}

function membersOf({ properties, additionalProperties, items }: JSONSchema, path: string): [JSONSchema, string][] {
  const members = Object.entries(properties ?? {}).map(([name, property]): [JSONSchema, string] => [
    property,
    `${path}.properties[${name}]`,
  ])
  if (typeof additionalProperties === 'object') members.push([additionalProperties, `${path}.additionalProperties`])
  if (items && !Array.isArray(items)) members.push([items, `${path}.items`])
  return members
}

function junctorsOf({ allOf = [], anyOf = [], oneOf = [], not }: JSONSchema, path: string): [JSONSchema, string][] {
  const listed = Object.entries({ allOf, anyOf, oneOf }).flatMap(([name, schemas]) =>
    schemas.map((schema, index): [JSONSchema, string] => [schema, `${path}.${name}[${index}]`]),
  )
  return not ? [...listed, [not, `${path}.not`]] : listed
}

// Keywords

const UnsupportedKeywords = ['$ref', '$schema', 'id', 'patternProperties', 'additionalItems', 'definitions', 'dependencies']

function keywordErrors(root: JSONSchema, rootPath: string): FieldError[] {
  const errors: FieldError[] = []
  for (const [schema, path] of schemasIn(root, rootPath, true)) {
    for (const keyword of UnsupportedKeywords) {
      if (schema[keyword] !== undefined) {
        errors.push(
          forbidden(
            `${path}.${keyword.replace('$schema', 'schema')}`,
            `${keyword.replace('$schema', 'schema')} is not supported`,
          ),
        )
      }
    }
    const { additionalProperties = true, properties = {} } = schema
    if (additionalProperties !== true && Object.keys(properties).length > 0) {
      errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'))
    }
    if (schema.uniqueItems) {
      errors.push(
        forbidden(`${path}.uniqueItems`, 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'),
      )
    }
    if (Array.isArray(schema.items)) errors.push(forbidden(`${path}.items`, 'items must be a schema object and not an array'))
    appendAll(errors, extensionErrors(schema, path))
    if ((schema.type as string | undefined) === 'null') {
      errors.push(forbidden(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'))
    }
  }
  return errors
}

/** Rejects defaults in `apiVersion`, `kind` and `metadata` of the root. */
function metadataDefaultErrors({ properties = {} }: JSONSchema, rootPath: string): FieldError[] {
  const errors: FieldError[] = []
  for (const property of ['apiVersion', 'kind', 'metadata']) {
    const schema = Object.hasOwn(properties, property) ? properties[property] : undefined
    if (!schema) continue
    for (const [inner, path] of schemasIn(schema, `${rootPath}.properties[${property}]`, false)) {
      if (inner.default !== undefined && inner.default !== null)
        errors.push(forbidden(`${path}.default`, `must not be set in top-level ${property}`))
    }
  }
  return errors
}

const Types = ['array', 'boolean', 'integer', 'number', 'object', 'string']

function extensionErrors(schema: GivenSchema, path: string): FieldError[] {
  const errors: FieldError[] = []
  const mapType = schema['x-kubernetes-map-type']
  if (schema.type !== undefined && !Types.includes(schema.type)) errors.push(notSupported(`${path}.type`, schema.type, Types))
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'))
  }
  if (mapType !== undefined) {
    appendAll(errors, typeErrors(schema, path, 'object', 'x-kubernetes-map-type'))
    if (mapType !== 'atomic' && mapType !== 'granular') {
      errors.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']))
    }
  }
  return [...errors, ...listTypeErrors(schema, path)]
}

function typeErrors({ type }: JSONSchema, path: string, expected: string, keyword: string): FieldError[] {
  if (type === expected) return []
  const text = `must be ${expected} if ${keyword} is specified`
  return [type === undefined ? required(`${path}.type`, text) : invalid(`${path}.type`, type, text)]
}

function listTypeErrors(schema: GivenSchema, path: string): FieldError[] {
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const errors: FieldError[] = []
  if (keys.length > 0 && listType !== 'map') {
    const text = 'must be map if x-kubernetes-list-map-keys is non-empty'
    const field = `${path}.x-kubernetes-list-type`
    errors.push(listType === undefined ? required(field, text) : invalid(field, listType, text))
  }
  if (listType === undefined) return errors
  appendAll(errors, typeErrors(schema, path, 'array', 'x-kubernetes-list-type'))
  switch (listType) {
    case 'atomic':
      return errors
    case 'set':
      return [...errors, ...setItemErrors(schema.items, `${path}.items`)]
    case 'map':
      return [...errors, ...mapItemErrors(schema.items, keys, path)]
    default:
      return [...errors, notSupported(`${path}.x-kubernetes-list-type`, listType, ['atomic', 'set', 'map'])]
  }
}

/** Returns errors of the items of a set. Items are identified by their value, so each item must be atomic. */
function setItemErrors(items: JSONSchema | undefined, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (items?.nullable) errors.push(forbidden(`${path}.nullable`, 'cannot be nullable when x-kubernetes-list-type is set'))
  const text = 'must be atomic as item of a list with x-kubernetes-list-type=set'
  if (items?.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    errors.push(invalid(`${path}.x-kubernetes-map-type`, items['x-kubernetes-map-type'], text))
  }
  if (items?.type === 'array' && (items['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic') {
    errors.push(invalid(`${path}.x-kubernetes-list-type`, items['x-kubernetes-list-type'], text))
  }
  return errors
}

function mapItemErrors(items: JSONSchema | undefined, keys: readonly string[], path: string): FieldError[] {
  const keysPath = `${path}.x-kubernetes-list-map-keys`
  const errors: FieldError[] = []
  if (keys.length === 0) errors.push(required(keysPath, 'must not be empty if x-kubernetes-list-type is map'))
  if (!items) return [...errors, required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map')]
  if (items.nullable) errors.push(forbidden(`${path}.items.nullable`, 'cannot be nullable when x-kubernetes-list-type is map'))
  if (items.type !== 'object') {
    errors.push(invalid(`${path}.items.type`, items.type, "must be object if parent array's x-kubernetes-list-type is map"))
    return errors
  }
  const repeated = repeats(keys)
  const mandatory = new Set(items.required)
  for (const [index, key] of keys.entries()) {
    const property = items.properties && Object.hasOwn(items.properties, key) ? items.properties[key] : undefined
    const propertyPath = `${path}.items.properties[${key}]`
    if (repeated[index]) errors.push(invalid(keysPath, keys, 'must not contain duplicate entries'))
    if (!property) {
      errors.push(invalid(keysPath, keys, 'entries must all be names of item properties'))
      continue
    }
    if (property.type === 'array' || property.type === 'object') {
      errors.push(
        invalid(`${propertyPath}.type`, property.type, "must be a scalar type if parent array's x-kubernetes-list-type is map"),
      )
    }
    if (property.default === undefined && !mandatory.has(key)) {
      const text = 'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property'
      errors.push(required(`${propertyPath}.default`, text))
    }
    if (property.nullable) {
      errors.push(
        forbidden(`${propertyPath}.nullable`, 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable'),
      )
    }
  }
  return errors
}

// Structure

type Level = 'root' | 'item' | 'field'

function structureErrors(root: JSONSchema, path: string): FieldError[] {
  const errors = levelErrors(root, 'root', path)
  // Sorted by text, as upstream sorts them.
  const textOf = (error: FieldError) => `${error.field}: ${error.text}`
  errors.sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1))
  return [...errors, ...metadataDefaultErrors(root, path)]
}

const NoType: { readonly [L in Level]: string } = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function levelErrors(schema: JSONSchema, level: Level, path: string): FieldError[] {
  const { type, properties = {}, additionalProperties, items, pattern } = schema
  const intOrString = schema['x-kubernetes-int-or-string'] === true
  const preserve = schema['x-kubernetes-preserve-unknown-fields'] === true
  const embedded = schema['x-kubernetes-embedded-resource'] === true
  const isResource = level === 'root' || embedded
  const errors: FieldError[] = []

  if (type === 'array' && !items) errors.push(required(`${path}.items`, 'must be specified'))
  if (items) appendAll(errors, levelErrors(items, 'item', `${path}.items`))
  for (const [name, property] of Object.entries(properties)) {
    const propertyPath = `${path}.properties[${name}]`
    appendAll(errors, levelErrors(property, 'field', propertyPath))
    if (isResource && (name === 'kind' || name === 'apiVersion') && property.type !== 'string') {
      errors.push(invalid(`${propertyPath}.type`, property.type ?? '', 'must be string'))
    }
    if (isResource && name === 'metadata') appendAll(errors, metadataErrors(property, level, propertyPath))
  }
  if (additionalProperties !== undefined) {
    if (level === 'root') errors.push(forbidden(`${path}.additionalProperties`, 'must not be used at the root'))
    if (embedded) {
      errors.push(forbidden(`${path}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set'))
    }
    if (typeof additionalProperties === 'object') {
      appendAll(errors, levelErrors(additionalProperties, 'field', `${path}.additionalProperties`))
    }
  }

  if (intOrString && preserve) {
    errors.push(
      invalid(`${path}.x-kubernetes-preserve-unknown-fields`, true, 'must be false if x-kubernetes-int-or-string is true'),
    )
  }
  if (intOrString && embedded) {
    errors.push(invalid(`${path}.x-kubernetes-embedded-resource`, true, 'must be false if x-kubernetes-int-or-string is true'))
  }
  if (embedded && type !== 'object') {
    const text = 'must be object if x-kubernetes-embedded-resource is true'
    errors.push(type === undefined ? required(`${path}.type`, text) : invalid(`${path}.type`, type, text))
  } else if (type === undefined && !intOrString && !preserve) errors.push(required(`${path}.type`, NoType[level]))
  if (level === 'root' && type !== undefined && type !== 'object') {
    errors.push(invalid(`${path}.type`, type, 'must be object at the root'))
  }
  if (embedded && !preserve && Object.keys(properties).length === 0) {
    const text = 'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields'
    errors.push(required(`${path}.properties`, text))
  }
  appendAll(errors, patternErrors(pattern, path), junctorErrors(schema, path))
  return errors
}

function metadataErrors(metadata: JSONSchema, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (metadata.type !== 'object') errors.push(invalid(`${path}.type`, metadata.type ?? '', 'must be object'))
  if (level !== 'root') return errors
  const { type: _type, default: _default, properties = {}, ...otherKeywords } = metadata
  const hasOnlyNames = Object.keys(properties).every((name) => name === 'name' || name === 'generateName')
  if (!hasOnlyNames || Object.keys(otherKeywords).length > 0) {
    const text = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
    errors.push(forbidden(path, text))
  }
  return errors
}

function patternErrors(pattern: string | undefined, path: string): FieldError[] {
  const problem = pattern ? compilePattern(pattern).error : undefined
  return problem === undefined
    ? []
    : [invalid(`${path}.pattern`, pattern, `must be a valid regular expression, but isn't: ${problem}`)]
}

/**
 * Returns errors of the schemas below a junctor (`allOf`, `anyOf`, `oneOf`, `not`): the keywords in `NestedKeywords`, properties with the
 * name `metadata`, and invalid patterns. An `anyOf` of integer and string is allowed, also in the first schema of `allOf`.
 */
function junctorErrors(schema: JSONSchema, path: string): FieldError[] {
  return junctorsOf(schema, path)
    .filter(([, innerPath]) => !(isIntOrString(schema.anyOf) && innerPath.startsWith(`${path}.anyOf[`)))
    .flatMap(([inner, innerPath]) =>
      nestedErrors(inner, innerPath, isIntOrString(inner.anyOf) && innerPath === `${path}.allOf[0]`),
    )
}

/** Reports whether an `anyOf` has the only form in which a junctor may declare types. */
const isIntOrString = (anyOf: readonly JSONSchema[] | undefined): boolean =>
  equal(anyOf, [{ type: 'integer' }, { type: 'string' }])

const NestedKeywords: readonly (readonly [keyword: keyof JSONSchema, text: string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

function nestedErrors(schema: JSONSchema, path: string, allowsIntOrString = false): FieldError[] {
  const errors: FieldError[] = []
  for (const [keyword, text] of NestedKeywords) {
    const value = schema[keyword]
    const isEmpty = value === undefined || value === '' || value === false || (Array.isArray(value) && value.length === 0)
    if (!isEmpty) errors.push(forbidden(`${path}.${keyword}`, text))
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (name === 'metadata') errors.push(forbidden(`${path}.properties[metadata]`, 'must not be specified in a nested context'))
    appendAll(errors, nestedErrors(property, `${path}.properties[${name}]`))
  }
  if (schema.items) appendAll(errors, nestedErrors(schema.items, `${path}.items`))
  for (const [inner, innerPath] of junctorsOf(schema, path)) {
    if (!allowsIntOrString || !innerPath.startsWith(`${path}.anyOf[`)) appendAll(errors, nestedErrors(inner, innerPath))
  }
  return [...errors, ...patternErrors(schema.pattern, path)]
}

// Defaults

function defaultErrors(root: JSONSchema, rootPath: string): FieldError[] {
  const errors: FieldError[] = []
  for (const [schema, path] of schemasIn(root, rootPath, false)) {
    // Null is ignored as the default of a field that is not nullable.
    if (schema.default === undefined || (schema.default === null && !schema.nullable)) continue
    const defaultPath = `${path}.default`
    const fields: string[] = []
    atOnce(asWork(() => compilePrune(schema)?.(draft(schema.default), '', { fields, metadata: fields })))
    if (fields.length > 0) errors.push(invalid(defaultPath, schema.default, 'must not have unknown fields'))
    const problems: FieldError[] = []
    compileEmbedded(schema)?.(schema.default, '', problems)
    if (problems.length === 0) compileValidate(schema)(schema.default, '', problems, undefined)
    for (const error of problems) errors.push({ ...error, field: fieldBelow(defaultPath, error.field) })
  }
  return errors
}

/** Returns the field of an error in a default: `path` is the path of the default, `field` is relative to it. */
function fieldBelow(path: string, field: string): string {
  if (field === '<nil>') return path
  return field.startsWith('[') || field.startsWith('.') ? path + field : `${path}.${field}`
}
