import type { FieldError } from '../errors.ts'
import { isRecord } from '../json.ts'
import type { JSONSchema } from '../schema.ts'

/** Appends validation errors of a value to `errors`. */
export type Check = (value: unknown, path: string, errors: FieldError[]) => void

/**
 * Compiles the check of a value and all values inside it, outer values first. `checkOf` returns the check of one schema without its nested
 * schemas. Returns `undefined` when no schema has a check.
 */
export function compileChecks(schema: JSONSchema, checkOf: (schema: JSONSchema) => Check | undefined): Check | undefined {
  const ownCheck = checkOf(schema)
  const item = schema.items ? compileChecks(schema.items, checkOf) : undefined
  const members: [name: string, check: Check][] = []
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const check = compileChecks(property, checkOf)
    if (check) members.push([name, check])
  }
  const declared = new Set(Object.keys(schema.properties ?? {}))
  const { additionalProperties } = schema
  const other = typeof additionalProperties === 'object' ? compileChecks(additionalProperties, checkOf) : undefined
  if (!ownCheck && !item && members.length === 0 && !other) return undefined

  return (value, path, errors) => {
    ownCheck?.(value, path, errors)
    if (Array.isArray(value)) {
      if (item) for (const [index, entry] of value.entries()) item(entry, `${path}[${index}]`, errors)
    } else if (isRecord(value)) {
      for (const [name, check] of members) {
        if (Object.hasOwn(value, name)) check(value[name], path === '' ? name : `${path}.${name}`, errors)
      }
      if (other) for (const name of Object.keys(value)) if (!declared.has(name)) other(value[name], `${path}[${name}]`, errors)
    }
  }
}
