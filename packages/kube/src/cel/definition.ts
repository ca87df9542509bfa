/**
 * Validates the rules (`x-kubernetes-validations`) in the schemas of CustomResourceDefinitions and ClusterClass variables: their form,
 * compilation and estimated cost. Also validates the default values by the rules.
 * Upstream: apiextensions-apiserver pkg/apis/apiextensions/validation, v0.36.
 */
import { type FieldError, forbidden, invalid, notSupported, required } from '../errors.ts'
import type { JSONSchema, ValidationRule } from '../schema.ts'
import { declaredSize, mostOccurrences } from './declared-size.ts'
import { compileRules } from './rules.ts'
import { ruleErrorsOfValue, hasRules } from './validate-rules.ts'

/** Properties of a schema that affect the validation of its rules. */
export interface RulesContext {
  /** Path of the schema in its CustomResourceDefinition or ClusterClass. */
  readonly path: string
  /** False when the schema itself is invalid. Rules are then not compiled, because their types are derived from the schema. */
  readonly canCompile: boolean
  /** Whether the schema describes a whole object. Its rules can also read apiVersion, kind, `metadata.name` and `metadata.generateName`. */
  readonly isRoot: boolean
  /** Whether the schema is that of a ClusterClass variable. Some checks and error texts of Cluster API differ from those for a CRD. */
  readonly isVariable?: boolean
  /** Whether the stored CRD has the same schema. If so, the cost limit of single expressions is not checked. */
  readonly isUnchanged?: boolean
}

/** Returns the validation errors of the rules of a schema and all schemas within it, and of default values that violate rules. */
export function ruleErrors(schema: JSONSchema, context: RulesContext): FieldError[] {
  const findings: Findings = { form: [], rules: [], costs: [] }
  checkAllRules(schema, { ...context, uncorrelatable: undefined, occurrences: 1 }, findings)
  if (context.canCompile && findings.form.length + findings.rules.length === 0)
    checkDefaults(schema, context.path, findings.rules)
  return [...findings.form, ...findings.rules, ...totalErrors(findings.costs, context)]
}

/** Appends errors for default values that violate rules. */
function checkDefaults(schema: JSONSchema, path: string, errors: FieldError[]): void {
  const { properties, additionalProperties, items, default: value } = schema
  if (value !== undefined && value !== null && hasRules(schema)) {
    for (const { detail: _, ...error } of ruleErrorsOfValue(schema, value))
      errors.push({ ...error, field: error.field === '<nil>' ? `${path}.default` : `${path}.default.${error.field}` })
  }
  for (const [name, property] of Object.entries(properties ?? {})) checkDefaults(property, `${path}.properties[${name}]`, errors)
  if (typeof additionalProperties === 'object') checkDefaults(additionalProperties, `${path}.additionalProperties`, errors)
  if (items) checkDefaults(items, `${path}.items`, errors)
}

/**
 * Limits of the estimated cost of one expression, and of all expressions in a schema and its inner schemas. Upstream:
 * StaticEstimatedCostLimit and StaticEstimatedCRDCostLimit.
 */
const CostLimit = 10_000_000
const CostLimitOfDefinition = 100_000_000

interface Findings {
  readonly form: FieldError[]
  readonly rules: FieldError[]
  readonly costs: { readonly field: string; readonly cost: number }[]
}

interface SchemaContext extends RulesContext {
  /**
   * Path of the outermost surrounding list whose items cannot be correlated with old items. Values inside this list have no old value. For
   * a ClusterClass variable, the path of the items of this list. `undefined` without such a list.
   */
  readonly uncorrelatable: string | undefined
  /** Maximum number of values of this schema in one object; `undefined` when a list or map around it has no limit. */
  readonly occurrences: number | undefined
}

/**
 * Validates the rules of a schema after those of its inner schemas. The rules of a schema are compiled only if the rules of all inner
 * schemas have a valid form.
 * Returns whether the rules of the schema and its inner schemas have a valid form; always false if `canCompile` is false.
 */
function checkAllRules(schema: JSONSchema, context: SchemaContext, findings: Findings): boolean {
  const { properties, additionalProperties, items } = schema
  const members = mostMembers(schema)
  const occurrences = context.occurrences === undefined || members === undefined ? undefined : context.occurrences * members
  let isValid = context.canCompile
  const check = (part: string, inner: JSONSchema, isCorrelated = true) => {
    const isRoot = inner['x-kubernetes-embedded-resource'] === true
    const uncorrelatable = context.uncorrelatable ?? (isCorrelated ? undefined : uncorrelatablePath(context))
    if (!checkAllRules(inner, { ...context, isRoot, path: `${context.path}.${part}`, uncorrelatable, occurrences }, findings))
      isValid = false
  }
  for (const [name, property] of Object.entries(properties ?? {})) check(`properties[${name}]`, property)
  if (typeof additionalProperties === 'object') check('additionalProperties', additionalProperties)
  if (items) check('items', items, schema['x-kubernetes-list-type'] === 'map' && context.isVariable !== true)

  const rules = schema['x-kubernetes-validations']
  if (!rules || rules.length === 0) return isValid
  const before = findings.form.length
  rules.forEach((rule, index) =>
    checkForm(rule, schema, `${context.path}.x-kubernetes-validations[${index}]`, context, findings.form),
  )
  if (findings.form.length > before) return false
  if (isValid) checkRules(schema, context, findings)
  return isValid
}

const uncorrelatablePath = ({ path, isVariable }: SchemaContext): string => (isVariable ? `${path}.items` : path)

/**
 * Returns how many values of one inner schema a value of this schema can contain: items of a list, entries of a map, 1 for the fields of an
 * object; `undefined` without a limit. Upstream: extractMaxElements.
 */
function mostMembers({ type, additionalProperties, maxProperties, maxItems }: JSONSchema): number | undefined {
  const limit = (maximum: number | undefined) => (maximum === undefined ? undefined : Math.max(0, Number(maximum)))
  if (type === 'array') return limit(maxItems)
  return type === 'object' && additionalProperties !== undefined ? limit(maxProperties) : 1
}

const RuleReasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

function checkRules(schema: JSONSchema, context: SchemaContext, findings: Findings): void {
  const { rules: errors, costs } = findings
  const checkCost = (field: string, name: string, cost: number) => {
    if (cost > CostLimit && context.isUnchanged !== true) errors.push(forbidden(field, tooCostly(name, cost, CostLimit)))
    costs.push({ field, cost })
  }
  const size = declaredSize(schema, context.isRoot)
  compileRules(schema, context.isRoot).forEach(({ rule, error, messageError, usesOldSelf, estimates }, index) => {
    const rulePath = `${context.path}.x-kubernetes-validations[${index}]`
    const cost = size && estimates?.(size)
    if (cost) checkCost(`${rulePath}.rule`, 'estimated rule cost', cost.rule * (context.occurrences ?? mostOccurrences(size)))
    if (error !== undefined) errors.push(invalid(`${rulePath}.rule`, goRule(rule), error))
    if (messageError !== undefined) errors.push(invalid(`${rulePath}.messageExpression`, goRule(rule), messageError))
    else if (cost?.message !== undefined)
      checkCost(`${rulePath}.messageExpression`, 'estimated messageExpression cost', cost.message)
    if (usesOldSelf && context.uncorrelatable !== undefined) {
      const problem = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${context.uncorrelatable}`
      errors.push(invalid(`${rulePath}.rule`, rule.rule, problem))
    }
    if (!usesOldSelf && rule.optionalOldSelf !== undefined) {
      errors.push(invalid(`${rulePath}.optionalOldSelf`, rule.optionalOldSelf, 'may not be set if oldSelf is not used in rule'))
    }
  })
}

/** Returns errors for the most expensive rules and for the whole schema if the total cost of all rules exceeds the limit. */
function totalErrors(costs: Findings['costs'], { path, isVariable }: RulesContext): FieldError[] {
  const total = costs.reduce((sum, { cost }) => sum + cost, 0)
  if (total <= CostLimitOfDefinition) return []
  const mostExpensive = costs
    .filter(({ cost }) => cost >= CostLimitOfDefinition / 100)
    .sort((a, b) => b.cost - a.cost)
    .slice(0, 4)
  const totalText = isVariable ? 'estimated rule & messageExpression cost total' : 'estimated rule cost total'
  const problem = `contributed to ${totalText} exceeding cost limit for entire OpenAPIv3 schema`
  const totalName = `x-kubernetes-validations ${totalText} for entire OpenAPIv3 schema`
  return [
    ...mostExpensive.map(({ field }) => forbidden(field, problem)),
    forbidden(path, tooCostly(totalName, total, CostLimitOfDefinition)),
  ]
}

/** Upstream: getCostErrorMessage. */
function tooCostly(costName: string, cost: number, limit: number): string {
  const times = cost / limit
  const factor = times > 100 ? 'more than 100x' : times < 1.5 ? `${times.toFixed(6)}x` : `${times.toFixed(1)}x`
  return `${costName} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`
}

/** Returns a rule with the field names of upstream's Go type, for error texts. */
const goRule = ({ rule, message, messageExpression, reason, fieldPath, optionalOldSelf }: ValidationRule): unknown => ({
  Rule: rule,
  Message: message ?? '',
  MessageExpression: messageExpression ?? '',
  Reason: reason ?? null,
  FieldPath: fieldPath ?? '',
  OptionalOldSelf: optionalOldSelf ?? null,
})

const hasLineBreak = (text: string): boolean => /[\n\r]/.test(text)

function checkForm(
  validation: ValidationRule,
  schema: JSONSchema,
  rulePath: string,
  { isVariable }: RulesContext,
  errors: FieldError[],
): void {
  const { rule, reason, message = '', messageExpression = '', fieldPath = '' } = validation
  const invalidMember = (member: string, value: string, text: string) =>
    errors.push(invalid(`${rulePath}.${member}`, value, isVariable ? `${member} ${text}` : text))
  if (!rule.trim()) errors.push(required(`${rulePath}.rule`, 'rule is not specified'))
  else if (message !== '' && message.trim() === '') invalidMember('message', message, 'must be non-empty if specified')
  else if (isVariable && message.length > MaxMessage)
    invalidMember('message', `${message.slice(0, 10)}...`, `must have a maximum length of ${MaxMessage} characters`)
  else if (hasLineBreak(message.trim())) invalidMember('message', message, 'must not contain line breaks')
  else if (hasLineBreak(rule.trim()) && message.trim() === '')
    errors.push(required(`${rulePath}.message`, 'message must be specified if rule contains line breaks'))
  if (messageExpression !== '' && messageExpression.trim() === '')
    errors.push(required(`${rulePath}.messageExpression`, 'messageExpression must be non-empty if specified'))
  if (reason !== undefined && !RuleReasons.includes(reason)) errors.push(notSupported(`${rulePath}.reason`, reason, RuleReasons))
  if (fieldPath === '') return
  if (fieldPath.trim() === '') invalidMember('fieldPath', fieldPath, 'must be non-empty if specified')
  if (hasLineBreak(fieldPath)) invalidMember('fieldPath', fieldPath, 'must not contain line breaks')
  const problem = fieldPathProblem(schema, fieldPath)
  if (problem !== undefined)
    invalidMember('fieldPath', fieldPath, isVariable ? `must be a valid path: ${problem}` : 'must be a valid path')
}

/** Maximum length of messages of a variable's rules. */
const MaxMessage = 2048

/**
 * Returns why a field path (`.a.b`, `.a['b']`) does not lead to a field that the schema declares; `undefined` for a valid path. Upstream:
 * ValidFieldPath.
 */
function fieldPathProblem(schema: JSONSchema, fieldPath: string): string | undefined {
  const undeclared = 'does not refer to a valid field'
  const ended = 'unexpected end of JSON path'
  const tokens = fieldPath.match(/[.[\]]|'(?:[^'\\]|\\.)*'|[^.[\]]+/g) ?? []
  let at = 0
  let current: JSONSchema = schema
  while (at < tokens.length) {
    const delimiter = tokens[at++]!
    let name = tokens[at++]
    if (delimiter !== '.' && delimiter !== '[') return `expected [ or . but got: ${delimiter}`
    if (name === undefined) return ended
    if (delimiter === '[') {
      if (!/^'.*'$/s.test(name)) return `expected single quoted string but got ${name}`
      name = name.slice(1, -1).replaceAll(/\\(.)/g, '$1')
    }
    const next = memberSchema(current, name)
    if (!next) return undeclared
    current = next
    if (delimiter === '[') {
      const end = tokens[at++]
      if (end === undefined) return ended
      if (end !== ']') return `expected ] but got ${end}`
    }
  }
  return undefined
}

function memberSchema({ properties, additionalProperties }: JSONSchema, name: string): JSONSchema | undefined {
  if (properties) return Object.hasOwn(properties, name) ? properties[name] : undefined
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}
