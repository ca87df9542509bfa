/**
 * Validates the variable definitions of a ClusterClass and of its DiscoverVariables extensions. Pure. Upstream:
 * internal/topology/variables, v1.14.
 */
import { type ClusterClassVariable, metadataErrors } from '@capstan/api'
import {
  appendAll,
  draft,
  type FieldError,
  forbidden,
  invalid,
  isRecord,
  type JSONSchema,
  nestedSchemaErrors,
  notSupported,
  patternProblem,
  required,
  ruleErrors,
  structural,
} from '@capstan/kube'

export const variableDefinitionErrors = (variables: readonly ClusterClassVariable[], listPath = 'spec.variables'): FieldError[] =>
  variables.flatMap((variable, index) => {
    const path = `${listPath}[${variable.name}]`
    const isDuplicate = variables.findIndex(({ name }) => name === variable.name) < index
    return [
      ...nameErrors(variable.name, path),
      ...(isDuplicate
        ? [
            invalid(
              `${path}.name`,
              variable.name,
              `variable name must be unique. Variable with name ${JSON.stringify(variable.name)} is defined more than once`,
            ),
          ]
        : []),
      ...metadataErrors(`${path}.deprecatedV1Beta1Metadata`, variable.deprecatedV1Beta1Metadata),
      ...schemaMetadataErrors(variable.schema.openAPIV3Schema, `${path}.schema.openAPIV3Schema`),
      ...schemaErrors(variable.schema.openAPIV3Schema, `${path}.schema.openAPIV3Schema`, true),
    ]
  })

function nameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [required(`${path}.name`, 'variable name must be defined')]
  if (name === 'builtin') return [invalid(`${path}.name`, name, '"builtin" is a reserved variable name')]
  return name.includes('.') ? [invalid(`${path}.name`, name, 'variable name cannot contain "."')] : []
}

/** Validates `x-metadata` at every level of the schema. */
function schemaMetadataErrors(schema: unknown, path: string): FieldError[] {
  if (!isRecord(schema)) return []
  const { properties, additionalProperties, items } = schema
  return [
    ...metadataErrors(`${path}.x-metadata`, schema['x-metadata'] as Parameters<typeof metadataErrors>[1]),
    ...schemaMetadataErrors(additionalProperties, `${path}.additionalProperties`),
    ...Object.entries(isRecord(properties) ? properties : {}).flatMap(([name, property]) =>
      schemaMetadataErrors(property, `${path}.properties[${name}]`),
    ),
    ...schemaMetadataErrors(items, `${path}.items`),
  ]
}

const Types = ['array', 'boolean', 'integer', 'number', 'object', 'string']

function schemaErrors(schema: unknown, path: string, isRoot = false): FieldError[] {
  if (!isRecord(schema)) return [invalid(path, schema, 'must be a schema')]
  const { type, properties, additionalProperties, items } = schema
  const acceptsAnyType = schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true
  const errors: FieldError[] = isRoot ? nestedSchemaErrors(schema as JSONSchema, path) : []
  if (type === undefined && !acceptsAnyType)
    errors.push(required(`${path}.type`, 'must not be empty for specified object fields'))
  if (type !== undefined && !Types.includes(type as string)) errors.push(notSupported(`${path}.type`, type, Types))
  if (properties !== undefined && additionalProperties !== undefined) {
    errors.push(forbidden(path, 'additionalProperties and properties are mutually exclusive'))
  }
  if (typeof schema['pattern'] === 'string') appendAll(errors, patternErrors(schema['pattern'], path))
  for (const [name, property] of Object.entries(isRecord(properties) ? properties : {})) {
    appendAll(errors, schemaErrors(property, `${path}.properties[${name}]`))
  }
  if (isRecord(additionalProperties)) appendAll(errors, schemaErrors(additionalProperties, `${path}.additionalProperties`))
  if (items !== undefined) appendAll(errors, schemaErrors(items, `${path}.items`))
  else if (type === 'array') errors.push(required(`${path}.items`, 'must be specified'))
  if (!isRoot) return errors
  const checked = schema as JSONSchema
  const celErrors = ruleErrors(checked, { path, canCompile: errors.length === 0, isRoot: false, isVariable: true })
  if (errors.length === 0 && type === 'array' && checked['x-kubernetes-validations']?.length) {
    // Rejects the rules of a variable that is a list, because upstream cannot compile them. Rules of its items are allowed.
    const problem =
      'internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations'
    return [{ type: 'InternalError', field: `${path}.x-kubernetes-validations`, text: `Internal error: ${problem}` }]
  }
  appendAll(errors, celErrors)
  // Defaults, examples and enum values must be valid by their schema. The check of the root schema includes nested schemas, but runs only
  // if the root schema is valid.
  if (errors.length === 0) appendAll(errors, exampleErrors(schema, path))
  return errors
}

function patternErrors(pattern: string, path: string): FieldError[] {
  const problem = patternProblem(pattern)
  return problem === undefined
    ? []
    : [invalid(`${path}.pattern`, pattern, `must be a valid regular expression, but isn't: ${problem}`)]
}

/**
 * Adds the path of a default, example or enum value to the field of an error. As in upstream's texts, the text keeps only the path inside
 * the value.
 */
function withValuePath({ type, field, text }: FieldError, valuePath: string): FieldError {
  const innerPath = field.slice('value'.length)
  const separator = innerPath.startsWith('[') ? '.' : ''
  return { type, field: `${valuePath}${separator}${innerPath}`, text: withoutValue(text) }
}

/** Removes from an error text the name of the field `value`, in which `exampleErrors` wraps a default, example or enum value. */
const withoutValue = (text: string): string =>
  text
    .replace(/value([.[][^ ]*)? in body/, '$1 in body')
    .replace(/"value([.[][^"]*)?" must/, '"$1" must')
    .replace(/ in value([.[].*)?$/, ' in $1')

/** Validates defaults, examples and enum values at every level of the schema. */
function exampleErrors(schema: Record<string, unknown>, path: string): FieldError[] {
  const errors: FieldError[] = []
  const check = (value: unknown, valuePath: string, against: object) => {
    const compiled = structural({ type: 'object', properties: { value: against as JSONSchema } })
    const violations = compiled.validateSchema({ value })
    for (const error of violations) errors.push(withValuePath(error, valuePath))
    if (violations.length === 0)
      for (const { detail } of compiled.validateRules({ value })) errors.push(invalid(valuePath, value, detail))
    const unknown = compiled.prune({ value: draft(value) })
    if (unknown.length > 0)
      errors.push(invalid(valuePath, value, `field(s) ${unknown.join(', ')} are not specified in the schema`))
  }
  const { default: defaultValue, example, enum: values, ...baseSchema } = schema
  if (defaultValue !== undefined)
    check(defaultValue, `${path}.default`, { ...baseSchema, ...(values === undefined ? {} : { enum: values }) })
  if (example !== undefined) check(example, `${path}.example`, baseSchema)
  for (const [index, value] of (Array.isArray(values) ? values : []).entries()) check(value, `${path}.enum[${index}]`, baseSchema)
  const { properties, additionalProperties, items } = schema
  for (const [name, property] of Object.entries(isRecord(properties) ? properties : {})) {
    if (isRecord(property)) appendAll(errors, exampleErrors(property, `${path}.properties[${name}]`))
  }
  if (isRecord(additionalProperties)) appendAll(errors, exampleErrors(additionalProperties, `${path}.additionalProperties`))
  if (isRecord(items)) appendAll(errors, exampleErrors(items, `${path}.items`))
  return errors
}
