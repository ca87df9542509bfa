/** Finds fields in the schema of a CustomResourceDefinition. */
import type { JSONSchema } from '@capstan/kube'

export type FieldType = 'boolean' | 'string' | 'integer' | 'object' | 'array'

/**
 * Returns the schema of the field at a path. For a field without a schema, returns `any` if its nearest parent with a schema has
 * `x-kubernetes-preserve-unknown-fields`, otherwise `undefined`.
 */
export function fieldAt(schema: JSONSchema, path: string): JSONSchema | 'any' | undefined {
  let current = schema
  for (const name of path.split('.')) {
    const next = current.properties?.[name]
    if (next === undefined) {
      if (current['x-kubernetes-preserve-unknown-fields'] === true) return 'any'
      if (typeof current.additionalProperties === 'object') current = current.additionalProperties
      else return undefined
    } else current = next
  }
  return current
}

export const hasField = (schema: JSONSchema, path: string): boolean => fieldAt(schema, path) !== undefined

/** Returns the problem of a field's type; `undefined` if the type is correct or not specified, or the field is absent. */
export function typeProblem(schema: JSONSchema, path: string, type: FieldType): string | undefined {
  const field = fieldAt(schema, path)
  if (field === undefined || field === 'any' || field.type === undefined || field.type === type) return undefined
  return `${path} is of type ${field.type}, expected ${type}`
}

/** Returns the longest prefix of the path that exists in the schema. A problem about a missing field names this prefix. */
export function deepestPath(schema: JSONSchema, path: string): string {
  const names = path.split('.')
  while (names.length > 0 && !hasField(schema, names.join('.'))) names.pop()
  return names.join('.')
}

/** Returns the path of a field within the schema of its object, for example `.properties.status.properties.ready` for `status.ready`. */
export const propertiesPath = (path: string): string =>
  path === ''
    ? ''
    : `.${path
        .split('.')
        .map((name) => `properties.${name}`)
        .join('.')}`
