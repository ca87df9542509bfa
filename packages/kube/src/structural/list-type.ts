/**
 * Validates lists of type set, whose items are unique, and of type map, whose items are objects with unique keys. Upstream:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype.
 */
import type { FieldError } from '../errors.ts'
import { duplicate, invalid } from '../errors.ts'
import { isRecord } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { stableText } from './stable-text.ts'
import { type Check, compileChecks } from './checks.ts'

/** Compiles the check of lists of type set and map. Returns `undefined` when values of the schema contain no such lists. */
export const compileUniqueness = (schema: JSONSchema): Check | undefined => compileChecks(schema, uniqueness)

function uniqueness(schema: JSONSchema): Check | undefined {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return (list, path, errors) => {
        if (Array.isArray(list)) findRepeated(list, (entry) => entry, path, errors)
      }
    case 'map': {
      const keys = schema['x-kubernetes-list-map-keys'] ?? []
      return (list, path, errors) => {
        if (!Array.isArray(list)) return
        const invalidIndex = list.findIndex((entry) => !isRecord(entry))
        if (invalidIndex >= 0)
          errors.push(invalid(`${path}[${invalidIndex}]`, list[invalidIndex], 'must be an object for an array of list-type map'))
        else findRepeated(list, (entry) => keysOf(entry as Record<string, unknown>, keys), path, errors)
      }
    }
    case 'atomic':
    case undefined:
      return undefined
  }
}

function findRepeated(list: readonly unknown[], identity: (entry: unknown) => unknown, path: string, errors: FieldError[]): void {
  const seenEntries = new Set<string>()
  for (const [index, entry] of list.entries()) {
    const id = identity(entry)
    const text = stableText(id)
    if (seenEntries.has(text)) errors.push(duplicate(`${path}[${index}]`, id))
    seenEntries.add(text)
  }
}

function keysOf(entry: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const key of [...keys].sort()) if (Object.hasOwn(entry, key)) values[key] = entry[key]
  return values
}
