/**
 * Generates the inputs of `growth.test.ts`, which measures how the work of the API server grows with its input: small objects in which one
 * list, map or string of the schema can have any size.
 */
import { isRecord, type JSONSchema } from '@capstan/kube'
import type { Resource } from '@capstan/apiserver'

/** The values that make an object grow: different or equal items of a list, members of a map, characters of a string. */
export type Growth = 'items' | 'equal items' | 'members' | 'text'

/** A list, map or string in the schema of a resource. */
export interface GrowthCase {
  readonly name: string
  readonly resource: Resource
  /** Returns an object of this name, in which the list, map or string has this size. */
  object(name: string, size: number): { [field: string]: unknown }
}

type Step = { readonly field: string } | 'item' | 'member'

interface Place {
  readonly path: readonly Step[]
  readonly growth: Growth
}

/** Maximum number of fields of the same name in a path, because schemas may be recursive. */
const MaxOfOneName = 2
/** Maximum number of steps of a path, and deepest level (from 0) at which objects of a generated value have fields. */
const MaxSteps = 9

/** Returns all cases of a resource, in the order of its schema. */
export function growthCases(resource: Resource): GrowthCase[] {
  return [...placesIn(resource.schema, [])].map(({ path, growth }) => ({
    name: `${resource.plural}.${resource.group || 'core'}/${resource.version} ${textOf(path)}: ${growth}`,
    resource,
    object(name, size) {
      const object = growObject(resource.schema, path, growth, size) as { [field: string]: unknown }
      const { uid: _, ...metadata } = (object.metadata ?? {}) as { uid?: unknown }
      const scope = resource.namespaced ? { namespace: 'default' } : {}
      return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: { ...metadata, name, ...scope } }
    },
  }))
}

const apiVersionOf = ({ group, version }: Resource): string => (group === '' ? version : `${group}/${version}`)

const textOf = (path: readonly Step[]): string =>
  path.map((step) => (step === 'item' ? '[]' : step === 'member' ? '{}' : `.${step.field}`)).join('')

/**
 * Fields that get no case: the server sets `uid` of a new object, and drops or replaces `status` (except that of a Node); `growthCases` sets
 * the others.
 */
const skipped = new Set(['.apiVersion', '.kind', '.metadata.name', '.metadata.namespace', '.metadata.uid', '.status'])

function* placesIn(schema: JSONSchema, path: readonly Step[]): Generator<Place> {
  if (path.length > MaxSteps || skipped.has(textOf(path))) return
  const last = path.at(-1)
  if (typeof last === 'object' && path.filter((one) => typeof one === 'object' && one.field === last.field).length > MaxOfOneName)
    return
  if (schema.type === 'array' && schema.items) {
    yield { path, growth: 'items' }
    yield { path, growth: 'equal items' }
    yield* placesIn(schema.items, [...path, 'item'])
  } else if (schema.type === 'string') yield { path, growth: 'text' }
  else if (typeof schema.additionalProperties === 'object') {
    yield { path, growth: 'members' }
    yield* placesIn(schema.additionalProperties, [...path, 'member'])
  } else if (schema['x-kubernetes-preserve-unknown-fields'] && !schema.properties) yield { path, growth: 'members' }
  for (const [field, property] of Object.entries(schema.properties ?? {})) yield* placesIn(property, [...path, { field }])
}

function growObject(schema: JSONSchema, path: readonly Step[], growth: Growth, size: number): unknown {
  const [step, ...rest] = path
  if (step === undefined) return growValue(schema, growth, size)
  if (step === 'item') return [mergeMembers(smallestValue(schema.items!, 0), growObject(schema.items!, rest, growth, size))]
  if (step === 'member') {
    const member = schema.additionalProperties as JSONSchema
    return { n0: mergeMembers(smallestValue(member, 0), growObject(member, rest, growth, size)) }
  }
  const property = schema.properties![step.field]!
  return { ...(smallestValue(schema, 0) as object), [step.field]: growObject(property, rest, growth, size) }
}

const mergeMembers = (small: unknown, large: unknown): unknown =>
  isRecord(small) && isRecord(large) ? { ...small, ...large } : large

function growValue(schema: JSONSchema, growth: Growth, size: number): unknown {
  const indexes = Array.from({ length: size }, (_, index) => index)
  switch (growth) {
    case 'items':
      return indexes.map((index) => smallestValue(schema.items!, index))
    case 'equal items':
      return indexes.map(() => smallestValue(schema.items!, 0))
    case 'members': {
      const member = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : { type: 'string' as const }
      return Object.fromEntries(indexes.map((index) => [`n${index}`, smallestValue(member, index)]))
    }
    case 'text':
      return 'a'.repeat(size)
  }
}

/**
 * Returns a small value of a schema, with its required fields and the fields `usualKeys`. Strings differ by index, and numbers
 * unless `minimum` or `maximum` limits them; enums, dates and booleans do not.
 */
function smallestValue(schema: JSONSchema, index: number, depth = 0): unknown {
  if (schema.enum?.length) return schema.enum[0]
  if (schema['x-kubernetes-int-or-string']) return index + 1
  switch (schema.type) {
    case 'string':
      return schema.format === 'date-time' ? '2026-01-01T00:00:00Z' : `n${index}`
    case 'integer':
    case 'number':
      return Math.max(Number(schema.minimum ?? 1), Math.min(index + 1, Number(schema.maximum ?? 60_000)))
    case 'boolean':
      return true
    case 'array':
      return []
    case 'object':
    case undefined: {
      if (depth > MaxSteps) return {}
      const properties = schema.properties ?? {}
      const needed = new Set([...(schema.required ?? []), ...usualKeys.filter((key) => Object.hasOwn(properties, key))])
      return Object.fromEntries(
        [...needed].flatMap((name) => (properties[name] ? [[name, smallestValue(properties[name], index, depth + 1)]] : [])),
      )
    }
  }
}

/** Fields that are set although the schema does not require them: most identify list items; others, such as `image`, are required by validation. */
const usualKeys = ['name', 'key', 'uid', 'type', 'image', 'mountPath', 'devicePath', 'containerPort', 'port', 'topologyKey', 'ip']
