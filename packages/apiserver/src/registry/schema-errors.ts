/**
 * What is wrong with the schema of a CustomResourceDefinition. Rules in CEL are looked at from outside only: they are not compiled
 * here. Upstream: apiextensions-apiserver pkg/apiserver/schema and pkg/apis/apiextensions/validation, v0.36.
 */
import { type FieldError, invalid, type JSONSchema, notSupported, required, validateStructural } from '@capstan/kube'

/** `path` is where the schema stands in the definition. */
export function schemaErrors(schema: JSONSchema, path: string): FieldError[] {
  const errors = validateStructural(schema, path)
  checkAllRules(schema, path, errors)
  return errors
}

function checkAllRules(schema: JSONSchema, path: string, errors: FieldError[]): void {
  checkRules(schema, path, errors)
  const { properties, additionalProperties, items } = schema
  for (const [name, property] of Object.entries(properties ?? {})) checkAllRules(property, `${path}.properties[${name}]`, errors)
  if (typeof additionalProperties === 'object') checkAllRules(additionalProperties, `${path}.additionalProperties`, errors)
  if (items) checkAllRules(items, `${path}.items`, errors)
}

const RuleReasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

function checkRules(schema: JSONSchema, path: string, errors: FieldError[]): void {
  schema['x-kubernetes-validations']?.forEach(({ rule, message, messageExpression, reason, fieldPath }, index) => {
    const at = `${path}.x-kubernetes-validations[${index}]`
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
  })
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
