/**
 * ValidatingAdmissionPolicies: evaluates the CEL expressions of policies whose rules and bindings match a write. Upstream:
 * k8s.io/apiserver/pkg/admission/plugin/policy/validating and generic, v0.36.
 */
import {
  type AdmissionExpression,
  admissionExpression,
  type AdmissionInput,
  type AdmissionScope,
  type KubeObject,
  type KnownVariables,
  type Labels,
  type LabelSelector,
  labelSelector,
  matchCondition,
  type MatchInput,
  type MatchResult,
  parseApiVersion,
  StatusError,
  type StatusReason,
  type UnknownObject,
  type WebhookRule,
  failureText,
} from '@capstan/kube'
import { type Authorizer, forbiddenTo } from '../auth/authorizer.ts'
import { permissionCheck } from '../auth/permissions.ts'
import type { ResourceInfo } from '../registry/resource-info.ts'
import type { Registry } from '../registry/registry.ts'
import type { Store } from '../store/store.ts'
import { evaluateConditions, matchedVersion, selectsNamespace, selectsObject } from './hook.ts'
import type {
  BindingSpec,
  MatchResources,
  NamedRuleWithOperations,
  ParamRef,
  PolicySpec,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from './policy-types.ts'
import { variablesOf } from './policy-variables.ts'
import { requestOf } from './review.ts'
import { isExempt, type Write } from './webhooks.ts'

const PolicyStorage = 'validatingadmissionpolicies.admissionregistration.k8s.io'
const BindingStorage = 'validatingadmissionpolicybindings.admissionregistration.k8s.io'

export interface PoliciesOptions {
  readonly store: Store
  readonly registry: Registry
  readonly authorizer: Authorizer
  readonly isEnabled: boolean
  /** All served versions of a resource. */
  readonly versions: (info: ResourceInfo) => readonly ResourceInfo[]
  /** Converts an object to another version; returns a draft. */
  readonly convert: (to: ResourceInfo, object: KubeObject) => Promise<UnknownObject>
}

/** A compiled policy with its bindings. */
interface Policy {
  readonly name: string
  readonly spec: PolicySpec
  readonly match: Match
  readonly conditions: readonly ((input: MatchInput) => MatchResult)[]
  readonly validations: readonly Validation[]
  readonly bindings: readonly Binding[]
}

interface Binding {
  readonly name: string
  readonly spec: BindingSpec
  readonly match: Match | undefined
}

interface Validation {
  readonly source: string
  readonly expression: AdmissionExpression
  readonly message: string | undefined
  readonly messageExpression: AdmissionExpression | undefined
  readonly reason: string | undefined
}

interface Match {
  readonly rules: readonly NamedRuleWithOperations[]
  readonly excluded: readonly NamedRuleWithOperations[]
  readonly matchPolicy: 'Equivalent' | 'Exact'
  readonly namespaceSelector: ReturnType<typeof labelSelector>
  readonly objectSelector: ReturnType<typeof labelSelector>
}

/** A failed validation or an error that denies a write. `binding` is absent for an error that concerns no single binding. */
interface Denial {
  readonly policy: Policy
  readonly binding: Binding | undefined
  readonly message: string
  readonly reason?: string | undefined
}

/** The ValidatingAdmissionPolicies in the store that have bindings, compiled together with their bindings. */
export class Policies {
  readonly #options: PoliciesOptions
  #policies: readonly Policy[] | undefined
  readonly #stops: readonly (() => void)[]

  constructor(options: PoliciesOptions) {
    this.#options = options
    const invalidate = () => {
      this.#policies = undefined
    }
    this.#stops = [PolicyStorage, BindingStorage].map((resource) => options.store.subscribe(resource, invalidate))
  }

  /** Reports whether any policy could apply to writes of the resource. */
  mayApplyTo(info: ResourceInfo): boolean {
    return this.#allPolicies().length > 0 && !isExempt(info)
  }

  /**
   * Evaluates all policies that match a write, and sends their warnings.
   * @throws StatusError of the first policy that denies the write, or of a failed conversion to another version
   */
  async validate(write: Write): Promise<void> {
    const denials: Denial[] = []
    for (const policy of this.#allPolicies()) {
      try {
        const version = this.#matches(policy.match, write, true)
        if (version) await this.#apply(policy, version, write, denials)
      } catch (err) {
        if (err instanceof StatusError) throw err
        recordError(denials, policy, undefined, `failed to configure policy: ${(err as Error).message}`)
      }
    }
    const [first] = denials
    if (first) throw rejectionOf(first, write)
  }

  close(): void {
    for (const stop of this.#stops) stop()
  }

  async #apply(policy: Policy, version: ResourceInfo, write: Write, denials: Denial[]): Promise<void> {
    const { store, authorizer, convert } = this.#options
    const needsConversion = !write.isView && version !== write.info
    const inMatchedVersion = async (object: UnknownObject | undefined) =>
      object && needsConversion ? convert(version, object) : object
    // Throws when the kind is not served, even if no binding matches the write.
    if (policy.spec.paramKind) this.#kindOfParams(policy.spec.paramKind)
    let input: Omit<AdmissionInput, 'params'> | undefined
    for (const binding of policy.bindings) {
      if (binding.match && !this.#matches(binding.match, write, binding.match.rules.length > 0)) continue
      let params: readonly unknown[]
      try {
        params = this.#params(policy.spec, binding.spec.paramRef, write)
      } catch (err) {
        recordError(denials, policy, binding, `failed to configure binding: ${(err as Error).message}`)
        continue
      }
      if (!input) {
        const { namespace, plural, group } = write.target
        const [object, oldObject] = [await inMatchedVersion(write.object), await inMatchedVersion(write.oldObject)]
        const kind = write.isView ? write.kind : version
        const isInNamespace = namespace !== undefined && !(plural === 'namespaces' && group === '')
        input = {
          object: object ?? null,
          oldObject: oldObject ?? null,
          request: requestOf({ resource: version, kind, object, oldObject }, write),
          namespaceObject: isInNamespace ? (store.get({ resource: 'namespaces', namespace: '', name: namespace }) ?? null) : null,
          checkPermission: permissionCheck(authorizer, write.caller),
        }
      }
      for (const param of params) evaluateValidations(policy, binding, { ...input, params: param ?? null }, write, denials)
    }
  }

  /**
   * Returns the version of the resource that a rule matches; `undefined` when a selector does not match, an exclusion matches, or no rule
   * matches. With `evaluatesRules` false, only selectors and exclusions are evaluated, and the result is the requested version.
   */
  #matches(match: Match, write: Write, evaluatesRules: boolean): ResourceInfo | undefined {
    const { info, target, object, oldObject } = write
    const hook = { ...match, webhook: { rules: match.rules, matchPolicy: match.matchPolicy } } as never
    if (!selectsNamespace(hook, target, () => this.#namespaceLabels(write)) || !selectsObject(hook, object, oldObject))
      return undefined
    const matchesName = (rule: NamedRuleWithOperations) => !rule.resourceNames?.length || rule.resourceNames.includes(write.name)
    const otherVersions = () => this.#options.versions(info).filter((other) => other !== info)
    const versionMatchedBy = (list: readonly NamedRuleWithOperations[]) => {
      const webhook = { rules: list.filter(matchesName) as unknown as readonly WebhookRule[], matchPolicy: match.matchPolicy }
      return matchedVersion({ webhook } as never, target, info, otherVersions)
    }
    if (match.excluded.length > 0 && versionMatchedBy(match.excluded)) return undefined
    return evaluatesRules ? versionMatchedBy(match.rules) : info
  }

  #namespaceLabels({ target, object }: Write): Labels | undefined {
    const isNamespace = target.plural === 'namespaces' && target.group === ''
    if (isNamespace && object && target.subresource === undefined) return object.metadata.labels
    return this.#options.store.get({ resource: 'namespaces', namespace: '', name: target.namespace ?? '' })?.metadata.labels
  }

  /**
   * Returns the objects that a paramRef selects; `[undefined]` for a policy or binding without parameters.
   * @throws Error when the kind of the parameters is not served, when the paramRef does not fit that kind or the write, or when it selects
   * no object and parameterNotFoundAction is Deny
   */
  #params({ paramKind }: PolicySpec, ref: ParamRef | undefined, { target }: Write): readonly unknown[] {
    if (!paramKind || !ref) return [undefined]
    const { store } = this.#options
    const resource = this.#kindOfParams(paramKind)
    if (!resource.namespaced && ref.namespace)
      throw new Error('paramRef.namespace must not be provided for a cluster-scoped `paramKind`')
    const isNamespace = target.plural === 'namespaces' && target.group === ''
    const namespace = resource.namespaced ? ref.namespace || (isNamespace ? undefined : target.namespace) : ''
    if (namespace === undefined)
      throw new Error('cannot use namespaced paramRef in policy binding that matches cluster-scoped resources')
    const params = ref.name
      ? [store.get({ resource: resource.storage, namespace, name: ref.name })].filter((object) => object !== undefined)
      : store
          .list(resource.storage, resource.namespaced ? namespace : undefined)
          .filter(({ metadata }) => labelSelector(ref.selector as LabelSelector | undefined).matches(metadata.labels))
    if (params.length === 0 && ref.parameterNotFoundAction === 'Deny')
      throw new Error('no params found for policy binding with `Deny` parameterNotFoundAction')
    return params
  }

  /** Returns the resource of a paramKind. @throws Error when the kind is not served */
  #kindOfParams({ apiVersion = '', kind = '' }: NonNullable<PolicySpec['paramKind']>): ResourceInfo {
    const { group, version } = parseApiVersion(apiVersion)
    const resources = this.#options.registry.list()
    const resource = resources.find(
      (candidate) => candidate.group === group && candidate.version === version && candidate.kind === kind,
    )
    if (resource) return resource
    throw new Error(`failed to find resource referenced by paramKind: '${apiVersion}, Kind=${kind}'`)
  }

  #allPolicies(): readonly Policy[] {
    if (!this.#options.isEnabled) return []
    return (this.#policies ??= this.#compile())
  }

  #compile(): Policy[] {
    const { store } = this.#options
    const allBindings = store.list(BindingStorage) as readonly ValidatingAdmissionPolicyBinding[]
    return (store.list(PolicyStorage) as readonly ValidatingAdmissionPolicy[]).flatMap(({ metadata, spec }) => {
      const ownBindings = allBindings.filter((binding) => binding.spec.policyName === metadata.name)
      return ownBindings.length === 0 || !spec.matchConstraints ? [] : [compilePolicy(metadata.name, spec, ownBindings)]
    })
  }
}

function compilePolicy(name: string, spec: PolicySpec, ownBindings: readonly ValidatingAdmissionPolicyBinding[]): Policy {
  const scope: AdmissionScope = { hasParams: spec.paramKind !== undefined, variables: variablesOf(spec).known }
  const compile = (source: string, scopeChanges: AdmissionScope = {}): AdmissionExpression => {
    const compiled = admissionExpression(source, { ...scope, ...scopeChanges })
    if (typeof compiled === 'string') throw new TypeError(compiled)
    return compiled
  }
  return {
    name,
    spec,
    match: matchOf(spec.matchConstraints!),
    conditions: (spec.matchConditions ?? []).map(({ expression }) =>
      matchCondition(expression, { hasParams: spec.paramKind !== undefined }),
    ),
    validations: (spec.validations ?? []).map(({ expression, message, messageExpression, reason }) => ({
      source: expression,
      expression: compile(expression),
      message,
      messageExpression: messageExpression ? compile(messageExpression, { hasAuthorizer: false }) : undefined,
      reason,
    })),
    bindings: ownBindings.map(({ metadata, spec: bindingSpec }) => ({
      name: metadata.name,
      spec: bindingSpec,
      match: bindingSpec.matchResources && matchOf(bindingSpec.matchResources),
    })),
  }
}

const matchOf = (match: MatchResources): Match => ({
  rules: match.resourceRules ?? [],
  excluded: match.excludeResourceRules ?? [],
  matchPolicy: match.matchPolicy === 'Exact' ? 'Exact' : 'Equivalent',
  namespaceSelector: labelSelector((match.namespaceSelector ?? {}) as LabelSelector),
  objectSelector: labelSelector((match.objectSelector ?? {}) as LabelSelector),
})

/** Records a configuration error as a denial, unless the failurePolicy is Ignore. */
function recordError(denials: Denial[], policy: Policy, binding: Binding | undefined, message: string): void {
  if (policy.spec.failurePolicy !== 'Ignore') denials.push({ policy, binding, message })
}

function evaluateValidations(policy: Policy, binding: Binding, input: AdmissionInput, { warn }: Write, denials: Denial[]): void {
  const takeActions = (message: string, reason?: string) => {
    for (const action of binding.spec.validationActions ?? []) {
      if (action === 'Deny') denials.push({ policy, binding, message, reason })
      if (action === 'Warn')
        warn(`Validation failed for ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}': ${message}`)
    }
  }
  const reportError = (message: string) => {
    if (policy.spec.failurePolicy !== 'Ignore') takeActions(message)
  }
  const match = evaluateConditions(policy, input)
  if (match.kind === 'error') return reportError(match.message)
  if (!match.matches) return
  const variables: KnownVariables = new Map()
  for (const validation of policy.validations) {
    const result = validation.expression.run(input, variables)
    if (result.kind !== 'value') reportError(failureText(validation.source, result))
    else if (result.value !== true) takeActions(messageOf(validation, input, variables), validation.reason ?? 'Invalid')
  }
}

/** Maximum size of the result of a messageExpression, in bytes. */
const MaxMessage = 5 * 1024

function messageOf({ source, message, messageExpression }: Validation, input: AdmissionInput, variables: KnownVariables): string {
  const result = messageExpression?.run(input, variables)
  const computed = result?.kind === 'value' && typeof result.value === 'string' ? result.value.trim() : ''
  if (computed !== '' && Buffer.byteLength(computed) <= MaxMessage && !computed.includes('\n')) return computed
  return message?.trim() || `failed expression: ${source.trim()}`
}

const codes: { readonly [reason: string]: number } = { Forbidden: 403, Unauthorized: 401, RequestEntityTooLarge: 413 }

function rejectionOf({ policy, binding, message, reason = 'Invalid' }: Denial, { target, name }: Write): StatusError {
  const subject = binding
    ? `ValidatingAdmissionPolicy '${policy.name}' with binding '${binding.name}'`
    : `ValidatingAdmissionPolicy '${policy.name}'`
  const denialText = `${subject} denied request: ${message}`
  const rejection = forbiddenTo(target, name || 'Unknown', denialText)
  return new StatusError(reason as StatusReason, rejection.message, {
    code: codes[reason] ?? 422,
    details: { ...rejection.details, causes: [{ message: denialText }] },
  })
}
