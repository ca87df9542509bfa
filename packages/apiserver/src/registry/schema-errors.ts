/** What is wrong with the schema of a CustomResourceDefinition, its rules in CEL included. */
import { type FieldError, type JSONSchema, ruleErrors, validateStructural } from '@capstan/kube'

/** `path` is where the schema stands in the definition. */
export function schemaErrors(schema: JSONSchema, path: string): FieldError[] {
  const errors = validateStructural(schema, path)
  return [...errors, ...ruleErrors(schema, { path, canCompile: errors.length === 0, isRoot: true })]
}
