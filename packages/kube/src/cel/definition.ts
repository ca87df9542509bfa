/**
 * Rules as they are written in a definition: their form, and whether they compile.
 * Upstream: apiextensions-apiserver pkg/apis/apiextensions/validation, v0.36.
 */
import { type FieldError, invalid, notSupported, required } from '../errors.ts'
import type { JSONSchema, ValidationRule } from '../schema.ts'
import { compileRules } from './rules.ts'

export interface RulesOfDefinition {
  /** Where the schema stands in the definition. */
  readonly path: string
  /** False when the schema itself is wrong: types of expressions come from it. */
  readonly canCompile: boolean
  /** The schema is that of a whole object, whose rules see its name too. */
  readonly isRoot: boolean
}

/** What is wrong with the rules of a schema and of all within. */
export function ruleErrors(schema: JSONSchema, place: RulesOfDefinition): FieldError[] {
  const errors: FieldError[] = []
  checkAllRules(schema, { ...place, uncorrelatable: undefined }, errors)
  return errors
}

interface Place extends RulesOfDefinition {
  /** The list around this whose items cannot be told from each other, so that none of them has an old value. */
  readonly uncorrelatable: string | undefined
}

/** Inner schemas come first: rules are compiled only where the form of all below is right. The answer says whether it is. */
function checkAllRules(schema: JSONSchema, place: Place, errors: FieldError[]): boolean {
  const { properties, additionalProperties, items } = schema
  let isRight = place.canCompile
  const check = (part: string, inner: JSONSchema, uncorrelatable = place.uncorrelatable) => {
    const at: Place = { ...place, isRoot: false, path: `${place.path}.${part}`, uncorrelatable }
    if (!checkAllRules(inner, at, errors)) isRight = false
  }
  for (const [name, property] of Object.entries(properties ?? {})) check(`properties[${name}]`, property)
  if (typeof additionalProperties === 'object') check('additionalProperties', additionalProperties)
  if (items) check('items', items, schema['x-kubernetes-list-type'] === 'map' ? place.uncorrelatable : place.path)

  const rules = schema['x-kubernetes-validations']
  if (!rules || rules.length === 0) return isRight
  const before = errors.length
  rules.forEach((rule, index) => checkForm(rule, schema, `${place.path}.x-kubernetes-validations[${index}]`, errors))
  if (errors.length > before) return false
  if (isRight) checkRules(schema, place, errors)
  return isRight
}

const RuleReasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

function checkRules(schema: JSONSchema, place: Place, errors: FieldError[]): void {
  compileRules(schema, place.isRoot).forEach(({ rule, error, messageError, usesOldSelf }, index) => {
    const at = `${place.path}.x-kubernetes-validations[${index}]`
    if (error !== undefined) errors.push(invalid(`${at}.rule`, printedRule(rule), error))
    if (messageError !== undefined) errors.push(invalid(`${at}.messageExpression`, printedRule(rule), messageError))
    if (usesOldSelf && place.uncorrelatable !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.uncorrelatable}`
      errors.push(invalid(`${at}.rule`, rule.rule, why))
    }
  })
}

/** A rule as Go prints it. */
const printedRule = ({ rule, message, messageExpression, reason, fieldPath, optionalOldSelf }: ValidationRule): unknown => ({
  Rule: rule,
  Message: message ?? '',
  MessageExpression: messageExpression ?? '',
  Reason: reason ?? null,
  FieldPath: fieldPath ?? '',
  OptionalOldSelf: optionalOldSelf ?? null,
})

function checkForm(validation: ValidationRule, schema: JSONSchema, at: string, errors: FieldError[]): void {
  const { rule, message, messageExpression, reason, fieldPath } = validation
  if (!rule?.trim()) errors.push(required(`${at}.rule`, 'rule is not specified'))
  if (message !== undefined && message !== '') {
    if (message.trim() === '') errors.push(invalid(`${at}.message`, message, 'message must be non-empty if specified'))
    else if (/[\n\r]/.test(message)) errors.push(invalid(`${at}.message`, message, 'must not contain line breaks'))
  } else if (rule && /[\n\r]/.test(rule) && !messageExpression) {
    const why = 'message or messageExpression must be specified if rule contains line breaks'
    errors.push(required(`${at}.message`, why))
  }
  if (reason !== undefined && !RuleReasons.includes(reason)) errors.push(notSupported(`${at}.reason`, reason, RuleReasons))
  if (fieldPath !== undefined && !leadsSomewhere(schema, fieldPath)) {
    errors.push(invalid(`${at}.fieldPath`, fieldPath, 'must be a valid path'))
  }
}

/** `.a.b`, `.a['b']`: a path to a member that the schema declares. */
function leadsSomewhere(schema: JSONSchema, fieldPath: string): boolean {
  const members = fieldPath.match(/\.[A-Za-z_][\w-]*|\['[^']+'\]/g) ?? []
  if (members.length === 0 || members.join('') !== fieldPath) return false
  let at: JSONSchema = schema
  for (const member of members) {
    const name = member.startsWith('.') ? member.slice(1) : member.slice(2, -2)
    const next = memberSchema(at, name)
    if (!next) return false
    at = next
  }
  return true
}

const memberSchema = ({ properties, additionalProperties }: JSONSchema, name: string): JSONSchema | undefined =>
  properties?.[name] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
