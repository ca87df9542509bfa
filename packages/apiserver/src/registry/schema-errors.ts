/**
 * What keeps the schema of a CustomResourceDefinition from being structural, or contradicts itself. Rules in CEL are looked at from
 * outside only: they are not compiled here.
 * Upstream: apiextensions-apiserver pkg/apiserver/schema and pkg/apis/apiextensions/validation, v0.36.
 */
import { type FieldError, forbidden, invalid, type JSONSchema, notSupported, required, structural } from '@capstan/kube'

/** `path` is where the schema stands in the definition. */
export function schemaErrors(schema: JSONSchema, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (schema.type !== undefined && schema.type !== 'object') {
    return [invalid(`${path}.type`, schema.type, 'must be object at the root')]
  }
  if (schema.type === undefined) errors.push(required(`${path}.type`, 'must not be empty at the root'))
  const metadata = schema.properties?.metadata
  if (metadata && !isPlainMetadata(metadata)) {
    errors.push(
      forbidden(
        `${path}.properties[metadata]`,
        'must not specify anything other than name and generateName, but metadata is implicitly specified',
      ),
    )
  }
  check(schema, path, errors)
  return errors
}

const isPlainMetadata = ({ type, properties = {}, description: _, ...others }: JSONSchema): boolean =>
  (type === undefined || type === 'object') &&
  Object.keys(others).length === 0 &&
  Object.keys(properties).every((name) => name === 'name' || name === 'generateName')

function check(schema: JSONSchema, path: string, errors: FieldError[]): void {
  const { properties, additionalProperties, items } = schema
  if ('$ref' in schema) errors.push(forbidden(`${path}.$ref`, '$ref is not supported'))
  if (schema.uniqueItems === true) {
    const why = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'
    errors.push(forbidden(`${path}.uniqueItems`, why))
  }
  if (properties && additionalProperties !== undefined && additionalProperties !== false) {
    errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'))
  }
  checkDefault(schema, path, errors)
  checkList(schema, path, errors)
  checkRules(schema, path, errors)
  for (const [name, property] of Object.entries(properties ?? {})) {
    checkTyped(property, `${path}.properties[${name}]`, 'must not be empty for specified object fields', errors)
  }
  if (typeof additionalProperties === 'object') {
    checkTyped(additionalProperties, `${path}.additionalProperties`, 'must not be empty for specified object fields', errors)
  }
  if (items) checkTyped(items, `${path}.items`, 'must not be empty for specified array items', errors)

  const pattern = schema['x-kubernetes-int-or-string'] === true
  for (const junctor of ['allOf', 'anyOf', 'oneOf'] as const) {
    schema[junctor]?.forEach((branch, index) => checkBranch(branch, `${path}.${junctor}[${index}]`, pattern, errors))
  }
  if (schema.not) checkBranch(schema.not, `${path}.not`, false, errors)
}

/** Every value that the schema describes has a type, or is said to have any. */
function checkTyped(schema: JSONSchema, path: string, text: string, errors: FieldError[]): void {
  const isFree =
    '$ref' in schema || schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true
  if (schema.type === undefined && !isFree) errors.push(required(`${path}.type`, text))
  check(schema, path, errors)
}

/** Inside allOf, anyOf, oneOf and not, schemas constrain what is described outside, and describe nothing themselves. */
const Described = [
  'type',
  'title',
  'description',
  'default',
  'nullable',
  'additionalProperties',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
] as const

function checkBranch(schema: JSONSchema, path: string, ofIntOrString: boolean, errors: FieldError[]): void {
  for (const keyword of Described) {
    if (schema[keyword] === undefined || (keyword === 'type' && ofIntOrString)) continue
    errors.push(forbidden(`${path}.${keyword}`, 'must be empty to be structural'))
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    checkBranch(property, `${path}.properties[${name}]`, false, errors)
  }
  if (schema.items) checkBranch(schema.items, `${path}.items`, false, errors)
  for (const junctor of ['allOf', 'anyOf', 'oneOf'] as const) {
    schema[junctor]?.forEach((branch, index) => checkBranch(branch, `${path}.${junctor}[${index}]`, ofIntOrString, errors))
  }
  if (schema.not) checkBranch(schema.not, `${path}.not`, false, errors)
}

function checkDefault(schema: JSONSchema, path: string, errors: FieldError[]): void {
  if (schema.default === undefined || schema.default === null) return
  // A schema of a member, so that a default which is no object can be looked at.
  const holder = { type: 'object', properties: { default: { ...schema, default: undefined } } } as JSONSchema
  for (const error of structural(holder).validate({ default: schema.default })) {
    const field = `${path}.${error.field}`
    // Upstream's texts have no name for what stands at the root, and a blank for it.
    errors.push({ ...error, field, text: error.text.replace(/: default(?= in body)/, ': ') })
  }
}

function checkList(schema: JSONSchema, path: string, errors: FieldError[]): void {
  const { items } = schema
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const type = schema['x-kubernetes-list-type']
  if (type === 'map') {
    if (keys.length === 0) {
      const why = 'must not be empty if x-kubernetes-list-type is map'
      errors.push(required(`${path}.x-kubernetes-list-map-keys`, why))
    }
    for (const key of keys) {
      const property = items?.properties?.[key]
      if (!property) {
        errors.push(invalid(`${path}.x-kubernetes-list-map-keys`, keys, 'entries must all be names of item properties'))
      } else if (!items.required?.includes(key) && property.default === undefined) {
        const why = 'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property'
        errors.push(required(`${path}.items.properties[${key}].default`, why))
      }
    }
  } else if (keys.length > 0) {
    const why = 'must be map if x-kubernetes-list-map-keys is non-empty'
    errors.push(type ? invalid(`${path}.x-kubernetes-list-type`, type, why) : required(`${path}.x-kubernetes-list-type`, why))
  }
  if (type === 'set' && items) {
    const isAtomic = (keyword: 'x-kubernetes-map-type' | 'x-kubernetes-list-type') => items[keyword] === 'atomic'
    const why = 'must be atomic as item of a list with x-kubernetes-list-type=set'
    if (items.type === 'object' && !isAtomic('x-kubernetes-map-type')) {
      errors.push(invalid(`${path}.items.x-kubernetes-map-type`, items['x-kubernetes-map-type'], why))
    }
    if (items.type === 'array' && items['x-kubernetes-list-type'] !== undefined && !isAtomic('x-kubernetes-list-type')) {
      errors.push(invalid(`${path}.items.x-kubernetes-list-type`, items['x-kubernetes-list-type'], why))
    }
  }
}

const RuleReasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

function checkRules(schema: JSONSchema, path: string, errors: FieldError[]): void {
  schema['x-kubernetes-validations']?.forEach(({ rule, message, messageExpression, reason, fieldPath }, index) => {
    const at = `${path}.x-kubernetes-validations[${index}]`
    if (!rule?.trim()) errors.push(required(`${at}.rule`, 'rule is not specified'))
    if (message !== undefined && message !== '') {
      if (message.trim() === '') errors.push(invalid(`${at}.message`, message, 'message must be non-empty if specified'))
      else if (/[\n\r]/.test(message)) errors.push(invalid(`${at}.message`, message, 'must not contain line breaks'))
    } else if (rule && /[\n\r]/.test(rule) && !messageExpression) {
      const why = 'message or messageExpression must be specified if rule contains line breaks'
      errors.push(required(`${at}.message`, why))
    }
    if (reason !== undefined && !RuleReasons.includes(reason)) errors.push(notSupported(`${at}.reason`, reason, RuleReasons))
    if (fieldPath !== undefined && !leadsSomewhere(schema, fieldPath)) {
      errors.push(invalid(`${at}.fieldPath`, fieldPath, 'must be a valid path'))
    }
  })
}

/** `.a.b`, `.a['b']`: a path to a member that the schema declares. */
function leadsSomewhere(schema: JSONSchema, fieldPath: string): boolean {
  const members = fieldPath.match(/\.[A-Za-z_][\w-]*|\['[^']+'\]/g) ?? []
  if (members.length === 0 || members.join('') !== fieldPath) return false
  let at: JSONSchema = schema
  for (const member of members) {
    const name = member.startsWith('.') ? member.slice(1) : member.slice(2, -2)
    const next = memberSchema(at, name)
    if (!next) return false
    at = next
  }
  return true
}

const memberSchema = ({ properties, additionalProperties }: JSONSchema, name: string): JSONSchema | undefined =>
  properties?.[name] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
