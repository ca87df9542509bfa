/** Items of sets and maps appear once. Upstream: apiextensions structural listtype. */
import type { FieldError } from '../errors.ts'
import { duplicate, invalid } from '../errors.ts'
import { isRecord } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { stableText } from './stable-text.ts'

export type FindDuplicates = (value: unknown, path: string, errors: FieldError[]) => void

/** `undefined` when there are no such lists in values of the schema. */
export function compileUniqueness(schema: JSONSchema): FindDuplicates | undefined {
  const item = schema.items ? compileUniqueness(schema.items) : undefined
  const members: [name: string, check: FindDuplicates][] = []
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const check = compileUniqueness(property)
    if (check) members.push([name, check])
  }
  const declared = new Set(Object.keys(schema.properties ?? {}))
  const other = typeof schema.additionalProperties === 'object' ? compileUniqueness(schema.additionalProperties) : undefined
  const listType = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  if (!item && members.length === 0 && !other && listType !== 'set' && listType !== 'map') return undefined

  return (value, path, errors) => {
    if (Array.isArray(value)) {
      if (listType === 'set') findRepeated(value, (entry) => entry, path, errors)
      else if (listType === 'map') {
        const odd = value.findIndex((entry) => !isRecord(entry))
        if (odd >= 0) errors.push(invalid(`${path}[${odd}]`, value[odd], 'must be an object for an array of list-type map'))
        else findRepeated(value, (entry) => keysOf(entry as Record<string, unknown>, keys), path, errors)
      }
      if (item) for (const [index, entry] of value.entries()) item(entry, `${path}[${index}]`, errors)
    } else if (isRecord(value)) {
      for (const [name, check] of members) {
        if (Object.hasOwn(value, name)) check(value[name], path === '' ? name : `${path}.${name}`, errors)
      }
      if (other) for (const name of Object.keys(value)) if (!declared.has(name)) other(value[name], `${path}[${name}]`, errors)
    }
  }
}

function findRepeated(list: readonly unknown[], identity: (entry: unknown) => unknown, path: string, errors: FieldError[]): void {
  const seen = new Set<string>()
  for (const [index, entry] of list.entries()) {
    const id = identity(entry)
    const text = stableText(id)
    if (seen.has(text)) errors.push(duplicate(`${path}[${index}]`, id))
    seen.add(text)
  }
}

function keysOf(entry: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const key of [...keys].sort()) if (Object.hasOwn(entry, key)) found[key] = entry[key]
  return found
}
