/**
 * Errors of Go's decoders for objects of built-in kinds with a value that does not match its Go type. The server rejects these objects
 * before validation. There are two decoders: one for JSON, and one for the result of a strategic merge patch. Each decoder reports the
 * first mismatch.
 * Upstream: encoding/json, and k8s.io/apimachinery/pkg/runtime/converter.go, v0.36.
 */
import {
  asWork,
  each,
  isInt64,
  isNumeric,
  isRecord,
  jsonTypeName,
  messageOf,
  parseQuantity,
  type RemainingWork,
  timeProblem,
  type Work,
} from '@capstan/kube'
import { type Component, componentOf, targetOf } from './catalog.ts'

/**
 * Returns the JSON decoder's error for the first value that does not match its type. `component` is the name of the object's OpenAPI
 * schema, such as `io.k8s.api.apps.v1.Deployment`.
 */
export function* jsonTypeProblem(component: string, object: object): Work<string | undefined> {
  const mismatch = yield* mismatchIn(component, object)
  if (!mismatch) return undefined
  const { struct, path, value, expected, problem } = mismatch
  return (
    problem ??
    `json: cannot unmarshal ${jsonTypeName(value, expected)} into Go struct field ${struct}.${path} of type ${expected}`
  )
}

/** Like `jsonTypeProblem`, with the error of the converter from maps to structs, which decodes the result of a strategic merge patch. */
export function* convertedTypeProblem(component: string, object: object): Work<string | undefined> {
  const mismatch = yield* mismatchIn(component, object)
  if (!mismatch) return undefined
  const { value, expected, form, problem } = mismatch
  if (problem !== undefined) return problem
  const kind = goKind(value)
  switch (form) {
    case 'struct':
      return `cannot restore struct from: ${kind}`
    case 'slice':
    case 'map':
      return `cannot restore ${form} from ${kind}`
    case 'scalar':
      // Go's reflection could convert between these types; upstream rejects the value with an error of its own.
      return (expected === 'string' && kind === 'int64') || (expected.startsWith('int') && kind === 'float64')
        ? `cannot convert ${kind} to ${expected}`
        : `unrecognized type: ${expected}`
    case 'own':
      return `json: cannot unmarshal ${jsonTypeName(value, expected)} into Go value of type ${expected}`
  }
}

interface Mismatch {
  /** The Go type that has the field. */
  readonly struct: string
  /** Field path from the object; list indexes and map keys are left out. */
  readonly path: string
  readonly value: unknown
  readonly expected: string
  /** `own`: the type has its own JSON decoder, or the value for a byte slice is a string that is not base64. */
  readonly form: 'struct' | 'slice' | 'map' | 'scalar' | 'own'
  /** Error text of the type's own decoder, or of the base64 decoder. If it is absent, the text is built from the other members. */
  readonly problem?: string
}

/**
 * Finds the first mismatch in a value that is not null: the value itself, or a part of it. The path of the mismatch begins at the value.
 * For many values, returns work that runs in pieces.
 */
type Check = (value: unknown) => CheckResult
type CheckResult = Mismatch | undefined | Work<Mismatch | undefined>

/** Checks of the fields of a type, compiled on first use for speed: a pod of 3 MB can have a million values. */
const compiled = new Map<string, ReadonlyMap<string, Check>>()

/** Returns the checks of the fields of a type; `undefined` for types without declared fields. */
function fieldChecks(component: string): ReadonlyMap<string, Check> | undefined {
  const cached = compiled.get(component)
  if (cached) return cached
  const { properties } = componentOf(component) ?? {}
  if (!properties) return undefined
  const checks = new Map<string, Check>()
  for (const [field, schema] of Object.entries(properties)) {
    const check = checkOf(schema, typeName(component))
    if (check) checks.set(field, check)
  }
  compiled.set(component, checks)
  return checks
}

function mismatchIn(component: string, object: object): Work<Mismatch | undefined> {
  let mismatch: Mismatch | undefined
  const start = (): RemainingWork => {
    const checks = fieldChecks(component)
    const result = checks && mismatchInFields(checks, object as Record<string, unknown>, isValidatedSeparately)
    if (isWork(result)) return passing(result, (found) => (mismatch = found))
    mismatch = result
    return undefined
  }
  return asWork(start, () => mismatch)
}

/** Passes the result of the work to `use`. */
function* passing<T>(work: Work<T>, use: (result: T) => void): Work<void> {
  use(yield* work)
}

const isWork = (result: CheckResult): result is Work<Mismatch | undefined> => result !== undefined && 'next' in result

function mismatchInFields(
  checks: ReadonlyMap<string, Check>,
  value: Readonly<Record<string, unknown>>,
  isSkipped?: (field: string) => boolean,
): CheckResult {
  const inField = (field: string, mismatch: Mismatch): Mismatch => ({
    ...mismatch,
    path: mismatch.path === '' ? field : `${field}.${mismatch.path}`,
  })
  return firstMismatch(
    Object.keys(value),
    (field) => {
      const check = checks.get(field)
      return check && !isSkipped?.(field) ? mismatchOf(check, value[field]) : undefined
    },
    inField,
  )
}

const mismatchOf = (check: Check, value: unknown): CheckResult =>
  value === null || value === undefined ? undefined : check(value)

/** Fields that the server validates separately. */
const isValidatedSeparately = (field: string): boolean => field === 'apiVersion' || field === 'kind' || field === 'metadata'

/** Compiles the check of a field of the Go type `struct`. Returns `undefined` for a schema that accepts any value. */
function checkOf(schema: Component, struct: string): Check | undefined {
  const makeMismatch: MakeMismatch = (value, form, problem) => ({
    struct,
    path: '',
    value,
    expected: goTypeOf(schema),
    form,
    ...(problem === undefined ? {} : { problem }),
  })
  const target = targetOf(schema)
  if (target !== undefined) return checkOfType(target, makeMismatch)
  switch (schema.type) {
    case 'string': {
      if (schema.format !== 'byte') return (value) => (typeof value === 'string' ? undefined : makeMismatch(value, 'scalar'))
      return (value) =>
        typeof value === 'string' ? withProblem(value, base64Problem(value), makeMismatch) : makeMismatch(value, 'scalar')
    }
    case 'boolean':
      return (value) => (typeof value === 'boolean' ? undefined : makeMismatch(value, 'scalar'))
    case 'integer':
      return (value) => (isInt64(value) && fits(value, schema.format) ? undefined : makeMismatch(value, 'scalar'))
    case 'number':
      return (value) => (isNumeric(value) ? undefined : makeMismatch(value, 'scalar'))
    case 'array': {
      const item = schema.items && checkOf(schema.items, struct)
      return (value) =>
        Array.isArray(value) ? item && firstMismatch(value, (element) => mismatchOf(item, element)) : makeMismatch(value, 'slice')
    }
    case 'object': {
      const { additionalProperties } = schema
      if (typeof additionalProperties !== 'object') return undefined
      const member = checkOf(additionalProperties, struct)
      return (value) =>
        isRecord(value)
          ? member && firstMismatch(Object.keys(value), (key) => mismatchOf(member, value[key]))
          : makeMismatch(value, 'map')
    }
    case undefined:
    default:
      return undefined
  }
}

/** Reports whether an integer is in the range of its Go type. */
function fits(value: number | bigint, format: string | undefined): boolean {
  const limit = format === 'int32' ? 2 ** 31 : 2 ** 63
  return value >= -limit && value < limit
}

type MakeMismatch = (value: unknown, form: Mismatch['form'], problem?: string) => Mismatch

function checkOfType(target: string, makeMismatch: MakeMismatch): Check {
  const name = typeName(target)
  switch (name) {
    case 'Quantity':
      return (value) =>
        typeof value === 'string' || isNumeric(value)
          ? withProblem(value, quantityProblem(String(value)), makeMismatch)
          : makeMismatch(value, 'own', quantityProblem(''))
    case 'IntOrString':
      return (value) =>
        typeof value === 'string' || (isInt64(value) && fits(value, 'int32')) ? undefined : makeMismatch(value, 'own')
    case 'Time':
    case 'MicroTime':
      return (value) =>
        typeof value === 'string'
          ? withProblem(value, timeProblem(value, name === 'MicroTime'), makeMismatch)
          : makeMismatch(value, 'own')
  }
  return (value) => {
    // Types may be recursive, so their fields are compiled on first use.
    const checks = fieldChecks(structIn(target, value))
    // Values of types without declared fields are not checked.
    if (!checks) return undefined
    return isRecord(value) ? mismatchInFields(checks, value) : makeMismatch(value, 'struct')
  }
}

/**
 * Returns the type whose fields a value of the type `target` can have. For an object of a union type, such as JSONSchemaPropsOrBool or
 * JSONSchemaPropsOrArray, this is JSONSchemaProps; otherwise it is `target`.
 */
export const structIn = (target: string, value: unknown): string =>
  target.includes('.JSONSchemaPropsOr') && isRecord(value) ? target.replace(/Or\w+$/, '') : target

const withProblem = (value: unknown, problem: string | undefined, makeMismatch: MakeMismatch): Mismatch | undefined =>
  problem === undefined ? undefined : makeMismatch(value, 'own', problem)

/** Returns the first mismatch that `find` finds for an element, with its path completed by `locate`. */
function firstMismatch<T>(
  elements: readonly T[],
  find: (element: T) => CheckResult,
  locate: (element: T, mismatch: Mismatch) => Mismatch = (_, mismatch) => mismatch,
): CheckResult {
  let mismatch: Mismatch | undefined
  const rest = each(elements, (element) => {
    if (mismatch) return undefined
    const result = find(element)
    if (isWork(result)) return passing(result, (found) => (mismatch = found && locate(element, found)))
    mismatch = result && locate(element, result)
    return undefined
  })
  return rest ? afterRemaining(rest, () => mismatch) : mismatch
}

function* afterRemaining(rest: Work<void>, getMismatch: () => Mismatch | undefined): Work<Mismatch | undefined> {
  yield* rest
  return getMismatch()
}

/** Returns the last part of a name: `PodSpec` of `io.k8s.api.core.v1.PodSpec`. */
const typeName = (component: string): string => component.slice(component.lastIndexOf('.') + 1)

/** Returns the Go type of a schema as error texts contain it. */
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

/**
 * Returns the error of Go's encoding/base64, with the offset of the first invalid byte or of the incomplete group at the end. Go reports
 * another offset for some texts with line breaks or with wrong padding.
 */
function base64Problem(text: string): string | undefined {
  const withoutBreaks = text.replaceAll(/[\r\n]/g, '')
  const invalidByte = /[^A-Za-z0-9+/=]|=(?!=?$)/.exec(withoutBreaks)
  const offset =
    invalidByte?.index ?? (withoutBreaks.length % 4 === 0 ? undefined : withoutBreaks.length - (withoutBreaks.length % 4))
  return offset === undefined ? undefined : `illegal base64 data at input byte ${offset}`
}
