/**
 * Defaults and validates variables by the definitions of a ClusterClass. Pure, except for the draft that it changes. Upstream:
 * internal/topology/variables, v1.14.
 */
import { Cluster, type ClusterClass, type ClusterClassStatusVariable, type ClusterVariable } from '@capstan/api'
import {
  appendAll,
  draft,
  duplicate,
  type FieldError,
  invalid,
  invalidObject,
  type JSONSchema,
  required,
  type RuleError,
  type Structural,
  structural,
  stableText,
  writeJSON,
} from '@capstan/kube'

type Definitions = ReadonlyMap<string, ClusterClassStatusVariable>

/**
 * Returns the Cluster with defaulted variables.
 * @throws StatusError Invalid when a variable violates its definition or has none, or a required variable is missing
 */
export function withDefaultedVariables(cluster: Cluster, clusterClass: ClusterClass): Cluster {
  const complete = draft(cluster)
  const errors = defaultAndValidateVariables(complete, clusterClass)
  if (errors.length > 0) throw invalidObject(Cluster, cluster.metadata.name, errors)
  return complete
}

/**
 * Sets defaults of variables in `cluster`, a draft, and returns the errors, those from defaulting first. A list with defaulting errors keeps
 * its values. Transition rules compare a variable with the variable of the same name in the same list of `old`.
 */
export function defaultAndValidateVariables(cluster: Cluster, clusterClass: ClusterClass, old?: Cluster): FieldError[] {
  const { topology } = cluster.spec
  if (!topology) return []
  const definitions: Definitions = new Map((clusterClass.status?.variables ?? []).map((variable) => [variable.name, variable]))
  const path = 'spec.topology'

  const defaulting: FieldError[] = []
  const global = applyDefaults(topology.variables ?? [], definitions, `${path}.variables`, { createMissing: true })
  appendAll(defaulting, global.errors)
  if (global.errors.length === 0 && global.values.length > 0) topology.variables = global.values
  const oldTopology = old?.spec.topology
  const overridden = [
    { part: topology.controlPlane, at: `${path}.controlPlane.variables.overrides`, before: oldTopology?.controlPlane },
    ...(topology.workers?.machineDeployments ?? []).map((part) => ({
      part,
      at: `${path}.workers.machineDeployments[${part.name}].variables.overrides`,
      before: oldTopology?.workers?.machineDeployments?.find(({ name }) => name === part.name),
    })),
    ...(topology.workers?.machinePools ?? []).map((part) => ({
      part,
      at: `${path}.workers.machinePools[${part.name}].variables.overrides`,
      before: oldTopology?.workers?.machinePools?.find(({ name }) => name === part.name),
    })),
  ]
  for (const { part, at } of overridden) {
    if (!part?.variables?.overrides) continue
    const { values, errors } = applyDefaults(part.variables.overrides, definitions, at, { createMissing: false })
    appendAll(defaulting, errors)
    if (errors.length === 0) part.variables.overrides = values
  }

  return [
    ...defaulting,
    ...missingErrors(topology.variables ?? [], definitions, `${path}.variables`),
    ...listErrors(topology.variables, oldTopology?.variables, definitions, `${path}.variables`),
    ...overridden.flatMap(({ part, before, at }) =>
      listErrors(part?.variables?.overrides, before?.variables?.overrides, definitions, at),
    ),
  ]
}

const listErrors = (
  values: readonly ClusterVariable[] = [],
  oldValues: readonly ClusterVariable[] = [],
  definitions: Definitions,
  path: string,
): FieldError[] =>
  values.flatMap((variable) =>
    valueErrors(
      variable,
      oldValues.find(({ name }) => name === variable.name),
      definitions,
      path,
    ),
  )

/**
 * Returns the values with defaults, in the user's order, and errors for undefined variables. With `createMissing`, the values are followed
 * by missing variables that have a default, in the order of their definitions.
 */
function applyDefaults(
  values: readonly ClusterVariable[],
  definitions: Definitions,
  path: string,
  { createMissing }: { createMissing: boolean },
) {
  const errors: FieldError[] = []
  const complete: ClusterVariable[] = []
  for (const variable of values) {
    const definition = definitions.get(variable.name)
    complete.push(definition ? { ...variable, ...withDefault(definition, variable.value) } : variable)
    if (!definition) errors.push(notDefined(variable, path))
  }
  const names = new Set(values.map(({ name }) => name))
  for (const definition of createMissing ? definitions.values() : []) {
    if (names.has(definition.name)) continue
    const { value } = withDefault(definition, undefined)
    if (value !== undefined) complete.push({ name: definition.name, value })
  }
  return { values: complete, errors }
}

function withDefault(definition: ClusterClassStatusVariable, value: unknown): { value?: unknown } {
  const wrapped = value === undefined ? {} : { value: draft(value) }
  schemaOf(definition).default(wrapped)
  return wrapped
}

const missingErrors = (values: readonly ClusterVariable[], definitions: Definitions, path: string): FieldError[] =>
  [...definitions.values()]
    .filter(({ name, definitions: [first] }) => first?.required && !values.some((variable) => variable.name === name))
    .map(({ name }) => required(path, `required variable ${JSON.stringify(name)} must be set`))

function valueErrors(
  { name, value }: ClusterVariable,
  old: ClusterVariable | undefined,
  definitions: Definitions,
  path: string,
): FieldError[] {
  const valuePath = `${path}[${name}]`
  const definition = definitions.get(name)
  // Defaulting has already reported that the variable is not defined.
  if (!definition) return []
  const schema = schemaOf(definition)
  const errors = schema.validateSchema({ value })
  if (errors.length > 0) return errors.map((error) => withPathOfVariable(error, valuePath, value))
  const unknown = schema.prune({ value: draft(value) }).map((field) => field.replace(/^value\.?/, ''))
  if (unknown.length > 0) {
    const fields = `${JSON.stringify(unknown.join(','))} field(s) are not specified in the variable schema of variable ${JSON.stringify(name)}`
    return [invalid(valuePath, stableText(value), `failed validation: ${fields}`)]
  }
  return schema
    .validateRules({ value }, old && { value: old.value }, { ratcheting: false })
    .map((error) => ruleErrorOfVariable(error, valuePath, value))
}

const notDefined = ({ name, value }: ClusterVariable, path: string): FieldError =>
  invalid(`${path}[${name}]`, writeJSON(value), 'variable is not defined')

/**
 * Returns the error with the path of the variable. As upstream, the text of an error about an invalid or unsupported value contains the whole
 * value of the variable as JSON with sorted members, even if only one member is invalid.
 */
function withPathOfVariable({ type, field, text }: FieldError, valuePath: string, value: unknown): FieldError {
  const fieldPath = `${valuePath}.${field}`
  const detail = /(?:^|: )value(?:\.([^ ]*))? in body (.*)$/s.exec(text)
  if (detail) {
    const [, innerPath, problem] = detail
    return {
      ...invalid(fieldPath, stableText(value), innerPath === undefined ? problem! : `${innerPath} in body ${problem}`),
      type,
    }
  }
  const unsupported = /^Unsupported value: .*: (supported values: .*)$/s.exec(text)
  if (!unsupported) return { type, field: fieldPath, text }
  return { type, field: fieldPath, text: `Unsupported value: ${JSON.stringify(stableText(value))}: ${unsupported[1]}` }
}

/** Returns the error of a rule with the path of the variable. Errors of type Invalid and Duplicate contain the whole value. */
function ruleErrorOfVariable({ type, field, text, detail }: RuleError, valuePath: string, value: unknown): FieldError {
  const fieldPath = `${valuePath}.${field}`
  const valueText = stableText(value)
  if (type === 'FieldValueDuplicate') return duplicate(fieldPath, valueText)
  return type === 'FieldValueInvalid' ? invalid(fieldPath, valueText, detail) : { type, field: fieldPath, text }
}

/** Compiled schemas. Definitions are frozen, and shared by all Clusters of a class. */
const compiled = new WeakMap<object, Structural>()

function schemaOf({ definitions: [first] }: ClusterClassStatusVariable): Structural {
  const schema = first?.schema.openAPIV3Schema ?? {}
  let structuralSchema = compiled.get(schema)
  if (!structuralSchema) {
    // The schema is wrapped in an object, because defaulting and pruning apply to members of objects.
    structuralSchema = structural({ type: 'object', properties: { value: schema as JSONSchema } })
    compiled.set(schema, structuralSchema)
  }
  return structuralSchema
}
