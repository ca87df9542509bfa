/** Prunes fields that a schema does not specify. Upstream: apiextensions structural pruning. */
import { each, type RemainingWork } from '../clock.ts'
import { isRecord } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { ObjectMetaSchema } from './object-meta.ts'

/** Prunes a value in place and records the paths of removed fields. */
export type Prune = (value: unknown, path: string, removed: Removed) => RemainingWork

/** Paths of pruned fields. `metadata` has those in the metadata of embedded resources, because upstream reports these paths last. */
export interface Removed {
  readonly fields: string[]
  readonly metadata: string[]
}

/** Fields that every resource has, even if its schema does not declare them. The metadata of the root is pruned when an object is decoded. */
const TypeMembers = new Set(['apiVersion', 'kind', 'metadata'])

/** Compiles the pruning of a schema. Returns `undefined` when values of the schema contain no fields that could be pruned. */
export function compilePrune(schema: JSONSchema, isRoot = false): Prune | undefined {
  const isResource = isRoot || schema['x-kubernetes-embedded-resource'] === true
  const preserve = schema['x-kubernetes-preserve-unknown-fields'] === true
  const members = new Map<string, Prune | undefined>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (!isResource || !TypeMembers.has(name)) members.set(name, compilePrune(property))
  }
  if (isResource) for (const name of TypeMembers) members.set(name, undefined)
  if (isResource && !isRoot) members.set('metadata', pruneMetadata)

  const { additionalProperties, items } = schema
  const allowsUndeclared = additionalProperties !== undefined && additionalProperties !== false
  const pruneUndeclared = typeof additionalProperties === 'object' ? compilePrune(additionalProperties) : undefined
  const item = items ? compilePrune(items) : preserve ? undefined : pruneAll

  const removesUnknown = schema.type === 'object' && !allowsUndeclared && !preserve
  const prunesInside =
    [...members.values()].some(Boolean) || pruneUndeclared !== undefined || (schema.type === 'array' && item !== undefined)
  if (!removesUnknown && !prunesInside) return undefined

  return (value, path, removed) => {
    if (Array.isArray(value)) return item && pruneItems(item, value, path, removed)
    if (!isRecord(value)) return undefined
    return each(Object.keys(value), (key) => {
      const isDeclared = members.has(key)
      if (!isDeclared && !allowsUndeclared) {
        if (preserve) return undefined
        delete value[key]
        removed.fields.push(childPath(path, key))
        return undefined
      }
      const child = isDeclared ? members.get(key) : pruneUndeclared
      const member = value[key]
      return child && typeof member === 'object' && member !== null ? child(member, childPath(path, key), removed) : undefined
    })
  }
}

/** Prunes all fields of the items of an array whose schema does not specify `items`. */
function pruneAll(value: unknown, path: string, removed: Removed): RemainingWork {
  if (Array.isArray(value)) return pruneItems(pruneAll, value, path, removed)
  if (!isRecord(value)) return undefined
  return each(Object.keys(value), (key) => {
    delete value[key]
    removed.fields.push(childPath(path, key))
    return undefined
  })
}

function pruneItems(prune: Prune, items: readonly unknown[], path: string, removed: Removed): RemainingWork {
  let index = 0
  return each(items, (item) => prune(item, `${path}[${index++}]`, removed))
}

const pruneObjectMeta = compilePrune(ObjectMetaSchema)

function pruneMetadata(value: unknown, path: string, { metadata }: Removed): RemainingWork {
  return pruneObjectMeta?.(value, path, { fields: metadata, metadata })
}

function childPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
