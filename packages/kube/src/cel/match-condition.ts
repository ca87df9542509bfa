/**
 * Conditions in CEL over a request: which writes a webhook is asked about.
 * Upstream: k8s.io/apiserver/pkg/admission/plugin/cel, v0.36.
 */
import type { JSONSchema } from '../schema.ts'
import type { Variable } from './compile.ts'
import { type Expression, expression } from './expression.ts'
import { type AskForRights, authorizerValue, requestResourceValue } from './library/authorizer.ts'
import { dynamicView, ObjectValue, schemaView, type SchemaView } from './schema-view.ts'
import { CompileError } from './syntax.ts'
import { dyn, typeText } from './type.ts'

/** What conditions look at. */
export interface MatchInput {
  readonly object: unknown
  readonly oldObject: unknown
  /** The request of an AdmissionReview. */
  readonly request: Readonly<Record<string, unknown>>
  /** The namespace that the object is in, if it is in one. */
  readonly namespaceObject: unknown
  /** What the sender may do. */
  readonly rights: AskForRights
}

export type MatchResult =
  | { readonly kind: 'value'; readonly matches: boolean }
  | { readonly kind: 'error'; readonly message: string }

const text: JSONSchema = { type: 'string' }
const texts = (...names: string[]): JSONSchema => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, text])),
})
const lists: JSONSchema = { type: 'array', items: text }

const fields: { readonly [name: string]: SchemaView } = {
  ...Object.fromEntries(
    Object.entries<JSONSchema>({
      kind: texts('group', 'version', 'kind'),
      resource: texts('group', 'version', 'resource'),
      subResource: text,
      requestKind: texts('group', 'version', 'kind'),
      requestResource: texts('group', 'version', 'resource'),
      requestSubResource: text,
      name: text,
      namespace: text,
      operation: text,
      userInfo: {
        type: 'object',
        properties: { username: text, uid: text, groups: lists, extra: { type: 'object', additionalProperties: lists } },
      },
      dryRun: { type: 'boolean' },
    }).map(([name, schema]) => [name, schemaView(schema)!]),
  ),
  options: dynamicView,
}
const fieldNamed = (name: string): SchemaView | undefined => (Object.hasOwn(fields, name) ? fields[name] : undefined)

const variables: readonly Variable[] = [
  { name: 'object', type: dyn },
  { name: 'oldObject', type: dyn },
  { name: 'request', type: { kind: 'object', field: (name) => fieldNamed(name)?.type } },
  { name: 'namespaceObject', type: dyn },
  { name: 'authorizer', type: { kind: 'opaque', name: 'kubernetes.authorization.Authorizer' } },
  { name: 'authorizer.requestResource', type: { kind: 'opaque', name: 'kubernetes.authorization.ResourceCheck' } },
]

/** Upstream: what the conditions of one webhook may cost together is more; each stops here. */
const CostLimit = 1_000_000

function compiled(source: string): Expression | string {
  try {
    const made = expression(source, variables)
    return made.type.kind === 'bool' ? made : `must evaluate to bool but got ${typeText(made.type)}`
  } catch (err) {
    if (err instanceof CompileError) return `compilation failed: ${err.message}`
    throw err
  }
}

function aboutRequest(request: MatchInput['request']): Record<string, string> {
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

/** What is wrong with a condition; `undefined` for one that can be used. */
export function matchConditionProblem(source: string): string | undefined {
  const result = compiled(source)
  return typeof result === 'string' ? result : undefined
}

/** A condition ready for use. @throws Error when it has a problem, see `matchConditionProblem` */
export function matchCondition(source: string): (input: MatchInput) => MatchResult {
  const made = compiled(source)
  if (typeof made === 'string') throw new Error(made)
  return (input) => {
    const values = () => [
      dynamicView.view(input.object),
      dynamicView.view(input.oldObject),
      new ObjectValue(input.request, fieldNamed, true),
      dynamicView.view(input.namespaceObject),
      authorizerValue(input.rights),
      requestResourceValue(input.rights, aboutRequest(input.request)),
    ]
    const result = made.run(values, CostLimit)
    if (result.kind === 'value') return { kind: 'value', matches: result.value === true }
    const why =
      result.kind === 'error'
        ? result.message
        : 'validation failed due to running out of cost budget, no further validation rules will be run'
    return { kind: 'error', message: `expression '${source}' resulted in error: ${why}` }
  }
}
