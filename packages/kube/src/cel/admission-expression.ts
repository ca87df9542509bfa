/**
 * CEL expressions of admission: match conditions of webhooks, and the expressions of admission policies. They read the values of an
 * `AdmissionInput`. Expressions of a policy, except its match conditions, also read its variables. A variable is evaluated on first use.
 * Upstream: k8s.io/apiserver/pkg/admission/plugin/cel, v0.36.
 */
import type { JSONSchema } from '../schema.ts'
import type { Variable } from './compile.ts'
import { type Expression, expression, type Result } from './expression.ts'
import { type CheckPermission, authorizerValue, requestResourceValue } from './library/authorizer.ts'
import { dynamicView, ObjectValue, schemaView, type SchemaView } from './schema-view.ts'
import { CompileError } from './syntax.ts'
import { dyn, type Type, typeText } from './type.ts'
import { CelMap, EvaluationError, OutOfBudget, type Value } from './value.ts'

/** Values that expressions can read. */
export interface AdmissionInput {
  readonly object: unknown
  readonly oldObject: unknown
  /** The request of an AdmissionReview. */
  readonly request: Readonly<Record<string, unknown>>
  /** The Namespace of the object; null for cluster-scoped objects, and when no such Namespace is stored. */
  readonly namespaceObject: unknown
  /** Checks permissions of the requesting user. */
  readonly checkPermission: CheckPermission
  /** The parameter object of the policy, or null without one. Not read if the scope has no `params`. */
  readonly params?: unknown
}

/** Variables that expressions can use besides those for the object and the request. */
export interface AdmissionScope {
  /** Whether `params` is declared. Default false. */
  readonly hasParams?: boolean
  /** Whether `authorizer` is declared. Default true. */
  readonly hasAuthorizer?: boolean
  /** Variables of the policy. Each may use the variables before it. */
  readonly variables?: readonly { readonly name: string; readonly expression: AdmissionExpression }[]
}

/** A compiled expression, with the type of its result. */
export interface AdmissionExpression {
  readonly type: Type
  run(input: AdmissionInput, known?: KnownVariables): Result
}

/** Cached values of the variables of a policy, for expressions that are evaluated with the same `AdmissionInput`. */
export type KnownVariables = Map<string, Value | EvaluationError>

const text: JSONSchema = { type: 'string' }
const objectOfTexts = (...names: string[]): JSONSchema => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, text])),
})
const listOfTexts: JSONSchema = { type: 'array', items: text }

const requestFields: { readonly [name: string]: SchemaView } = {
  ...Object.fromEntries(
    Object.entries<JSONSchema>({
      kind: objectOfTexts('group', 'version', 'kind'),
      resource: objectOfTexts('group', 'version', 'resource'),
      subResource: text,
      requestKind: objectOfTexts('group', 'version', 'kind'),
      requestResource: objectOfTexts('group', 'version', 'resource'),
      requestSubResource: text,
      name: text,
      namespace: text,
      operation: text,
      userInfo: {
        type: 'object',
        properties: {
          username: text,
          uid: text,
          groups: listOfTexts,
          extra: { type: 'object', additionalProperties: listOfTexts },
        },
      },
      dryRun: { type: 'boolean' },
    }).map(([name, schema]) => [name, schemaView(schema)!]),
  ),
  options: dynamicView,
}
const fieldNamed = (name: string): SchemaView | undefined =>
  Object.hasOwn(requestFields, name) ? requestFields[name] : undefined

const requestType: Type = { kind: 'object', field: (name) => fieldNamed(name)?.type }

function variablesIn({ hasParams, hasAuthorizer = true, variables = [] }: AdmissionScope): Variable[] {
  const variableTypes = new Map(variables.map(({ name, expression: compiled }) => [name, compiled.type]))
  return [
    { name: 'object', type: dyn },
    { name: 'oldObject', type: dyn },
    { name: 'request', type: requestType },
    { name: 'namespaceObject', type: dyn },
    ...(hasParams ? [{ name: 'params', type: dyn }] : []),
    ...(variables.length > 0
      ? [{ name: 'variables', type: { kind: 'object', field: (name: string) => variableTypes.get(name) } as const }]
      : []),
    ...(hasAuthorizer
      ? [
          { name: 'authorizer', type: { kind: 'opaque', name: 'kubernetes.authorization.Authorizer' } as const },
          {
            name: 'authorizer.requestResource',
            type: { kind: 'opaque', name: 'kubernetes.authorization.ResourceCheck' } as const,
          },
        ]
      : []),
  ]
}

/** Cost limit of one expression. Upstream: celconfig.PerCallLimit. */
const CostLimit = 1_000_000

/**
 * Compiles an expression. `returns`: allowed kinds of the result type; absent: any; empty: only `dyn`. Returns an error text when the
 * expression does not compile or its result has another type.
 */
export function admissionExpression(
  source: string,
  scope: AdmissionScope = {},
  returns?: readonly Type['kind'][],
): AdmissionExpression | string {
  let compiled: Expression
  try {
    compiled = expression(source, variablesIn(scope))
  } catch (err) {
    if (err instanceof CompileError) return `compilation failed: ${err.message}`
    throw err
  }
  const { type } = compiled
  const isAllowed = !returns || returns.includes(type.kind) || (returns.length === 0 && type.kind === 'dyn')
  if (!isAllowed) {
    const names = returns.map((kind) => (kind === 'null' ? 'null_type' : kind))
    const expectedTypes = names.length === 1 ? names[0] : `one of [${names.join(' ')}]`
    return `must evaluate to ${expectedTypes} but got ${typeText(type)}`
  }
  return { type, run: (input, known = new Map()) => compiled.run(() => valuesOf(input, scope, known), CostLimit) }
}

function valuesOf(input: AdmissionInput, scope: AdmissionScope, known: KnownVariables): Value[] {
  return [
    dynamicView.view(input.object),
    dynamicView.view(input.oldObject),
    // Names of request fields are not escaped, so that expressions can read `request.namespace`, although `namespace` is a reserved word.
    new ObjectValue(input.request, fieldNamed, false),
    dynamicView.view(input.namespaceObject),
    ...(scope.hasParams ? [dynamicView.view(input.params)] : []),
    ...(scope.variables?.length ? [new Variables(input, scope.variables, known)] : []),
    ...((scope.hasAuthorizer ?? true)
      ? [authorizerValue(input.checkPermission), requestResourceValue(input.checkPermission, requestAttributes(input.request))]
      : []),
  ]
}

/** Evaluates variables on first use. */
class Variables extends CelMap {
  readonly #input: AdmissionInput
  readonly #variables: NonNullable<AdmissionScope['variables']>
  readonly #known: KnownVariables

  constructor(input: AdmissionInput, variables: NonNullable<AdmissionScope['variables']>, known: KnownVariables) {
    super()
    this.#input = input
    this.#variables = variables
    this.#known = known
  }

  get size(): number {
    return this.#variables.length
  }

  keys(): readonly Value[] {
    return this.#variables.map(({ name }) => name)
  }

  get(key: Value): Value | undefined {
    const variable = this.#variables.find(({ name }) => name === key)
    if (!variable) return undefined
    let value = this.#known.get(variable.name)
    if (value === undefined) this.#known.set(variable.name, (value = this.#evaluate(variable)))
    if (value instanceof EvaluationError) throw value
    return value
  }

  #evaluate({ name, expression: compiled }: NonNullable<AdmissionScope['variables']>[number]): Value | EvaluationError {
    const result = compiled.run(this.#input, this.#known)
    if (result.kind === 'value') return result.value
    if (result.kind === 'out of budget') throw new OutOfBudget('actual cost limit exceeded')
    return new EvaluationError(`composited variable ${JSON.stringify(name)} fails to evaluate: ${result.message}`)
  }
}

function requestAttributes(request: AdmissionInput['request']): Record<string, string> {
  const { resource, subResource, namespace, name } = request as { readonly [field: string]: string } & {
    readonly resource: { readonly group: string; readonly resource: string }
  }
  return {
    group: resource.group,
    resource: resource.resource,
    ...(subResource ? { subresource: subResource } : {}),
    ...(namespace ? { namespace } : {}),
    ...(name ? { name } : {}),
  }
}

/** Returns the error text for an evaluation that failed or exceeded its cost limit. The text for a failed evaluation is upstream's. */
export const failureText = (source: string, result: Exclude<Result, { kind: 'value' }>): string =>
  `expression '${source}' resulted in error: ${
    result.kind === 'error'
      ? result.message
      : 'validation failed due to running out of cost budget, no further validation rules will be run'
  }`
