/** Flattens a schema to one entry per path, without descriptions, to compare it with upstream's schema. */
import type { JSONSchema } from '@capstan/kube'

export type SchemaFacts = { [path: string]: Omit<JSONSchema, 'properties' | 'items' | 'additionalProperties'> }

/**
 * Adds the entries of a schema to `facts`, and returns `facts`. `required` is sorted. The path of the items of a list ends in `[]`, and the
 * path of the values of a map in `{}`.
 */
export function schemaFacts(schema: JSONSchema, path = '.', facts: SchemaFacts = {}): SchemaFacts {
  const { description: _, properties, items, additionalProperties, required, ...keywords } = schema
  facts[path] = { ...keywords, ...(required ? { required: [...required].sort() } : {}) }
  const parent = path === '.' ? '' : path
  for (const [name, field] of Object.entries(properties ?? {})) schemaFacts(field, `${parent}.${name}`, facts)
  if (items) schemaFacts(items, `${parent}[]`, facts)
  if (typeof additionalProperties === 'object') schemaFacts(additionalProperties, `${parent}{}`, facts)
  return facts
}
