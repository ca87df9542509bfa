/** What is wrong with the schema of a CustomResourceDefinition, its rules in CEL included. */
import { appendAll, type FieldError, forbidden, invalid, type JSONSchema, ruleErrors, validateStructural } from '@capstan/kube'

export interface SchemaInDefinition {
  /** The schema was there before. */
  readonly isUnchanged: boolean
  /** Status is written by itself, so what is said of it must stand in its own part of the schema. */
  readonly hasStatus: boolean
}

/** `path` is where the schema stands in the definition. */
export function schemaErrors(schema: JSONSchema, path: string, place: SchemaInDefinition): FieldError[] {
  const known = place.hasStatus ? soundWithStatus : sound
  if (known.has(schema)) return []
  const errors = look(schema, path, place)
  if (errors.length === 0 && !place.isUnchanged && Object.isFrozen(schema)) known.add(schema)
  return errors
}

/** Frozen schemas with nothing wrong, wherever they stand: one is given to many servers, and to the same one again at each start. */
const sound = new WeakSet<JSONSchema>()
const soundWithStatus = new WeakSet<JSONSchema>()

function look(schema: JSONSchema, path: string, { isUnchanged, hasStatus }: SchemaInDefinition): FieldError[] {
  const errors: FieldError[] = []
  if (hasStatus) appendAll(errors, rootErrors(schema, path))
  if (schema.nullable) errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'))
  const structural = validateStructural(schema, path)
  const canCompile = structural.length === 0
  return [...errors, ...structural, ...ruleErrors(schema, { path, canCompile, isRoot: true, isUnchanged })]
}

/** Upstream: allowedFieldsAtRootSchema, by the names that they have there. */
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
  // Said of a type that is not an object already, and of null on its own.
  const other = Object.entries(schema).find(
    ([keyword, value]) => value !== undefined && value !== false && !allowedAtRoot.includes(nameInGo(keyword)),
  )
  if (!other) return []
  const fields = `[${allowedAtRoot.join(' ')}]`
  return [
    invalid(path, schema, `only ${fields} fields are allowed at the root of the schema if the status subresource is enabled`),
  ]
}
