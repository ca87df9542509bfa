/** Validates the schemas of a CustomResourceDefinition, including their CEL rules. */
import { appendAll, type FieldError, forbidden, invalid, type JSONSchema, ruleErrors, validateStructural } from '@capstan/kube'

/** State of the CustomResourceDefinition that affects the validation of one of its schemas. */
export interface SchemaContext {
  /** Whether the version of the same name in the stored CRD has an equal schema. */
  readonly isUnchanged: boolean
  /** Whether the status subresource is enabled. Upstream then restricts the keywords at the root of the schema. */
  readonly hasStatus: boolean
}

/** Validates a schema. `path` is its path in the CustomResourceDefinition. */
export function schemaErrors(schema: JSONSchema, path: string, context: SchemaContext): FieldError[] {
  const validated = context.hasStatus ? validSchemasWithStatus : validSchemas
  if (validated.has(schema)) return []
  const errors = validateSchema(schema, path, context)
  if (errors.length === 0 && !context.isUnchanged && Object.isFrozen(schema)) validated.add(schema)
  return errors
}

/**
 * Frozen schemas that were found valid, without and with the status subresource enabled. The servers of this process do not validate them
 * again.
 */
const validSchemas = new WeakSet<JSONSchema>()
const validSchemasWithStatus = new WeakSet<JSONSchema>()

function validateSchema(schema: JSONSchema, path: string, { isUnchanged, hasStatus }: SchemaContext): FieldError[] {
  const errors: FieldError[] = []
  if (hasStatus) appendAll(errors, rootErrors(schema, path))
  if (schema.nullable) errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'))
  const structural = validateStructural(schema, path)
  const canCompile = structural.length === 0
  return [...errors, ...structural, ...ruleErrors(schema, { path, canCompile, isRoot: true, isUnchanged })]
}

/** Upstream: allowedFieldsAtRootSchema, with Go's field names. */
const allowedAtRoot = (
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems ' +
  'UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations'
).split(' ')

const nameInGo = (keyword: string): string =>
  keyword === 'x-kubernetes-preserve-unknown-fields'
    ? 'XPreserveUnknownFields'
    : keyword === 'x-kubernetes-validations'
      ? 'XValidations'
      : keyword.charAt(0).toUpperCase() + keyword.slice(1)

function rootErrors(schema: JSONSchema, path: string): FieldError[] {
  // As upstream, `nullable: true` is reported twice: here and by `validateSchema`.
  const disallowed = Object.entries(schema).find(
    ([keyword, value]) => value !== undefined && value !== false && !allowedAtRoot.includes(nameInGo(keyword)),
  )
  if (!disallowed) return []
  const fields = `[${allowedAtRoot.join(' ')}]`
  return [
    invalid(path, schema, `only ${fields} fields are allowed at the root of the schema if the status subresource is enabled`),
  ]
}
