/**
 * Computes the variables of a class, from inline definitions and from extensions, as its status publishes them. Upstream:
 * reconcileVariables, v1.14.
 */
import type { ClusterClass, ClusterClassPatch, ClusterClassStatusVariable, ResponseOf } from '@capstan/api'
import { DiscoverVariables, ExtensionConfig, VariableDefinitionFromInline } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { appendAll, draft, equal, isRecord, messageOf, minutes, stableText } from '@capstan/kube'
import { aggregateText } from '../aggregate-errors.ts'
import { variableDefinitionErrors } from './variable-rules.ts'

type Discovered = NonNullable<ResponseOf<typeof DiscoverVariables>['variables']>
type Definition = ClusterClassStatusVariable['definitions'][number]

/**
 * Caches the variables that handlers of extensions return, because the variables rarely change. Classes of one namespace share the
 * variables of a handler if their patches have equal settings for it.
 */
export class DiscoveredVariables {
  readonly #runtime: RuntimeClient | undefined
  readonly #cache = new Map<string, { readonly expires: number; readonly variables: Discovered }>()

  /** Without a runtime client no variables are discovered. */
  constructor(runtime: RuntimeClient | undefined) {
    this.#runtime = runtime
  }

  /** False until the registered extensions are known; always true without a runtime client. */
  get ready(): boolean {
    return this.#runtime?.ready ?? true
  }

  /**
   * Returns the handler's variables; none without a runtime client, and when the failure policy ignores a failed call. The result of a call
   * is cached for ten minutes, but neither after an ignored failure nor after the handler's ExtensionConfig has changed.
   */
  async variablesOf(
    clusterClass: ClusterClass,
    handler: string,
    settings: { readonly [name: string]: string } | undefined,
    { cache, clock, signal, withoutWorker }: ReconcileContext,
  ): Promise<Discovered> {
    const runtime = this.#runtime
    if (!runtime) return []
    const config = cache.peek(ExtensionConfig, { name: configOf(handler) })
    const cacheKey = stableText([handler, config?.metadata.resourceVersion, settings ?? {}, clusterClass.metadata.namespace])
    const now = clock.elapsed()
    const cached = this.#cache.get(cacheKey)
    if (cached && cached.expires > now) return cached.variables
    let isIgnored = false
    const onIgnored = () => void (isIgnored = true)
    const options = { ...(settings ? { settings } : {}), signal, onIgnored }
    const { variables = [] } = await withoutWorker(() => runtime.call(DiscoverVariables, clusterClass, handler, {}, options))
    for (const [expiredKey, { expires }] of this.#cache) if (expires <= now) this.#cache.delete(expiredKey)
    if (!isIgnored) this.#cache.set(cacheKey, { expires: now + minutes(10), variables })
    return variables
  }
}

/** Returns the name of the ExtensionConfig: the part of a registered handler name after the first dot. */
export const configOf = (handler: string): string => handler.slice(handler.indexOf('.') + 1)

/** Patches whose variables are discovered from an extension. */
export const discoveringPatches = ({ spec }: ClusterClass): readonly ClusterClassPatch[] =>
  (spec.patches ?? []).filter(({ external }) => external?.discoverVariablesExtension !== undefined)

/** Returns all variables of the class. @throws Error with upstream's text when an extension fails or its variables are invalid */
export async function classVariables(
  clusterClass: ClusterClass,
  discovered: DiscoveredVariables,
  context: ReconcileContext,
): Promise<ClusterClassStatusVariable[]> {
  const definitions = new Map<string, Definition[]>()
  const add = (name: string, definition: Definition) => definitions.set(name, [...(definitions.get(name) ?? []), definition])
  for (const { name, required, schema, deprecatedV1Beta1Metadata: metadata } of clusterClass.spec.variables ?? []) {
    add(name, definitionOf(VariableDefinitionFromInline, required, schema, metadata))
  }
  const problems: string[] = []
  for (const { name: patch, external } of discoveringPatches(clusterClass)) {
    try {
      const variables = await discovered.variablesOf(
        clusterClass,
        external!.discoverVariablesExtension!,
        external!.settings,
        context,
      )
      // As upstream, after the first patch with a problem, failed calls are still reported, but invalid variables are not.
      if (problems.length > 0) continue
      const errors = variableDefinitionErrors(
        variables.map((variable) => ({ required: false, ...variable })),
        `${patch}.variables`,
      )
      appendAll(
        problems,
        errors.map(({ field, text }) => `${field}: ${text}`),
      )
      for (const { name, required = false, schema, deprecatedV1Beta1Metadata: metadata } of variables) {
        add(name, definitionOf(patch, required, schema, metadata))
      }
    } catch (err) {
      problems.push(`failed to call DiscoverVariables for patch ${patch}: ${messageOf(err)}`)
    }
  }
  if (problems.length > 0) {
    throw new Error(`VariableDiscovery failed: ${aggregateText(problems)}`)
  }
  return [...definitions]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, [first, ...further]]) => ({
      name,
      definitionsConflict: further.some((definition) => !isSameDefinition(first!, definition)),
      definitions: [first!, ...further],
    }))
}

/** Names of variables with conflicting definitions. */
export const conflictingVariables = (variables: readonly ClusterClassStatusVariable[]): string[] =>
  variables.filter(({ definitionsConflict }) => definitionsConflict).map(({ name }) => name)

const definitionOf = (
  from: string,
  required: boolean,
  schema: Definition['schema'],
  metadata: Definition['deprecatedV1Beta1Metadata'],
): Definition => ({
  from,
  required,
  schema: draft(schema),
  ...(metadata ? { deprecatedV1Beta1Metadata: draft(metadata) } : {}),
})

/** Compares two definitions, without their origins (`from`). In a schema, a boolean keyword that is false equals an absent one. */
const isSameDefinition = (a: Definition, b: Definition): boolean =>
  a.required === b.required &&
  equal(withoutFalse(a.schema), withoutFalse(b.schema)) &&
  equal(a.deprecatedV1Beta1Metadata, b.deprecatedV1Beta1Metadata)

function withoutFalse(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutFalse)
  if (!isRecord(schema)) return schema
  const keywords = Object.entries(schema).filter(([name, value]) => value !== false || !booleanKeywords.has(name))
  return Object.fromEntries(keywords.map(([name, value]) => [name, dataKeywords.has(name) ? value : withoutFalse(value)]))
}

const booleanKeywords = new Set([
  'uniqueItems',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
])
/** Keywords whose values are data, not schemas. */
const dataKeywords = new Set(['default', 'example', 'enum'])
