/**
 * Calls webhooks for writes: mutating webhooks one after the other, validating webhooks in parallel. The webhooks that may apply to a
 * resource are cached until a configuration changes.
 * Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, v0.36.
 */
import {
  messageOf,
  badRequest,
  type Clock,
  equal,
  inPieces,
  type KubeObject,
  type Labels,
  type Logger,
  notFound,
  type Random,
  randomUUID,
  resourceName,
  StatusError,
  type UnknownObject,
  type Webhook,
} from '@capstan/kube'
import type { Authorizer } from '../auth/authorizer.ts'
import { permissionCheck } from '../auth/permissions.ts'
import type { ResourceInfo } from '../registry/resource-info.ts'
import type { Store } from '../store/store.ts'
import {
  evaluateConditions,
  type Hook,
  hooksOf,
  type HookType,
  matchedVersion,
  mayMatch,
  selectsNamespace,
  selectsObject,
} from './hook.ts'
import {
  type AdmissionAttributes,
  type VersionedAttributes,
  internalError,
  applyingPatch,
  requestOf,
  reviewOf,
  UndecodablePatch,
  type WebhookResponse,
  decodeResponse,
} from './review.ts'
import type { WebhookCaller } from './webhook-caller.ts'

const configurations: { readonly [type in HookType]: string } = {
  mutating: 'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  validating: 'validatingwebhookconfigurations.admissionregistration.k8s.io',
}

const pluginNames = {
  mutating: 'MutatingAdmissionWebhook',
  validating: 'ValidatingAdmissionWebhook',
} as const satisfies { readonly [type in HookType]: string }

export interface WebhooksOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly caller: WebhookCaller
  readonly log: Logger
  /** Decides the permission checks in match conditions. */
  readonly authorizer: Authorizer
  /** Names of the enabled admission plugins. Webhooks of a type are called only if the plugin of this type is enabled (`pluginNames`). */
  readonly enabled: ReadonlySet<string>
  /** All served versions of a resource. */
  readonly versions: (info: ResourceInfo) => readonly ResourceInfo[]
  /** Converts an object to another version; returns a draft. */
  readonly convert: (to: ResourceInfo, object: KubeObject) => Promise<UnknownObject>
}

/** One write, at the current stage. */
export interface Write extends AdmissionAttributes {
  readonly info: ResourceInfo
  /** Whether webhooks receive a Scale or an Eviction, which is not converted to other versions, instead of the object itself. */
  readonly isView: boolean
  readonly object: UnknownObject | undefined
  readonly oldObject: UnknownObject | undefined
  readonly warn: (text: string) => void
  /**
   * Returns a signal that aborts when no client waits for the response any more. When absent, an unanswered call ends only at its timeout.
   */
  readonly ended: (() => AbortSignal) | undefined
}

/** Decodes a patched document: an object of the resource or, with `isView`, a Scale or an Eviction. */
type ToObject = (document: Record<string, unknown>) => UnknownObject | Promise<UnknownObject>

type HooksByType = { readonly [type in HookType]: readonly Hook[] }

const noHooks: HooksByType = { mutating: [], validating: [] }

/** The webhooks of all webhook configurations in the store. */
export class Webhooks {
  readonly #options: WebhooksOptions
  #hooks: HooksByType | undefined
  #hooksByResource = new WeakMap<ResourceInfo, HooksByType>()
  readonly #stops: readonly (() => void)[]

  constructor(options: WebhooksOptions) {
    this.#options = options
    const invalidate = () => {
      this.#hooks = undefined
      this.#hooksByResource = new WeakMap()
    }
    this.#stops = Object.values(configurations).map((resource) => options.store.subscribe(resource, invalidate))
  }

  /** Reports whether any webhook could apply to writes of the resource. */
  mayApplyTo(info: ResourceInfo, type: HookType): boolean {
    return this.#hooksFor(info)[type].length > 0
  }

  /**
   * Calls mutating webhooks. `toObject` decodes a patched document; it also prunes and defaults an object of the resource.
   * @returns the resulting object: the same object when no webhook changed it
   * @throws StatusError for example when a webhook denies the write, or when a call fails and the failurePolicy of the webhook is not
   * Ignore
   */
  async mutate(write: Write, toObject: ToObject): Promise<UnknownObject | undefined> {
    let { object } = write
    const hooks = this.#hooksFor(write.info).mutating
    const reinvocable: Hook[] = []
    const toReinvoke = new Set<Hook>()
    for (const hook of hooks) {
      const outcome = await this.#callIfMatched(hook, { ...write, object })
      if (!outcome) continue
      const next = await this.#applyResponse(hook, outcome, object, write, toObject)
      if (next !== object) {
        object = next
        for (const earlier of reinvocable) toReinvoke.add(earlier)
      }
      if (hook.webhook.reinvocationPolicy === 'IfNeeded') reinvocable.push(hook)
    }
    // Reinvocation: calls webhooks with policy IfNeeded once more, if a later webhook changed the object.
    for (const hook of hooks) {
      if (!toReinvoke.has(hook)) continue
      const outcome = await this.#callIfMatched(hook, { ...write, object })
      if (outcome) object = await this.#applyResponse(hook, outcome, object, write, toObject)
    }
    return object
  }

  /**
   * Calls validating webhooks in parallel.
   * @throws StatusError for example when a webhook denies the write, or when a call fails and the failurePolicy of the webhook is not
   * Ignore; if there are several errors, that of the first webhook in the order of the configurations
   */
  async validate(write: Write): Promise<void> {
    const hooks = this.#hooksFor(write.info).validating
    const outcomes = await Promise.allSettled(hooks.map((hook) => this.#callIfMatched(hook, write)))
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  close(): void {
    for (const stop of this.#stops) stop()
  }

  #hooksFor(info: ResourceInfo): HooksByType {
    const hooks = (this.#hooks ??= this.#readHooks())
    if (hooks === noHooks || isExempt(info)) return noHooks
    let applicable = this.#hooksByResource.get(info)
    if (!applicable) {
      const mayApply = (hook: Hook) => mayMatch(hook, info)
      applicable = { mutating: hooks.mutating.filter(mayApply), validating: hooks.validating.filter(mayApply) }
      this.#hooksByResource.set(info, applicable)
    }
    return applicable
  }

  #readHooks(): HooksByType {
    const { store, enabled } = this.#options
    const hooksOfType = (type: HookType) =>
      enabled.has(pluginNames[type])
        ? hooksOf(type, store.list(configurations[type]) as readonly (KubeObject & { webhooks?: readonly Webhook[] })[])
        : []
    const hooks = { mutating: hooksOfType('mutating'), validating: hooksOfType('validating') }
    return hooks.mutating.length + hooks.validating.length === 0 ? noHooks : hooks
  }

  /**
   * Returns the response of one webhook; `undefined` when the write does not match, or when the call fails and the failure is ignored.
   * @throws StatusError for example when the webhook denies the write or does not support the dry run
   */
  async #callIfMatched(
    hook: Hook,
    write: Write,
  ): Promise<{ versioned: VersionedAttributes; response: WebhookResponse } | undefined> {
    const versioned = await this.#attributesIfMatched(hook, write)
    if (!versioned) return undefined
    const { webhook } = hook
    if (write.dryRun && !['None', 'NoneOnDryRun'].includes(webhook.sideEffects)) {
      throw badRequest(`admission webhook ${JSON.stringify(webhook.name)} does not support dry run`)
    }
    let response: WebhookResponse
    try {
      response = await this.#call(hook, versioned, write)
    } catch (err) {
      const text = `failed calling webhook ${JSON.stringify(webhook.name)}: ${(err as Error).message}`
      if (webhook.failurePolicy !== 'Ignore' || write.ended?.().aborted) throw internalError(text)
      this.#options.log.warn('Webhook call failed and was ignored, because failurePolicy is Ignore', {
        webhook: webhook.name,
        configuration: hook.configuration,
        why: (err as Error).message,
      })
      return undefined
    }
    response.warnings.forEach(write.warn)
    if (response.denial) throw response.denial
    return { versioned, response }
  }

  /**
   * Returns the attributes that a webhook receives; `undefined` when the write does not match. Match conditions are evaluated last. An
   * error in a match condition counts as no match if failurePolicy is Ignore.
   * @throws StatusError for example Forbidden for an error in a match condition with another failurePolicy
   */
  async #attributesIfMatched(hook: Hook, write: Write): Promise<VersionedAttributes | undefined> {
    const versioned = await this.#attributesIfSelected(hook, write)
    if (!versioned || hook.conditions.length === 0) return versioned
    const { object = null, oldObject = null } = versioned
    const { namespace, plural, group } = write.target
    const isNamespace = plural === 'namespaces' && group === ''
    const namespaceObject =
      namespace === undefined || isNamespace
        ? null
        : (this.#options.store.get({ resource: 'namespaces', namespace: '', name: namespace }) ?? null)
    const checkPermission = permissionCheck(this.#options.authorizer, write.caller)
    const result = evaluateConditions(hook, {
      object,
      oldObject,
      request: requestOf(versioned, write),
      namespaceObject,
      checkPermission,
    })
    if (result.kind === 'value') return result.matches ? versioned : undefined
    if (hook.webhook.failurePolicy === 'Ignore') return undefined
    const { target, name } = write
    throw new StatusError('Forbidden', `${resourceName(target)} ${JSON.stringify(name)} is forbidden: ${result.message}`, {
      details: { name, ...(target.group === '' ? {} : { group: target.group }), kind: target.plural },
    })
  }

  async #attributesIfSelected(hook: Hook, write: Write): Promise<VersionedAttributes | undefined> {
    const { info, target, isView, object, oldObject } = write
    const version = matchedVersion(hook, target, info, () => this.#options.versions(info).filter((other) => other !== info))
    if (!version || !selectsObject(hook, object, oldObject)) return undefined
    if (!selectsNamespace(hook, target, () => this.#namespaceLabels(write))) return undefined
    if (version === info || isView) return { resource: version, kind: write.kind, object, oldObject }
    const { convert } = this.#options
    try {
      return {
        resource: version,
        kind: version,
        object: object && (await convert(version, object)),
        oldObject: oldObject && (await convert(version, oldObject)),
      }
    } catch (err) {
      // Upstream adds this prefix twice: in the dispatcher and in the code that it calls.
      throw internalError(`Internal error occurred: ${messageOf(err)}`)
    }
  }

  /** @throws StatusError NotFound when the namespace does not exist */
  #namespaceLabels({ target, object }: Write): Labels | undefined {
    const isNamespace = target.plural === 'namespaces' && target.group === ''
    if (isNamespace && object && target.subresource === undefined) return object.metadata.labels
    const name = target.namespace ?? ''
    const namespace = this.#options.store.get({ resource: 'namespaces', namespace: '', name })
    if (!namespace) throw notFound({ group: '', plural: 'namespaces' }, name)
    return namespace.metadata.labels
  }

  /** @throws Error describing the failed call */
  async #call(hook: Hook, versioned: VersionedAttributes, write: Write): Promise<WebhookResponse> {
    const { random, caller } = this.#options
    const uid = randomUUID(random)
    const { clientConfig } = hook.webhook
    let document: unknown
    try {
      document = await caller.call(clientConfig, hook.timeoutSeconds, reviewOf(hook, uid, versioned, write), write.ended?.())
    } catch (err) {
      throw new Error(`failed to call webhook: ${(err as Error).message}`, { cause: err })
    }
    try {
      return decodeResponse(hook, uid, document)
    } catch (err) {
      if (err instanceof UndecodablePatch) throw err
      throw new Error(`received invalid webhook response: ${(err as Error).message}`, { cause: err })
    }
  }

  async #applyResponse(
    hook: Hook,
    { versioned, response }: { versioned: VersionedAttributes; response: WebhookResponse },
    object: UnknownObject | undefined,
    { info, isView }: Write,
    toObject: ToObject,
  ): Promise<UnknownObject | undefined> {
    if (response.patch === undefined) return object
    if (!object || !versioned.object) {
      const name = JSON.stringify(hook.webhook.name)
      throw internalError(`admission webhook ${name} attempted to modify the object, which is not supported for this operation`)
    }
    const document = await inPieces(this.#options.clock, applyingPatch(versioned.object, response.patch))
    if (equal(document, versioned.object)) return object
    const needsConversion = !isView && versioned.resource.version !== info.version
    return toObject(needsConversion ? await this.#options.convert(info, document as UnknownObject) : document)
  }
}

/**
 * Reports whether writes of a resource skip webhooks and policies. Webhook configurations, policies and policy bindings do, so that an
 * administrator can repair a broken configuration. Upstream: rules.IsExemptAdmissionConfigurationResource.
 */
export const isExempt = ({ group, plural }: ResourceInfo): boolean =>
  group === 'admissionregistration.k8s.io' && /^(mutating|validating)/.test(plural)
