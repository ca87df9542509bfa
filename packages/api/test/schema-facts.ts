/** A schema as a list of facts: one entry per path, without descriptions. For comparing ours with upstream's. */
import type { JSONSchema } from '@capstan/kube'

export type SchemaFacts = { [path: string]: Omit<JSONSchema, 'properties' | 'items' | 'additionalProperties'> }

/** `required` is sorted: its order means nothing. A list's items are at `path[]`, values of a map at `path{}`. */
export function schemaFacts(schema: JSONSchema, path = '.', facts: SchemaFacts = {}): SchemaFacts {
  const { description: _, properties, items, additionalProperties, required, ...keywords } = schema
  facts[path] = { ...keywords, ...(required ? { required: [...required].sort() } : {}) }
  const parent = path === '.' ? '' : path
  for (const [name, field] of Object.entries(properties ?? {})) schemaFacts(field, `${parent}.${name}`, facts)
  if (items) schemaFacts(items, `${parent}[]`, facts)
  if (typeof additionalProperties === 'object') schemaFacts(additionalProperties, `${parent}{}`, facts)
  return facts
}
