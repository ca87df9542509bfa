/**
 * Validates objects by the CEL rules of their schema. Rules of outer values are evaluated before rules of inner values; parts that an
 * update leaves unchanged are not validated (ratcheting), except by transition rules. Upstream: apiextensions-apiserver
 * pkg/apiserver/schema/cel/validation.go, v0.36.
 */
import { atOnce, type Work } from '../clock.ts'
import { duplicate, type FieldError, forbidden, invalid, required } from '../errors.ts'
import { equal, isRecord } from '../json.ts'
import type { JSONSchema, ValidationRule } from '../schema.ts'
import { itemsByKey, type Old } from '../structural/validate.ts'
import { type CompiledRule, compileRules } from './rules.ts'

/**
 * Evaluates rules for an object, in pieces, and returns the errors. The object must be valid by its schema, because rules rely on the types
 * of the schema.
 */
export type ValidateRules = (object: object, old: object | undefined, options?: RuleOptions) => Work<RuleError[]>

export interface RuleOptions {
  /** False to validate unchanged parts of an update, too. Default true. */
  readonly ratcheting?: boolean
  /** True to return only errors of unchanged parts, which ratcheting otherwise suppresses. Default false. */
  readonly onlyUnchanged?: boolean
}

/**
 * Error of a rule that fails or cannot be evaluated. `detail` is the text without the field and the value: the message of the failed rule, or
 * the error of its compilation, evaluation or cost limit.
 */
export interface RuleError extends FieldError {
  readonly detail: string
}

/**
 * Returns the validator of a schema; `undefined` when the schema contains no rules. Rules are compiled when the first object is validated.
 */
export function rulesValidator(schema: JSONSchema): ValidateRules | undefined {
  if (!hasRules(schema)) return undefined
  let check: Check | undefined
  return function* (object, old, { ratcheting = true, onlyUnchanged = false } = {}) {
    check ??= compileCheck(schema, true)
    const state: State = { errors: [], budget: BudgetOfObject, budgetAtYield: BudgetOfObject, ratcheting, onlyUnchanged }
    if (check) yield* check.run(object, '', state, { old: old === undefined ? undefined : { value: old }, isUnchanged: false })
    return state.errors
  }
}

/**
 * Returns errors of a single value in a schema, such as a default. Upstream: the value is validated as an update from itself, so that
 * transition rules run as well; without errors, it is also validated as a create.
 */
export function ruleErrorsOfValue(schema: JSONSchema, value: unknown): RuleError[] {
  const check = compileCheck(schema, false)
  const errorsWith = (old: Old): RuleError[] => {
    const budget = BudgetOfObject
    const state: State = { errors: [], budget, budgetAtYield: budget, ratcheting: false, onlyUnchanged: false }
    if (check) atOnce(check.run(value, '', state, { old, isUnchanged: false }))
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
/** Cost of the rules that are evaluated in one piece of work; a single rule may cost more. */
const CostOfPiece = 50_000

interface State {
  readonly errors: RuleError[]
  readonly ratcheting: boolean
  readonly onlyUnchanged: boolean
  /** Remaining cost for further rules of the object; negative once the limit is exceeded, which stops the evaluation. */
  budget: number
  /** The budget when other work could last run. */
  budgetAtYield: number
}

/** The old value that a value is compared with, if it can be correlated. */
interface Before {
  readonly old: Old
  /**
   * True when the value is unchanged. A value that cannot be correlated is unchanged when its container is. `run` is called with false for
   * a value that can be correlated, and with ratcheting it then compares the value.
   */
  readonly isUnchanged: boolean
}

interface Check {
  /** Whether the schema or an inner schema has transition rules. */
  readonly usesOldSelf: boolean
  run(value: unknown, path: string, state: State, before: Before): Work<void>
}

/** Returns the check of a schema and its inner schemas; `undefined` when they have no rules. */
function compileCheck(schema: JSONSchema, isRoot: boolean): Check | undefined {
  if (!hasRules(schema)) return undefined
  const ownRules = schema['x-kubernetes-validations']?.length ? compileRules(schema, isRoot) : undefined
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const check = compileCheck(property, false)
    return check ? [{ name, check }] : []
  })
  const additional =
    typeof schema.additionalProperties === 'object' ? compileCheck(schema.additionalProperties, false) : undefined
  const item = schema.items && compileCheck(schema.items, false)
  const keys = schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined
  // Items that cannot be correlated are compared as part of their container.
  const isCompared = ownRules !== undefined || (item !== undefined && !keys)
  const innerChecks = [...members.map(({ check }) => check), additional, item]
  const usesOldSelf = (ownRules?.some((rule) => rule.usesOldSelf) ?? false) || innerChecks.some((check) => check?.usesOldSelf)

  const run: Check['run'] = function* (value, path, state, before) {
    if (value === null || value === undefined || state.budget < 0) return
    const old = before.old?.value === null || before.old?.value === undefined ? undefined : before.old
    const isUnchanged = before.isUnchanged || (state.ratcheting && old !== undefined && isSame(value, old.value, isCompared))
    if (isUnchanged && !usesOldSelf && !state.onlyUnchanged) return
    if (ownRules) for (const rule of ownRules) checkRule(rule, schema, { value, path, state, before: { old, isUnchanged } })
    if (state.budgetAtYield - state.budget > CostOfPiece) {
      state.budgetAtYield = state.budget
      yield
    }
    // Values that cannot be correlated are unchanged when their container is.
    const beforeOf = (oldValue: Old): Before => ({ old: oldValue, isUnchanged: oldValue === undefined && isUnchanged })
    if (Array.isArray(value)) {
      if (!item) return
      const oldItem = keys && Array.isArray(old?.value) ? itemsByKey(old.value, keys) : undefined
      for (let index = 0; index < value.length; index++) {
        yield* item.run(value[index], `${path}[${index}]`, state, beforeOf(oldItem?.(value[index])))
      }
      return
    }
    if (!isRecord(value)) return
    const oldRecord = isRecord(old?.value) ? old.value : undefined
    const oldOf = (name: string): Old => (oldRecord && Object.hasOwn(oldRecord, name) ? { value: oldRecord[name] } : undefined)
    if (additional)
      for (const name of Object.keys(value)) yield* additional.run(value[name], `${path}[${name}]`, state, beforeOf(oldOf(name)))
    for (const { name, check } of members) {
      if (Object.hasOwn(value, name))
        yield* check.run(value[name], path === '' ? name : `${path}.${name}`, state, beforeOf(oldOf(name)))
    }
  }
  return { usesOldSelf, run }
}

/** Compares content if `isCompared`, otherwise only identity: if each level compared content, inner levels would be compared repeatedly. */
const isSame = (value: unknown, old: unknown, isCompared: boolean): boolean => value === old || (isCompared && equal(value, old))

interface Subject {
  readonly value: unknown
  readonly path: string
  readonly state: State
  readonly before: Before
}

function checkRule(compiled: CompiledRule, schema: JSONSchema, { value, path, state, before }: Subject): void {
  const { rule, usesOldSelf } = compiled
  if (state.budget < 0) return
  // Ratcheting: an unchanged value may violate rules, which may be newer than the object.
  const isSuppressed = before.isUnchanged && !usesOldSelf
  if (isSuppressed !== state.onlyUnchanged) return
  if (usesOldSelf && !before.old && !rule.optionalOldSelf) return
  const field = path === '' ? '<nil>' : path
  const reportError = (detail: string) => state.errors.push({ ...invalid(field, schema.type ?? '', detail), detail })
  if (compiled.error !== undefined) {
    reportError(`rule compile error: ${compiled.error}`)
    return
  }
  if (!compiled.evaluate) return
  const result = compiled.evaluate(value, before.old, BudgetOfCall)
  state.budget -= result.cost
  if (result.kind === 'out of budget') {
    reportError(`'${OutOfBudget}': ${TooCostly} rule: ${nameOf(rule)}`)
    state.budget = -1
    return
  }
  if (state.budget < 0) {
    reportError('validation failed due to running out of cost budget, no further validation rules will be run')
    return
  }
  if (result.kind === 'error') {
    const isOverloadError = result.message.startsWith('no such overload')
    reportError(
      isOverloadError
        ? `'${result.message}': call arguments did not match a supported operator, function or macro signature for rule: ${nameOf(rule)}`
        : `${result.message} evaluating rule: ${nameOf(rule)}`,
    )
    return
  }
  if (result.value === true) return
  const computed = compiled.message?.(value, before.old, BudgetOfCall)
  state.budget -= computed?.cost ?? 0
  if (computed?.isOutOfBudget) {
    reportError(`${TooCostly} messageExpression: ${JSON.stringify(rule.messageExpression)}`)
    state.budget = -1
    return
  }
  const message = computed?.text ?? (rule.message ? rule.message.trim() : `failed rule: ${rule.rule.trim()}`)
  state.errors.push({ ...ruleError(rule, appendFieldPath(path, rule.fieldPath), schema, value, message), detail: message })
}

const OutOfBudget = 'operation cancelled: actual cost limit exceeded'
const TooCostly = 'no further validation rules will be run due to call cost exceeds limit for'

const nameOf = ({ rule, message }: ValidationRule): string => (message ? message : rule).trim()

function ruleError({ reason }: ValidationRule, field: string, { type }: JSONSchema, value: unknown, message: string): FieldError {
  if (reason === 'FieldValueForbidden') return forbidden(field, message)
  if (reason === 'FieldValueRequired') return required(field, message)
  // Upstream: objects and lists are left out of the text.
  const isShown = type !== 'object' && type !== 'array'
  if (reason === 'FieldValueDuplicate')
    return isShown ? duplicate(field, value) : { type: 'FieldValueDuplicate', field, text: 'Duplicate value' }
  if (isShown) return invalid(field, value, message)
  return { type: 'FieldValueInvalid', field, text: `Invalid value: ${message}` }
}

/** Appends the field path of a rule (`.max`, `['a.b']`) to the path of the value: `spec.max`, `spec[a.b]`. */
function appendFieldPath(path: string, fieldPath: string | undefined): string {
  const relativePath = (fieldPath ?? '').trim().replaceAll(/\['([^']*)'\]/g, '[$1]')
  const fullPath = path + relativePath
  return fullPath === '' ? '<nil>' : fullPath.replace(/^\./, '')
}
