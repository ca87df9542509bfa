/** Declares and reads variables of a topology in extensions. Upstream: exp/runtime/topologymutation, v1.14. */
import type { DiscoverVariables, ResponseOf, WireVariable } from '@capstan/api'
import { VariableError, variableValue } from '@capstan/api'
import type { Json, JsonObject, JSONSchema, ObjectOfShape, Schema, Shape } from '@capstan/kube'
import { draft, freeze, isRecord, s, setMember, structural } from '@capstan/kube'

/** Variables with their schemas, declared once for discovery and for use in patches. */
export interface DeclaredVariables<P extends Shape = Shape> {
  readonly shape: P
  /** Definitions for the response to DiscoverVariables. */
  readonly definitions: VariableDefinition[]
}

export type VariableDefinition = NonNullable<ResponseOf<typeof DiscoverVariables>['variables']>[number]

/**
 * Declares the variables of a patch. A variable that is not optional and has no default must be set in every Cluster.
 *
 * @example
 * const variables = defineVariables({ region: s.enum('eu1', 'us1'), disks: s.int32({ minimum: 1 }).default(2) })
 * on(DiscoverVariables, { name: 'discover-variables' }, () => proceedWith({ variables: variables.definitions }))
 *
 * @throws TypeError if a name is empty, `builtin`, or contains a dot, or if a schema contains a keyword or value that schemas of variables
 *   do not support, such as nullable
 */
export function defineVariables<P extends Shape>(shape: P): DeclaredVariables<P> {
  const definitions = Object.entries(shape).map(([name, schema]): VariableDefinition => {
    if (name === '' || name === 'builtin' || name.includes('.')) {
      throw new TypeError(`variable ${JSON.stringify(name)}: the name must not be empty or "builtin", and must not contain a dot`)
    }
    const problem = findUnsupportedKeyword(schema.json, '')
    if (problem !== undefined) throw new TypeError(`variable ${name}: ${problem}`)
    return {
      name,
      ...(schema.isOptional ? {} : { required: true }),
      schema: { openAPIV3Schema: schema.json as VariableDefinition['schema']['openAPIV3Schema'] },
    }
  })
  return { shape, definitions }
}

/** Keywords of CustomResourceDefinitions that schemas of variables do not support: core would silently drop them. */
const unsupportedKeywords = [
  'title',
  'nullable',
  'multipleOf',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
] as const

function findUnsupportedKeyword(schema: JSONSchema, path: string): string | undefined {
  const prefix = path === '' ? '' : `${path}: `
  const keyword = unsupportedKeywords.find((candidate) => schema[candidate] !== undefined)
  if (keyword !== undefined) return `${prefix}schemas of variables do not support ${keyword}`
  for (const limit of ['minimum', 'maximum'] as const) {
    if (!Number.isInteger(schema[limit] ?? 0)) return `${prefix}${limit} must be an integer, but is ${schema[limit]}`
  }
  if (typeof schema.additionalProperties === 'boolean') return `${prefix}additionalProperties must be a schema`
  const subschemas = [
    ...Object.entries(schema.properties ?? {}).map(([name, property]) => [name, property] as const),
    ...(schema.additionalProperties ? [['*', schema.additionalProperties] as const] : []),
    ...(schema.items ? [['[]', schema.items] as const] : []),
  ]
  for (const [name, subschema] of subschemas) {
    const problem = findUnsupportedKeyword(subschema, path === '' ? name : `${path}.${name}`)
    if (problem !== undefined) return problem
  }
  return undefined
}

/**
 * Returns the variables of a template: variables of the template override variables of the request; `builtin` is merged
 * recursively.
 */
export function mergedVariables(
  requestVariables: readonly WireVariable[] = [],
  itemVariables: readonly WireVariable[] = [],
): JsonObject {
  const merged: JsonObject = {}
  for (const { name, value = null } of [...requestVariables, ...itemVariables]) {
    setMember(merged, name, draft(name === 'builtin' ? deepMerge(merged['builtin'], value as Json) : value))
  }
  return merged
}

function deepMerge(base: Json | undefined, override: Json): Json {
  if (!isRecord(base) || !isRecord(override)) return override
  const merged: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(override)) {
    setMember(merged, name, deepMerge(Object.hasOwn(base, name) ? base[name] : undefined, value))
  }
  return merged as JsonObject
}

/**
 * Reads variables by path, such as `region`, `network.mtu` or `builtin.cluster.network.pods[0]`.
 *
 * The methods throw a VariableError: `not-set` if there is neither a value nor a fallback, `wrong-type` for a value of the wrong type, or
 * `bad-path` for an invalid path. `has` returns false instead of throwing `not-set`.
 */
export class Variables {
  readonly values: JsonObject

  constructor(values: JsonObject) {
    this.values = freeze(values)
  }

  /** Whether there is a value. */
  has(path: string): boolean {
    return this.#at(path, undefined) !== undefined
  }

  /** Returns a copy of the value or fallback. The caller can change the copy. */
  value(path: string, fallback?: Json): Json {
    const value = this.#at(path, fallback)
    // Without value and fallback, `variableValue` throws the `not-set` error.
    return value === undefined ? variableValue(this.values, path) : draft(value)
  }

  string(path: string, fallback?: string): string {
    return this.#of(path, fallback, 'a string', (value) => typeof value === 'string')
  }

  boolean(path: string, fallback?: boolean): boolean {
    return this.#of(path, fallback, 'a boolean', (value) => typeof value === 'boolean')
  }

  number(path: string, fallback?: number): number {
    return this.#of(path, fallback, 'a number', (value) => typeof value === 'number')
  }

  integer(path: string, fallback?: number): number {
    return this.#of(path, fallback, 'an integer', Number.isInteger)
  }

  /** Returns a value of any type, validated against `schema` without its CEL rules. */
  as<T>(path: string, schema: Schema<T>, fallback?: NoInfer<T>): T {
    const value = this.value(path, fallback as Json | undefined)
    const [problem] = structural(s.object({ [path]: schema }).json).validateSchema({ [path]: value })
    if (problem) throw new VariableError('wrong-type', path, `${problem.field}: ${problem.text}`)
    return value as T
  }

  /**
   * Returns the values of all declared variables, validated against their schemas without CEL rules. A variable that is not set has its
   * default. Without a default, an optional variable is omitted.
   */
  of<P extends Shape>({ shape }: DeclaredVariables<P>): ObjectOfShape<P> {
    const values: Record<string, unknown> = {}
    for (const [name, schema] of Object.entries(shape)) {
      const { default: fallback } = schema.json
      if (schema.isOptional && fallback === undefined && !this.has(name)) continue
      values[name] = this.as(name, schema, fallback)
    }
    return values as ObjectOfShape<P>
  }

  #of<T extends Json>(path: string, fallback: T | undefined, type: string, hasType: (value: unknown) => boolean): T {
    const value = this.value(path, fallback)
    if (!hasType(value)) throw new VariableError('wrong-type', path, `expected ${type}, but it is ${describe(value)}`)
    return value as T
  }

  #at(path: string, fallback: Json | undefined): Json | undefined {
    try {
      return variableValue(this.values, path)
    } catch (err) {
      if (err instanceof VariableError && err.problem === 'not-set') return fallback
      throw err
    }
  }
}

function describe(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
