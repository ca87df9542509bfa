/** Go's zero values for absent fields, as far as a schema determines them. */
import type { JSONSchema } from '@capstan/kube'

/** Resolves a `$ref` of a recursive schema. */
export function resolveRef(schema: JSONSchema, root: JSONSchema): JSONSchema {
  if (schema.$ref === undefined) return schema
  return root.definitions?.[schema.$ref.slice('#/definitions/'.length)] ?? schema
}

/** Adds missing fields of an object: required strings and structs with their zero value, and optional fields whose default is 0. */
export function addZeroValues(decoded: Record<string, unknown>, schema: JSONSchema, root: JSONSchema): Record<string, unknown> {
  const { properties = {}, required = [] } = schema
  for (const name of Object.keys(properties)) {
    if (decoded[name] !== undefined) continue
    const field = properties[name]!
    // The hooks of Cluster API have one other default, that of `reason` of a validation rule. It is no zero value: the API server sets it
    // when an object with the rule is written.
    const value = required.includes(name) ? requiredValue(resolveRef(field, root), root) : field.default === 0 ? 0 : undefined
    if (value !== undefined) decoded[name] = value
  }
  return decoded
}

/** Returns Go's zero value of a schema's type, which replaces a null element of a list or map. */
export function zero(schemaOrRef: JSONSchema, root: JSONSchema): unknown {
  const schema = resolveRef(schemaOrRef, root)
  switch (schema.type) {
    case 'string':
      return ''
    case 'integer':
    case 'number':
      return 0
    case 'boolean':
      return false
    case 'object':
      return addZeroValues({}, schema, root)
    case 'array':
      return []
    case undefined:
      return null
  }
}

/** Returns the value of an absent required field; `undefined` if the field remains missing. */
function requiredValue(schema: JSONSchema, root: JSONSchema): unknown {
  if (schema.type === 'string') return ''
  // The schema of an API object, such as a Machine, does not list its fields, so a missing API object remains missing.
  if (schema['x-kubernetes-preserve-unknown-fields']) return undefined
  return schema.type === 'object' && schema.properties ? addZeroValues({}, schema, root) : undefined
}
