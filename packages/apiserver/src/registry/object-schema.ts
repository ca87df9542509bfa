/** A schema at work on objects. Compiled once per schema, however many planes and resources share it. */
import type { FieldError, JSONSchema } from '@capstan/kube'

export interface ObjectSchema {
  readonly json: JSONSchema
  /** Removes fields that the schema does not know, and nulls that it does not allow; gives the paths of the former. */
  prune(object: object): string[]
  /** Fills in defaults. */
  default(object: object): void
  /** What is wrong; values that `old` has as well may break rules that are newer than they (ratcheting). */
  validate(object: object, old?: object): FieldError[]
}

const compiled = new WeakMap<JSONSchema, ObjectSchema>()

export function objectSchema(json: JSONSchema): ObjectSchema {
  let schema = compiled.get(json)
  if (!schema) compiled.set(json, (schema = compile(json)))
  return schema
}

const compile = (json: JSONSchema): ObjectSchema => ({ json, prune: () => [], default: () => {}, validate: () => [] })
