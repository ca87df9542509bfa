/**
 * Objects against the rules of their schema. Outer rules come before inner ones; what an update left as it was is not held against
 * it, except by rules about changes. Upstream: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go, v1.36.
 */
import { duplicate, type FieldError, forbidden, invalid, required } from '../errors.ts'
import { equal, isRecord } from '../json.ts'
import type { JSONSchema, ValidationRule } from '../schema.ts'
import { itemsByKey, type Old } from '../structural/validate.ts'
import { type CompiledRule, compileRules } from './rules.ts'

/** What is wrong with an object by its rules. The object is valid otherwise: rules rely on the types that the schema gives. */
export type ValidateRules = (object: object, old: object | undefined, options?: RuleOptions) => RuleError[]

export interface RuleOptions {
  /** False when what an update leaves as it was has to keep to the rules too. */
  readonly ratcheting?: boolean
  /** True to hear only of what an update leaves as it was: it was wrong before, and is not held against the update. */
  readonly isOnlyUnchanged?: boolean
}

/** A rule that is broken, with what is said about it apart from the value. */
export interface RuleError extends FieldError {
  readonly detail: string
}

/** `undefined` when no schema in it has rules. Rules are compiled when an object first meets them. */
export function rulesValidator(schema: JSONSchema): ValidateRules | undefined {
  if (!hasRules(schema)) return undefined
  let check: Check | undefined
  return (object, old, { ratcheting = true, isOnlyUnchanged = false } = {}) => {
    check ??= compileCheck(schema, true)
    const state: State = { errors: [], budget: BudgetOfObject, ratcheting, isOnlyUnchanged }
    check?.run(object, '', state, { old: old === undefined ? undefined : { value: old }, isUnchanged: false })
    return state.errors
  }
}

/**
 * The rules that a value breaks which stands somewhere in an object, as a default does. Upstream: it is taken as an update from itself,
 * so that rules about changes are asked as well; if that breaks none, as something new.
 */
export function brokenRules(schema: JSONSchema, value: unknown): RuleError[] {
  const check = compileCheck(schema, false)
  const errorsWith = (old: Old): RuleError[] => {
    const state: State = { errors: [], budget: BudgetOfObject, ratcheting: false, isOnlyUnchanged: false }
    check?.run(value, '', state, { old, isUnchanged: false })
    return state.errors
  }
  const asUpdate = errorsWith({ value })
  return asUpdate.length > 0 ? asUpdate : errorsWith(undefined)
}

export const hasRules = ({ properties, items, additionalProperties, 'x-kubernetes-validations': rules }: JSONSchema): boolean =>
  (rules?.length ?? 0) > 0 ||
  (items !== undefined && hasRules(items)) ||
  (typeof additionalProperties === 'object' && hasRules(additionalProperties)) ||
  Object.values(properties ?? {}).some(hasRules)

const BudgetOfObject = 10_000_000
const BudgetOfCall = 1_000_000

interface State {
  readonly errors: RuleError[]
  readonly ratcheting: boolean
  readonly isOnlyUnchanged: boolean
  /** What is left for all rules of the object; negative once nothing is evaluated any more. */
  budget: number
}

/** What a value is compared with: the value it was, if it can be told which that is. */
interface Before {
  readonly old: Old
  /** Something around the value is as it was, and so is the value. */
  readonly isUnchanged: boolean
}

interface Check {
  /** Some rule of the schema or below is about changes. */
  readonly usesOldSelf: boolean
  run(value: unknown, path: string, state: State, before: Before): void
}

/** `undefined` where nothing is to be checked. */
function compileCheck(schema: JSONSchema, isRoot: boolean): Check | undefined {
  if (!hasRules(schema)) return undefined
  const own = schema['x-kubernetes-validations']?.length ? compileRules(schema, isRoot) : undefined
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const check = compileCheck(property, false)
    return check ? [{ name, check }] : []
  })
  const others = typeof schema.additionalProperties === 'object' ? compileCheck(schema.additionalProperties, false) : undefined
  const item = schema.items && compileCheck(schema.items, false)
  const keys = schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined
  // Where values cannot be told apart, it is what they are in that is as it was or not.
  const isCompared = own !== undefined || (item !== undefined && !keys)
  const inside = [...members.map(({ check }) => check), others, item]
  const usesOldSelf = (own?.some((rule) => rule.usesOldSelf) ?? false) || inside.some((check) => check?.usesOldSelf)

  const run: Check['run'] = (value, path, state, before) => {
    if (value === null || value === undefined || state.budget < 0) return
    const old = before.old?.value === null || before.old?.value === undefined ? undefined : before.old
    const isUnchanged = before.isUnchanged || (state.ratcheting && old !== undefined && same(value, old.value, isCompared))
    if (isUnchanged && !usesOldSelf && !state.isOnlyUnchanged) return
    if (own) for (const rule of own) checkRule(rule, schema, { value, path, state, before: { old, isUnchanged } })
    // Values that cannot be told from others share the fate of what they are in.
    const inner = (oldValue: Old): Before => ({ old: oldValue, isUnchanged: oldValue === undefined && isUnchanged })
    if (Array.isArray(value)) {
      if (!item) return
      const oldItem = keys && Array.isArray(old?.value) ? itemsByKey(old.value, keys) : undefined
      for (let index = 0; index < value.length; index++) {
        item.run(value[index], `${path}[${index}]`, state, inner(oldItem?.(value[index])))
      }
      return
    }
    if (!isRecord(value)) return
    const oldRecord = isRecord(old?.value) ? old.value : undefined
    const oldOf = (name: string): Old => (oldRecord && Object.hasOwn(oldRecord, name) ? { value: oldRecord[name] } : undefined)
    if (others) for (const name of Object.keys(value)) others.run(value[name], `${path}[${name}]`, state, inner(oldOf(name)))
    for (const { name, check } of members) {
      if (Object.hasOwn(value, name)) check.run(value[name], path === '' ? name : `${path}.${name}`, state, inner(oldOf(name)))
    }
  }
  return { usesOldSelf, run }
}

/** Identity is looked at everywhere, contents only where it matters: otherwise each level would compare all below it again. */
const same = (value: unknown, old: unknown, isCompared: boolean): boolean => value === old || (isCompared && equal(value, old))

interface Subject {
  readonly value: unknown
  readonly path: string
  readonly state: State
  readonly before: Before
}

function checkRule(compiled: CompiledRule, schema: JSONSchema, { value, path, state, before }: Subject): void {
  const { rule, usesOldSelf } = compiled
  if (state.budget < 0) return
  // What is as it was may break the rules, which may be newer than the object.
  const isHeldAgainst = usesOldSelf || !before.isUnchanged
  if (isHeldAgainst === state.isOnlyUnchanged) return
  if (usesOldSelf && !before.old && !rule.optionalOldSelf) return
  const field = path === '' ? '<nil>' : path
  const wrong = (detail: string) => state.errors.push({ ...invalid(field, schema.type ?? '', detail), detail })
  if (compiled.error !== undefined) {
    wrong(`rule compile error: ${compiled.error}`)
    return
  }
  if (!compiled.evaluate) return
  const result = compiled.evaluate(value, before.old, BudgetOfCall)
  state.budget -= result.cost
  if (result.kind === 'out of budget') {
    wrong(`'${OutOfBudget}': ${TooCostly} rule: ${nameOf(rule)}`)
    state.budget = -1
    return
  }
  if (state.budget < 0) {
    wrong('validation failed due to running out of cost budget, no further validation rules will be run')
    return
  }
  if (result.kind === 'error') {
    const hint = result.message.startsWith('no such overload')
    wrong(
      hint
        ? `'${result.message}': call arguments did not match a supported operator, function or macro signature for rule: ${nameOf(rule)}`
        : `${result.message} evaluating rule: ${nameOf(rule)}`,
    )
    return
  }
  if (result.value === true) return
  const computed = compiled.message?.(value, before.old, BudgetOfCall)
  state.budget -= computed?.cost ?? 0
  if (computed?.isOutOfBudget) {
    wrong(`${TooCostly} messageExpression: ${JSON.stringify(rule.messageExpression)}`)
    state.budget = -1
    return
  }
  const message = computed?.text ?? (rule.message ? rule.message.trim() : `failed rule: ${rule.rule.trim()}`)
  state.errors.push({ ...failed(rule, joined(path, rule.fieldPath), schema, value, message), detail: message })
}

const OutOfBudget = 'operation cancelled: actual cost limit exceeded'
const TooCostly = 'no further validation rules will be run due to call cost exceeds limit for'

const nameOf = ({ rule, message }: ValidationRule): string => (message ? message : rule).trim()

function failed({ reason }: ValidationRule, field: string, { type }: JSONSchema, value: unknown, message: string): FieldError {
  if (reason === 'FieldValueForbidden') return forbidden(field, message)
  if (reason === 'FieldValueRequired') return required(field, message)
  // Upstream: objects and lists are left out of the text.
  const isShown = type !== 'object' && type !== 'array'
  if (reason === 'FieldValueDuplicate')
    return isShown ? duplicate(field, value) : { type: 'FieldValueDuplicate', field, text: 'Duplicate value' }
  if (isShown) return invalid(field, value, message)
  return { type: 'FieldValueInvalid', field, text: `Invalid value: ${message}` }
}

/** `.max` and `['a.b']` behind the path of the value: `spec.max`, `spec[a.b]`. */
function joined(path: string, fieldPath: string | undefined): string {
  const below = (fieldPath ?? '').trim().replaceAll(/\['([^']*)'\]/g, '[$1]')
  const whole = path + below
  return whole === '' ? '<nil>' : whole.replace(/^\./, '')
}
