/**
 * Errors of Go's decoders for values of built-in kinds that do not match their Go type; such objects are rejected before validation. There
 * are two decoders: one for JSON, and one for the result of a strategic merge patch. Each reports the first such value.
 * Upstream: encoding/json, and k8s.io/apimachinery/pkg/runtime/converter.go, v0.36.
 */
import { isInt64, isNumeric, isRecord, jsonTypeName, messageOf, parseQuantity } from '@capstan/kube'
import { timeProblem } from '@capstan/apiserver/kinds'
import { type Component, componentOf } from './catalog.ts'

/** Returns the JSON decoder's error for the first value that does not match its type. */
export function jsonTypeProblem(component: string, object: object): string | undefined {
  const found = misfitIn(component, object)
  if (!found) return undefined
  const { struct, path, value, wanted, problem } = found
  return (
    problem ?? `json: cannot unmarshal ${jsonTypeName(value, wanted)} into Go struct field ${struct}.${path} of type ${wanted}`
  )
}

/** Returns the error of the converter from maps to structs for the first value that does not match its type. */
export function convertedTypeProblem(component: string, object: object): string | undefined {
  const found = misfitIn(component, object)
  if (!found) return undefined
  const { value, wanted, form, problem } = found
  if (problem !== undefined) return problem
  const kind = goKind(value)
  switch (form) {
    case 'struct':
      return `cannot restore struct from: ${kind}`
    case 'slice':
    case 'map':
      return `cannot restore ${form} from ${kind}`
    case 'scalar':
      // Go could convert between these types; upstream prevents it.
      return (wanted === 'string' && kind === 'int64') || (wanted.startsWith('int') && kind === 'float64')
        ? `cannot convert ${kind} to ${wanted}`
        : `unrecognized type: ${wanted}`
    case 'own':
      return `json: cannot unmarshal ${jsonTypeName(value, wanted)} into Go value of type ${wanted}`
  }
}

interface Misfit {
  /** The Go type that has the field. */
  readonly struct: string
  /** Field path from the object; list indexes and map keys are left out. */
  readonly path: string
  readonly value: unknown
  readonly wanted: string
  /** `own`: the type has its own JSON decoder. */
  readonly form: 'struct' | 'slice' | 'map' | 'scalar' | 'own'
  /** Error of a type with its own decoder. */
  readonly problem?: string
}

function misfitIn(component: string, object: object): Misfit | undefined {
  const { properties = {} } = componentOf(component) ?? {}
  for (const [field, value] of Object.entries(object)) {
    const schema = isTyped(field) ? undefined : properties[field]
    const found = schema && misfit(schema, value, typeName(component), field)
    if (found) return found
  }
  return undefined
}

/** Fields that the server validates separately. */
const isTyped = (field: string): boolean => field === 'apiVersion' || field === 'kind' || field === 'metadata'

function misfit(schema: Component, value: unknown, struct: string, path: string): Misfit | undefined {
  if (value === null || value === undefined) return undefined
  const wrong = (form: Misfit['form'], problem?: string): Misfit => ({
    struct,
    path,
    value,
    wanted: goTypeOf(schema),
    form,
    ...(problem === undefined ? {} : { problem }),
  })
  const target = targetOf(schema)
  if (target !== undefined) return misfitOfType(target, value, path, wrong)
  switch (schema.type) {
    case 'string':
      if (typeof value !== 'string') return wrong('scalar')
      return schema.format === 'byte' ? withProblem(base64Problem(value), wrong) : undefined
    case 'boolean':
      return typeof value === 'boolean' ? undefined : wrong('scalar')
    case 'integer':
      return isInt64(value) && fits(value, schema.format) ? undefined : wrong('scalar')
    case 'number':
      return isNumeric(value) ? undefined : wrong('scalar')
    case 'array':
      if (!Array.isArray(value)) return wrong('slice')
      return schema.items && first(value, (item) => misfit(schema.items!, item, struct, path))
    case 'object': {
      const { additionalProperties } = schema
      if (typeof additionalProperties !== 'object') return undefined
      if (!isRecord(value)) return wrong('map')
      return first(Object.values(value), (member) => misfit(additionalProperties, member, struct, path))
    }
    case undefined:
    default:
      return undefined
  }
}

/** Whether an integer is in the range of its Go type. */
function fits(value: number | bigint, format: string | undefined): boolean {
  const limit = format === 'int32' ? 2 ** 31 : 2 ** 63
  return value >= -limit && value < limit
}

type MakeMisfit = (form: Misfit['form'], problem?: string) => Misfit

function misfitOfType(target: string, value: unknown, path: string, wrong: MakeMisfit): Misfit | undefined {
  switch (typeName(target)) {
    case 'Quantity':
      if (typeof value === 'string' || isNumeric(value)) return withProblem(quantityProblem(String(value)), wrong)
      return wrong('own', quantityProblem(''))
    case 'IntOrString':
      return typeof value === 'string' || (isInt64(value) && fits(value, 'int32')) ? undefined : wrong('own')
    case 'Time':
    case 'MicroTime':
      return typeof value === 'string' ? withProblem(timeProblem(value, typeName(target) === 'MicroTime'), wrong) : wrong('own')
  }
  const component = componentOf(structIn(target, value))
  // Types that accept any value, or that are checked where they are used.
  if (!component?.properties) return undefined
  if (!isRecord(value)) return wrong('struct')
  const { properties } = component
  const struct = typeName(structIn(target, value))
  for (const [field, member] of Object.entries(value)) {
    const schema = properties[field]
    const found = schema && misfit(schema, member, struct, `${path}.${field}`)
    if (found) return found
  }
  return undefined
}

/** Type of a schema that also accepts another type. Upstream: JSONSchemaPropsOrArray, OrBool and OrStringArray. */
export const structIn = (target: string, value: unknown): string =>
  isRecord(value) && /\.JSONSchemaPropsOr\w+$/.test(target) ? target.replace(/Or\w+$/, '') : target

const withProblem = (problem: string | undefined, wrong: MakeMisfit): Misfit | undefined =>
  problem === undefined ? undefined : wrong('own', problem)

function first<T, R>(items: readonly T[], find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function targetOf({ $ref, allOf }: Component): string | undefined {
  const reference = $ref ?? allOf?.[0]?.$ref
  return reference?.slice('#/components/schemas/'.length)
}

/** `PodSpec` of `io.k8s.api.core.v1.PodSpec`. */
const typeName = (component: string): string => component.slice(component.lastIndexOf('.') + 1)

function goTypeOf(schema: Component): string {
  const target = targetOf(schema)
  if (target !== undefined) {
    switch (typeName(target)) {
      case 'IntOrString':
        return 'int32'
      case 'Time':
      case 'MicroTime':
        return 'string'
    }
    return target.split('.').slice(-2).join('.')
  }
  switch (schema.type) {
    case 'integer':
      return schema.format ?? 'int'
    case 'number':
      return schema.format === 'float' ? 'float32' : 'float64'
    case 'boolean':
      return 'bool'
    case 'array':
      return `[]${schema.items ? goTypeOf(schema.items) : 'interface {}'}`
    case 'object':
      return `map[string]${typeof schema.additionalProperties === 'object' ? goTypeOf(schema.additionalProperties) : 'interface {}'}`
    case 'string':
    case undefined:
    default:
      return schema.format === 'byte' ? '[]uint8' : 'string'
  }
}

function goKind(value: unknown): string {
  if (isNumeric(value)) return isInt64(value) ? 'int64' : 'float64'
  if (typeof value === 'boolean') return 'bool'
  return Array.isArray(value) ? 'slice' : isRecord(value) ? 'map' : 'string'
}

function quantityProblem(text: string): string | undefined {
  try {
    parseQuantity(text)
    return undefined
  } catch (err) {
    return messageOf(err)
  }
}

/** Upstream: encoding/base64 reports the offset of the first invalid byte. */
function base64Problem(text: string): string | undefined {
  const packed = text.replaceAll(/[\r\n]/g, '')
  const strange = /[^A-Za-z0-9+/=]|=(?!=?$)/.exec(packed)
  const at = strange?.index ?? (packed.length % 4 === 0 ? undefined : packed.length - (packed.length % 4))
  return at === undefined ? undefined : `illegal base64 data at input byte ${at}`
}
