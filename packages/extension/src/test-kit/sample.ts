/**
 * Generates a valid value of a schema, with its required and defaulted fields, for hooks without a hand-written fixture.
 * Deterministic, without side effects.
 */
import type { JSONSchema } from '@capstan/kube'
import { structural } from '@capstan/kube'

/**
 * Returns a value that is valid by the schema.
 *
 * @throws TypeError that names a field if its generated value is invalid, for example because a string does not match its pattern
 */
export function sampleOf(schema: JSONSchema): { [field: string]: unknown } {
  const value = sample(schema, '') as { [field: string]: unknown }
  const [problem] = structural(schema).validate(value)
  if (problem) throw new TypeError(`${problem.field}: ${problem.text}`)
  return value
}

/** Returns a value for a field with the name `name`, from which the values of strings are made. */
function sample(schema: JSONSchema, name: string): unknown {
  const { type, default: defaultValue, enum: allowed, minimum, maximum = Infinity, minItems = 0, minProperties = 0 } = schema
  if (defaultValue !== undefined) return defaultValue
  if (allowed) return allowed[0]
  switch (type) {
    case 'object': {
      const { properties = {}, required = [], additionalProperties } = schema
      const fields = Object.entries(properties).filter(
        ([field, property]) => required.includes(field) || property.default !== undefined,
      )
      if (typeof additionalProperties === 'object') {
        for (let n = fields.length; n < minProperties; n++) fields.push([`key-${n + 1}`, additionalProperties])
      }
      return Object.fromEntries(fields.map(([field, property]) => [field, sample(property, field)]))
    }
    case 'array':
      return Array.from({ length: minItems }, (_, index) => sample(schema.items ?? {}, `${name}-${index + 1}`))
    case 'integer':
    case 'number':
      return minimum ?? Math.min(maximum, 1)
    case 'boolean':
      return false
    case 'string':
      return schema.format === 'date-time' ? '2026-01-01T00:00:00Z' : textOf(schema, name)
    case undefined:
      return {}
  }
}

const textOf = ({ minLength = 0, maxLength = Infinity }: JSONSchema, name: string): string =>
  (name === 'namespace' ? 'default' : name === 'name' ? 'demo' : name).padEnd(minLength, 'x').slice(0, maxLength)
