/**
 * What a decoder of Go makes of `null`, and of text that is not there: a field that is null is as if it were absent, an item of a
 * list or a value of a map is the zero of its type, and text that a type always has is empty. A float has no more digits than a float. Code that reads the object later
 * finds what its type promises.
 * Upstream: encoding/json.
 */
import { isRecord } from '@capstan/kube'
import { type Component, componentOf, targetOf } from './catalog.ts'
import { structIn } from './go-types.ts'

/** Changes a value in place. */
type Reader = (value: unknown) => void

const readers = new Map<string, Reader>()

/** Reads a draft of an object, its types already checked, as Go would. */
export function readNulls(component: string, object: { [field: string]: unknown }): void {
  const { metadata } = object
  readerOf(component)(object)
  // The server looks after metadata itself.
  object.metadata = metadata
}

function readerOf(name: string): Reader {
  const known = readers.get(name)
  if (known) return known
  let compiled: Reader | undefined
  // Types may mention themselves: the reader is known before it is made.
  const reader: Reader = (value) => (compiled ??= structReader(name))(value)
  readers.set(name, reader)
  return reader
}

function structReader(name: string): Reader {
  const { properties, required = [] } = componentOf(name) ?? {}
  if (!properties) return () => {}
  const members = Object.entries(properties).map(([field, schema]) => ({
    field,
    read: memberReader(schema),
    zero: required.includes(field) ? zeroOfRequired(schema, name) : undefined,
  }))
  const doubles = Object.keys(properties).filter((field) => properties[field]!.type === 'number')
  return (value) => {
    if (!isRecord(value)) return
    for (const field of doubles) if (typeof value[field] === 'bigint') value[field] = Number(value[field])
    for (const { field, read, zero } of members) {
      if (value[field] === null) delete value[field]
      if (value[field] === undefined && zero) value[field] = zero()
      if (value[field] !== undefined) read?.(value[field])
    }
  }
}

/** Strings that a Go type always has; for CustomResourceDefinitions also the structs, whose missing fields are reported one by one. */
function zeroOfRequired(schema: Component, owner: string): (() => unknown) | undefined {
  const target = targetOf(schema)
  if (target === undefined) return schema.type === 'string' && schema.format === undefined ? () => '' : undefined
  return owner.includes('.apiextensions-apiserver.') && componentOf(target)?.properties ? () => ({}) : undefined
}

function memberReader(schema: Component): Reader | undefined {
  const target = targetOf(schema)
  if (target !== undefined) return (value) => readerOf(structIn(target, value))(value)
  const inner = schema.items ?? (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined)
  if (!inner) return undefined
  const read = memberReader(inner)
  return (container) => {
    if (typeof container !== 'object' || container === null) return
    const members = container as { [key: string]: unknown }
    for (const key of Object.keys(members)) {
      if (members[key] === null) members[key] = zeroOf(inner)
      read?.(members[key])
    }
  }
}

function zeroOf(schema: Component): unknown {
  const target = targetOf(schema)
  const { type, properties } = target === undefined ? schema : (componentOf(target) ?? {})
  if (target?.endsWith('.Quantity')) return '0'
  // A struct; anything else that has a name of its own is written as what it is, and null stays what it was.
  if (properties) return {}
  if (type === 'string') return target === undefined ? '' : null
  if (type === 'boolean') return false
  return type === 'integer' || type === 'number' ? 0 : null
}

/** A list that JSON always shows is `null` where there is none; being stored, an empty one is no longer known from none. */
export function nullIfNone<T extends object>(owner: T | undefined, field: keyof T): void {
  const list = owner?.[field] as readonly unknown[] | null | undefined
  if (owner && !list?.length) owner[field] = null as never
}
