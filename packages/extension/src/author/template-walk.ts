/** Finds the templates of a topology that rules select. Upstream: topologymutation.WalkTemplates, v1.14. */
import type { GeneratePatches, HolderReference, RequestOf } from '@capstan/api'
import type { DeclaredKind, Kind, KubeObject, Logger, UnknownObject } from '@capstan/kube'
import { apiVersionOf, compareText, structural } from '@capstan/kube'
import { mergedVariables, Variables } from './variables.ts'

/** Selects the templates of a rule. Templates must match all members that are set; without members, all templates match. */
export interface TemplateSelector<T extends KubeObject = UnknownObject> {
  /** Kind and version of the template. The rule receives the template with this type, validated against the kind's schema if it has one. */
  readonly type?: Kind<T>
  readonly apiVersion?: string
  readonly kind?: string
  /** Object that refers to the template: `{ kind: 'MachineDeployment' }`. */
  readonly holder?: Partial<HolderReference>
}

/** Arguments of a rule for one template. */
export interface TemplateCall<T extends KubeObject = UnknownObject> {
  readonly template: T
  /** Variables of the request, merged with variables of the template. */
  readonly variables: Variables
  readonly holder: HolderReference
  readonly settings: { readonly [name: string]: string }
  readonly log: Logger
  /** Aborts when the caller no longer waits for the response. */
  readonly signal: AbortSignal
}

/** A rule for templates, declared with `template`: `act` is called for each template that `selector` selects. */
export interface TemplateRule<Result = unknown> {
  readonly selector: TemplateSelector<KubeObject>
  act(call: TemplateCall<never>): Result
}

/**
 * Declares a rule for the templates that a selector matches. If the selector has a `type`, the template has that type.
 *
 * @example
 * template({ type: LocalMachineTemplate, holder: { kind: 'MachineDeployment' } }, ({ template, variables }) => {
 *   template.spec.template.spec = { simulated: { nodeDelay: variables.string('nodeDelay') } }
 * })
 */
export const template = <Result, T extends KubeObject = UnknownObject>(
  selector: TemplateSelector<T>,
  act: (call: TemplateCall<T>) => Result,
): TemplateRule<Result> => ({ selector, act: act as TemplateRule<Result>['act'] })

export interface WalkOptions {
  /** Whether to fail for a template if no rule selects its kind and apiVersion. Default: false, which ignores the template. */
  readonly failForUnknownTypes?: boolean
}

/** A template of the request with its variables and rules. */
export interface WalkedTemplate<Item, Rule> {
  readonly item: Item
  /** Readable name of the template, the same in every call. */
  readonly name: string
  readonly rules: readonly Rule[]
  readonly call: Omit<TemplateCall<UnknownObject>, 'template'>
}

/** The members that items of GeneratePatches and ValidateTopology have in common. */
type RequestItem = Omit<RequestOf<typeof GeneratePatches>['items'][number], 'uid'>

/** The arguments of a handler that a walk needs. */
export interface WalkedCall<Item extends RequestItem> extends Pick<TemplateCall, 'settings' | 'log' | 'signal'> {
  readonly request: Pick<RequestOf<typeof GeneratePatches>, 'variables'> & { readonly items: readonly Item[] }
}

/**
 * Returns the templates that rules select, sorted by name, so that every call fails for the same template. Upstream sends the items of
 * a request in random order.
 *
 * @throws Error for the first template that does not match the `type` of a rule that selects it or, with `failForUnknownTypes`, whose
 *   kind and apiVersion no rule selects
 */
export function walkTemplates<Item extends RequestItem, Rule extends TemplateRule>(
  { request, ...call }: WalkedCall<Item>,
  rules: readonly Rule[],
  { failForUnknownTypes = false }: WalkOptions,
): WalkedTemplate<Item, Rule>[] {
  return request.items
    .map((item) => {
      const variables = new Variables(mergedVariables(request.variables, item.variables))
      return { item, variables, name: nameOf(item, variables) }
    })
    .sort((a, b) => compareText(a.name, b.name))
    .flatMap(({ item, variables, name }) => {
      const { object, holderReference: holder } = item
      const rulesOfType = rules.filter(({ selector }) => isOfType(selector, object))
      if (failForUnknownTypes && rulesOfType.length === 0) {
        throw new Error(
          `${name}: no kind ${JSON.stringify(object.kind)} is registered for version ${JSON.stringify(object.apiVersion)}`,
        )
      }
      const matchingRules = rulesOfType.filter(({ selector }) => isHeldBy(selector, holder))
      for (const { selector } of matchingRules) assertType(selector, object, name)
      return matchingRules.length === 0 ? [] : [{ item, name, rules: matchingRules, call: { ...call, variables, holder } }]
    })
}

/** Returns a readable name without the holder's name: names of objects that do not exist yet differ from call to call. */
function nameOf({ object, holderReference: { kind, fieldPath } }: RequestItem, variables: Variables): string {
  const builtin = builtinNames.get(kind)
  const topologyName = builtin === undefined ? '' : variables.string(`builtin.${builtin}.topologyName`, '')
  return `${object.kind} of ${kind}${topologyName && ` ${topologyName}`} (${fieldPath})`
}

/** Members of the variable `builtin` that contain the holder's name in the topology, by the kind of the holder. */
const builtinNames: ReadonlyMap<string, string> = new Map([
  ['MachineDeployment', 'machineDeployment'],
  ['MachinePool', 'machinePool'],
])

function isOfType({ type, apiVersion, kind }: TemplateSelector<KubeObject>, object: UnknownObject): boolean {
  if (type && (type.kind !== object.kind || apiVersionOf(type) !== object.apiVersion)) return false
  return (apiVersion ?? object.apiVersion) === object.apiVersion && (kind ?? object.kind) === object.kind
}

const isHeldBy = ({ holder = {} }: TemplateSelector<KubeObject>, reference: HolderReference): boolean =>
  Object.entries(holder).every(([field, value]) => reference[field as keyof HolderReference] === value)

/** Validates the template. Does not default or prune it, because that would lead to unintended patches. */
function assertType({ type }: TemplateSelector<KubeObject>, object: UnknownObject, name: string): void {
  const schema = (type as DeclaredKind | undefined)?.schema
  const problem = schema && structural(schema).validateSchema(object)[0]
  if (problem) throw new Error(`${name}: does not match its type: ${problem.field}: ${problem.text}`)
}
