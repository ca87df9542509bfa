/**
 * Validates values by their schema. The error texts, their order and the branch of an `anyOf` or `oneOf` that is reported follow upstream:
 * kube-openapi/pkg/validation/validate, as apiextensions-apiserver v0.36 uses it. Where upstream's order is random, errors are in the order
 * of the schema or of the value.
 */
import { appendAll } from '../lists.ts'
import { goFloat } from '../go-text.ts'
import { isInt64, isNumeric, writeJSON } from '../json-text.ts'
import type { FieldError } from '../errors.ts'
import { invalid, notSupported, required, tooLong, tooMany, typeInvalid } from '../errors.ts'
import { equal, isRecord, valueKey } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { formatCheck } from './format.ts'
import { compilePattern } from './pattern.ts'

/** The old value that a new value is compared with on update; `undefined` for a create, and when the two cannot be correlated. */
export type Old = { readonly value: unknown } | undefined

/**
 * Appends validation errors of the value. Returns a count of checks (upstream: MatchCount), by which the branch of an `anyOf` or `oneOf`
 * that fits best is selected.
 */
export type Validate = (value: unknown, path: string, errors: FieldError[], old: Old) => number

/** Compiles the validation of values by a schema. */
export function compileValidate(schema: JSONSchema): Validate {
  const checks = compileChecks(schema)
  const members = compileMembers(schema)
  const items = compileItems(schema)
  const junctors = compileJunctors(schema)

  return (value, path, errors, old) => {
    const before = errors.length
    let count = 2
    count += checks.type(value, path, errors)
    if (value === null || value === undefined) {
      checks.enum?.(value, path, errors)
    } else {
      if (junctors) count += junctors(value, path, errors, old)
      if (typeof value === 'string') count += checks.string?.(value, path, errors) ?? 1
      else if (isNumeric(value)) count += checks.number?.(value, path, errors) ?? 1
      else if (Array.isArray(value)) count += items(value, path, errors, old)
      checks.enum?.(value, path, errors)
      if (isRecord(value)) count += members(value, path, errors, old)
    }
    // Upstream: an unchanged value may violate the schema, because the schema may be newer than the object.
    if (errors.length > before && old && equal(value, old.value)) errors.length = before
    return count
  }
}

type Check<T> = (value: T, path: string, errors: FieldError[]) => number

/** Returns the field of an error: the path without a leading dot; `<nil>` for the root. */
const fieldOf = (path: string): string => (path === '' || path === '.' ? '<nil>' : path.startsWith('.') ? path.slice(1) : path)

/** Error that upstream attributes to no field. */
const withoutField = (message: string): FieldError => ({
  type: 'FieldValueInvalid',
  field: '<nil>',
  text: `Invalid value: "": ${message}`,
})

const typeOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isNumeric(value)) return isInt64(value) ? 'integer' : 'number'
  return typeof value
}

function compileChecks(schema: JSONSchema): {
  type: Check<unknown>
  string: Check<string> | undefined
  number: Check<number | bigint> | undefined
  enum: Check<unknown> | undefined
} {
  const intOrString = schema['x-kubernetes-int-or-string'] === true
  const types = intOrString ? ['integer', 'string'] : schema.type ? [schema.type] : []
  return {
    type: compileType(schema, types),
    string: compileString(schema),
    number: compileNumber(schema, intOrString ? undefined : schema.type),
    enum: schema.enum && schema.enum.length > 0 ? compileEnum(schema.enum) : undefined,
  }
}

function compileType({ format = '', nullable }: JSONSchema, types: readonly string[]): Check<unknown> {
  const numeric = types.includes('number') || types.includes('integer')
  const knownFormat = format !== '' && (formatCheck(format) !== undefined || NumberFormats.has(format)) ? format : ''
  if (types.length === 0 && knownFormat === '') return () => 0
  const expectedTypes = types.join(',')
  const reportWrongType = (path: string, errors: FieldError[], expected: string, actual: string): number => {
    errors.push(typeInvalid(fieldOf(path), actual, `${path} in body must be of type ${expected}: ${JSON.stringify(actual)}`))
    return 0
  }
  return (value, path, errors) => {
    const actual = typeOf(value)
    if (actual === 'null') return nullable || types.length === 0 ? 1 : reportWrongType(path, errors, expectedTypes, actual)
    const fits = types.includes(actual) || (actual === 'integer' && types.includes('number'))
    const isListOrText = actual === 'string' || actual === 'array'
    // Upstream: for a value that is neither a list nor a string, the error names the format instead of the type.
    if (!fits && !isListOrText && knownFormat !== '')
      return reportWrongType(path, errors, knownFormat, actual === 'integer' ? 'int64' : actual === 'number' ? 'float64' : '')
    // Upstream: a known format replaces the type check of lists and strings, unless the type is numeric.
    if (!numeric && knownFormat !== '' && isListOrText) return 1
    return fits ? 1 : reportWrongType(path, errors, expectedTypes, actual)
  }
}

const NumberFormats = new Set(['int32', 'int64', 'float', 'double'])

function compileString({ minLength, maxLength, pattern, format }: JSONSchema): Check<string> | undefined {
  const matcher = pattern === undefined || pattern === '' ? undefined : compilePattern(pattern)
  const matchesFormat = format === undefined ? undefined : formatCheck(format)
  if (minLength === undefined && maxLength === undefined && !matcher && !matchesFormat) return undefined
  return (value, path, errors) => {
    const field = fieldOf(path)
    const fail = (detail: string) => errors.push(invalid(field, value, `${path} in body ${detail}`))
    // A character has one or two UTF-16 units, so the characters of most strings need not be counted.
    if (maxLength !== undefined && value.length > maxLength && codePoints(value) > maxLength)
      errors.push(tooLong(field, maxLength))
    else if (minLength !== undefined && value.length < 2 * Number(minLength) && codePoints(value) < minLength) {
      fail(`should be at least ${minLength} chars long`)
    } else if (matcher && !matcher.test(value)) {
      fail(`should match '${matcher.error === undefined ? pattern : `${pattern}, but pattern is invalid: ${matcher.error}`}'`)
    }
    if (matchesFormat && !matchesFormat(value)) {
      errors.push(typeInvalid(field, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`))
    }
    return matchesFormat ? 2 : 1
  }
}

/** Length in characters, as Go counts them. */
function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

function compileNumber(schema: JSONSchema, type: string | undefined): Check<number | bigint> | undefined {
  const { exclusiveMinimum, exclusiveMaximum, format } = schema
  const [minimum, maximum, multipleOf] = [schema.minimum, schema.maximum, schema.multipleOf].map(asFloat)
  const integer = type === 'integer'
  if (!integer && minimum === undefined && maximum === undefined && multipleOf === undefined) return undefined
  const limit = format === 'int32' ? 2 ** 31 : 2 ** 63
  // Upstream: the lowest integer is out of range if the value is a float.
  const inRange = (value: number | bigint) =>
    isInt64(value) ? value >= -limit && value < limit : Number.isInteger(value) && value > -limit && value < limit
  const withFormat = format === undefined ? '(default format)' : `with format ${format}`
  return (value, path, errors) => {
    const field = fieldOf(path)
    // For a float, limits are printed as floats, too.
    const print = isInt64(value) ? String : goFloat
    const fail = (detail: string) =>
      errors.push({ type: 'FieldValueInvalid', field, text: `Invalid value: ${print(value)}: ${path} in body ${detail}` })
    if (integer && !inRange(value)) errors.push(withoutField(`Checked value must be of type integer ${withFormat} in ${path}`))
    if (multipleOf !== undefined && isInt64(value) && Math.abs(multipleOf) < 1) {
      // For an integer value, upstream converts the factor to an integer, which is 0 here.
      const text = `Invalid value: 0: factor MultipleOf declared for ${path} must be positive: 0`
      errors.push({ type: 'FieldValueInvalid', field, text })
    } else if (multipleOf !== undefined && !isMultiple(value, multipleOf)) fail(`should be a multiple of ${print(multipleOf)}`)
    if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
      fail(`should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${print(minimum)}`)
    }
    if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
      fail(`should be less than ${exclusiveMaximum ? '' : 'or equal to '}${print(maximum)}`)
    }
    return 2
  }
}

/** Converts a limit to a float, in which limits are compared. A CRD may declare a limit as an exact integer (bigint). */
const asFloat = (limit: number | undefined): number | undefined => (limit === undefined ? undefined : Number(limit))

/**
 * Reports whether a value is a multiple of a factor. For an integer, the factor is converted to an integer, as upstream does. For a float, the
 * absolute value of the quotient must be an integer below 2^53.
 */
function isMultiple(value: number | bigint, factor: number): boolean {
  if (isInt64(value)) return BigInt(value) % BigInt(Math.trunc(factor)) === 0n
  const float = Number(value)
  return Number.isSafeInteger(factor < 1 ? (1 / factor) * float : float / factor)
}

function compileEnum(values: readonly unknown[]): Check<unknown> {
  const texts = values.map((value) => (typeof value === 'string' ? value : writeJSON(value)))
  const allowed = new Set(values.map(valueKey))
  return (value, path, errors) => {
    if (allowed.has(valueKey(value))) return 1
    errors.push(notSupported(fieldOf(path), value, texts))
    return 0
  }
}

type Walk<T> = (value: T, path: string, errors: FieldError[], old: Old) => number

function compileItems(schema: JSONSchema): Walk<readonly unknown[]> {
  const { minItems, maxItems, items } = schema
  const validateItem = items ? compileValidate(items) : undefined
  const keys = schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined
  return (list, path, errors, old) => {
    let count = 1
    if (validateItem) {
      const oldItem = keys && Array.isArray(old?.value) ? itemsByKey(old.value, keys) : undefined
      for (let index = 0; index < list.length; index++) {
        count += validateItem(list[index], `${path}[${index}]`, errors, oldItem?.(list[index]))
      }
    }
    const field = fieldOf(path)
    if (minItems !== undefined && list.length < minItems) {
      errors.push(invalid(field, list.length, `${path} in body should have at least ${minItems} items`))
    }
    if (maxItems !== undefined && list.length > maxItems) errors.push(tooMany(field, list.length, maxItems))
    return count
  }
}

/** Returns a function that finds the item of `list` with the same key values as a given item. */
export function itemsByKey(list: readonly unknown[], keys: readonly string[]): (item: unknown) => Old {
  const keyOf = (item: unknown) => (isRecord(item) ? writeJSON(keys.map((key) => item[key] ?? null)) : undefined)
  const items = new Map<string, unknown>()
  for (const item of list) {
    const key = keyOf(item)
    if (key !== undefined) items.set(key, item)
  }
  return (item) => {
    const key = keyOf(item)
    return key !== undefined && items.has(key) ? { value: items.get(key) } : undefined
  }
}

function compileMembers(schema: JSONSchema): Walk<Record<string, unknown>> {
  const { minProperties, maxProperties, additionalProperties } = schema
  const members = Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    validate: compileValidate(property),
  }))
  const declared = new Set(members.map(({ name }) => name))
  const validateOther = typeof additionalProperties === 'object' ? compileValidate(additionalProperties) : undefined
  const mandatory = schema.required ?? []
  return (object, path, errors, old) => {
    let count = 1
    const field = fieldOf(path)
    const oldObject = isRecord(old?.value) ? old.value : undefined
    const oldOf = (name: string): Old => (oldObject && Object.hasOwn(oldObject, name) ? { value: oldObject[name] } : undefined)
    if (minProperties !== undefined || maxProperties !== undefined) {
      const size = Object.keys(object).length
      if (minProperties !== undefined && size < minProperties) {
        errors.push(invalid(field, size, `${path} in body should have at least ${minProperties} properties`))
      }
      if (maxProperties !== undefined && size > maxProperties) errors.push(tooMany(field, size, maxProperties))
    }
    if (validateOther || additionalProperties === false) {
      for (const name of Object.keys(object)) {
        if (declared.has(name)) continue
        if (validateOther) count += validateOther(object[name], `${path}.${name}`, errors, oldOf(name))
        else errors.push(invalid(field, name, `${path}.${name} in body is a forbidden property`))
      }
    }
    for (const { name, validate } of members) {
      if (!Object.hasOwn(object, name) || object[name] === undefined) continue
      count += validate(object[name], path === '' ? name : `${path}.${name}`, errors, oldOf(name))
    }
    for (const name of mandatory) {
      if (!Object.hasOwn(object, name) || object[name] === undefined) errors.push(required(fieldOf(`${path}.${name}`)))
    }
    return count
  }
}

function compileJunctors(schema: JSONSchema): Walk<unknown> | undefined {
  const { allOf, anyOf, oneOf, not } = schema
  if (!allOf && !anyOf && !oneOf && !not) return undefined
  const allOfBranches = allOf?.map(compileValidate) ?? []
  const any = anyOf?.map(compileValidate) ?? []
  const exactlyOne = oneOf?.map(compileValidate) ?? []
  const none = not ? compileValidate(not) : undefined
  return (value, path, errors) => {
    const quoted = JSON.stringify(path)
    let count = 1
    if (any.length > 0) {
      const branches = tryBranches(any, value, path, true)
      const valid = branches.find((branch) => branch.errors.length === 0)
      if (!valid) errors.push(withoutField(`${quoted} must validate at least one schema (anyOf)`))
      const selected = valid ?? closest(branches)
      appendAll(errors, selected.errors)
      count += selected.count
    }
    if (exactlyOne.length > 0) {
      const branches = tryBranches(exactlyOne, value, path, false)
      const valid = branches.filter((branch) => branch.errors.length === 0)
      if (valid.length === 1) count += valid[0]!.count
      else {
        const summary = valid.length === 0 ? 'Found none valid' : `Found ${valid.length} valid alternatives`
        errors.push(withoutField(`${quoted} must validate one and only one schema (oneOf). ${summary}`))
        if (valid.length === 0) appendAll(errors, closest(branches).errors)
      }
    }
    if (allOfBranches.length > 0) {
      const branches = tryBranches(allOfBranches, value, path, false)
      const valid = branches.filter((branch) => branch.errors.length === 0).length
      for (const branch of branches) {
        appendAll(errors, branch.errors)
        count += branch.count
      }
      if (valid !== allOfBranches.length) {
        errors.push(withoutField(`${quoted} must validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`))
      }
    }
    if (none && tryBranches([none], value, path, false)[0]!.errors.length === 0) {
      errors.push(withoutField(`${quoted} must not validate the schema (not)`))
    }
    return count
  }
}

interface Branch {
  readonly errors: FieldError[]
  readonly count: number
}

function tryBranches(schemas: readonly Validate[], value: unknown, path: string, untilValid: boolean): Branch[] {
  const branches: Branch[] = []
  for (const validate of schemas) {
    const errors: FieldError[] = []
    branches.push({ count: validate(value, path, errors, undefined), errors })
    if (untilValid && errors.length === 0) break
  }
  return branches
}

/** Returns the branch that fits best: the first of those with the highest count of checks. */
const closest = (branches: readonly Branch[]): Branch =>
  branches.reduce((best, branch) => (branch.count > best.count ? branch : best))
