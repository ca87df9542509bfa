/**
 * Decides which webhooks a write calls, without I/O. Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook, rules, predicates and
 * generic.ShouldCallHook, v0.36.
 */
import {
  AdmissionReviewVersions,
  labelSelector,
  type KubeObject,
  type Labels,
  matchCondition,
  type MatchInput,
  type MatchResult,
  type Selector,
  type Webhook,
  type WebhookRule,
} from '@capstan/kube'

export type HookType = 'mutating' | 'validating'

/** One webhook of a configuration, with its expressions compiled. */
export interface Hook {
  readonly type: HookType
  readonly configuration: string
  readonly webhook: Webhook
  readonly namespaceSelector: Selector
  readonly objectSelector: Selector
  readonly conditions: readonly ((input: MatchInput) => MatchResult)[]
  /** Version of the AdmissionReview that the webhook receives. */
  readonly reviewVersion: string
  readonly timeoutSeconds: number
}

export interface GroupVersionResource {
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** The part of a write that rules match. */
export interface Target extends GroupVersionResource {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  readonly subresource: string | undefined
  /** Namespace of the object. For a Namespace object: its name. */
  readonly namespace: string | undefined
}

/**
 * Compiles the webhooks of configurations, in the order of `configurations`, which must be sorted by name. Mutating webhooks are called in
 * this order.
 */
export function hooksOf(
  type: HookType,
  configurations: readonly { metadata: { name: string }; webhooks?: readonly Webhook[] }[],
): Hook[] {
  return configurations.flatMap(({ metadata, webhooks = [] }) =>
    webhooks.map((webhook) => ({
      type,
      configuration: metadata.name,
      webhook,
      namespaceSelector: labelSelector(webhook.namespaceSelector ?? {}),
      objectSelector: labelSelector(webhook.objectSelector ?? {}),
      conditions: (webhook.matchConditions ?? []).map(({ expression }) => matchCondition(expression)),
      reviewVersion: webhook.admissionReviewVersions.find((version) => AdmissionReviewVersions.includes(version)) ?? 'v1',
      timeoutSeconds: webhook.timeoutSeconds ?? 10,
    })),
  )
}

/** Reports whether any rule could match the resource, in any version, operation and subresource. */
export const mayMatch = ({ webhook }: Hook, { group, plural }: { group: string; plural: string }): boolean =>
  (webhook.rules ?? []).some(
    ({ apiGroups, resources }) =>
      includes(apiGroups, group) &&
      resources.some((pattern) => {
        const [resource] = pattern.split('/', 1)
        return resource === '*' || resource === plural
      }),
  )

/**
 * Returns the version of the resource that the webhook receives: the requested version if a rule matches it. Otherwise, with the
 * matchPolicy Equivalent, the first of `otherVersions` that a rule matches. Returns `undefined` when no rule matches.
 */
export function matchedVersion<T extends GroupVersionResource>(
  { webhook }: Hook,
  target: Target,
  requested: T,
  otherVersions: () => readonly T[],
): T | undefined {
  const { rules = [], matchPolicy = 'Equivalent' } = webhook
  if (rules.some((rule) => matchesRule(rule, target))) return requested
  if (matchPolicy !== 'Equivalent') return undefined
  return otherVersions().find((other) => {
    const { group, version, plural } = other
    return rules.some((rule) => matchesRule(rule, { ...target, group, version, plural }))
  })
}

export const matchesRule = (rule: WebhookRule, target: Target): boolean =>
  includes(rule.operations, target.operation) &&
  includes(rule.apiGroups, target.group) &&
  includes(rule.apiVersions, target.version) &&
  rule.resources.some((pattern) => matchesResource(pattern, target)) &&
  matchesScope(rule.scope ?? '*', target)

const includes = (values: readonly string[], value: string): boolean => values.includes('*') || values.includes(value)

// Patterns are `pods`, `pods/status`, `pods/*`, `*` (all resources without their subresources), `*/scale` and `*/*`.
function matchesResource(pattern: string, { plural, subresource = '' }: Target): boolean {
  const [resourcePattern = '', subresourcePattern = ''] = pattern.split('/', 2)
  return (
    (resourcePattern === '*' || resourcePattern === plural) && (subresourcePattern === '*' || subresourcePattern === subresource)
  )
}

/** Reports whether a rule's scope matches. A Namespace object is cluster-scoped, although a request for it has its name as namespace. */
function matchesScope(scope: string, { plural, namespace }: Target): boolean {
  if (scope === '*') return true
  const isCluster = plural === 'namespaces' || namespace === undefined || namespace === ''
  return (scope === 'Cluster') === isCluster
}

/**
 * Reports whether the new or the old object matches the objectSelector. One match is enough, so that an update cannot avoid the webhook by
 * removing a label.
 */
export const selectsObject = (
  { objectSelector }: Hook,
  object: KubeObject | undefined,
  oldObject: KubeObject | undefined,
): boolean =>
  objectSelector.requirements.length === 0 ||
  [object, oldObject].some((candidate) => candidate !== undefined && objectSelector.matches(candidate.metadata.labels))

/**
 * Reports whether the namespace of the object matches the namespaceSelector. `labels` returns the labels of the namespace, or the labels of
 * the object if it is a Namespace itself. Other cluster-scoped objects always match.
 */
export const selectsNamespace = (
  { namespaceSelector }: Hook,
  { namespace, plural }: Target,
  labels: () => Labels | undefined,
): boolean => {
  if (namespaceSelector.requirements.length === 0) return true
  if (!namespace && plural !== 'namespaces') return true
  return namespaceSelector.matches(labels())
}

/**
 * Reports whether all conditions are true. If any is false, the result is false, even when the evaluation of another condition
 * fails. Otherwise, if evaluations fail, the result is an error with all their messages.
 */
export function evaluateConditions({ conditions }: Pick<Hook, 'conditions'>, input: MatchInput): MatchResult {
  const results = conditions.map((condition) => condition(input))
  if (results.some((result) => result.kind === 'value' && !result.matches)) return { kind: 'value', matches: false }
  const messages = results.flatMap((result) => (result.kind === 'error' ? [result.message] : []))
  if (messages.length === 0) return { kind: 'value', matches: true }
  return { kind: 'error', message: messages.length === 1 ? messages[0]! : `[${messages.join(', ')}]` }
}
