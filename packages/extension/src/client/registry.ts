/** The handlers of all ExtensionConfigs. Upstream: internal/runtime/registry, v1.14. */
import type { ClientConfig, ExtensionConfig, Hook } from '@capstan/api'
import { extensionOptions } from '@capstan/api'
import type { Selector } from '@capstan/kube'
import { equal, labelSelector, parseApiVersion } from '@capstan/kube'
import { HookFailed } from './hook-failed.ts'

/** A handler with the data for its calls. */
export interface Registration {
  /** `<handler>.<extensionconfig>`. */
  readonly name: string
  /** The handler's name on its server. */
  readonly handler: string
  readonly extensionConfig: string
  readonly group: string
  readonly version: string
  readonly hook: string
  readonly namespaceSelector: Selector
  /** Selects Clusters in matching namespaces; objects of other kinds are selected by namespace only. */
  readonly objectSelector: Selector
  readonly clientConfig: ClientConfig
  readonly timeoutSeconds: number | undefined
  readonly failurePolicy: 'Ignore' | 'Fail'
  readonly settings: { readonly [name: string]: string }
}

/** An ExtensionConfig that was never discovered: its hooks and handlers are unknown. */
export interface Quarantined extends Pick<Registration, 'extensionConfig' | 'namespaceSelector' | 'objectSelector'> {
  readonly problem: string
}

/**
 * Handlers by ExtensionConfig. `list`, `get`, `add` and `remove` throw before `warmUp`, because the registry may lack handlers until then.
 * Handlers are ordered by the name of their ExtensionConfig, then as discovered; upstream has no order.
 */
export class HandlerRegistry {
  readonly #byConfig = new Map<string, readonly Registration[]>()
  readonly #quarantined = new Map<string, Quarantined>()
  #ready = false

  get ready(): boolean {
    return this.#ready
  }

  /** Registers all ExtensionConfigs. If one is invalid, throws and registers none. */
  warmUp(configs: readonly ExtensionConfig[]): void {
    const registrationsByConfig = configs.map((config) => [config.metadata.name, registrationsOf(config)] as const)
    for (const [name, registrations] of registrationsByConfig) this.#byConfig.set(name, registrations)
    this.#ready = true
  }

  /**
   * Replaces the handlers of an ExtensionConfig. If the new handlers are invalid, throws and keeps the earlier ones.
   *
   * @returns whether the handlers changed, including their address, selectors and settings; true for a new ExtensionConfig
   */
  add(config: ExtensionConfig): boolean {
    this.#assertReady(`failed to add ExtensionConfig ${JSON.stringify(config.metadata.name)} to registry`)
    const previous = this.#byConfig.get(config.metadata.name)
    const current = registrationsOf(config)
    this.#byConfig.set(config.metadata.name, current)
    return !equal(previous?.map(asData), current.map(asData))
  }

  remove(extensionConfig: string): void {
    this.#assertReady(`failed to remove ExtensionConfig ${JSON.stringify(extensionConfig)} from registry`)
    this.#byConfig.delete(extensionConfig)
  }

  /** Returns the handlers of the hook in any version, in order. */
  list({ group, name }: Pick<Hook, 'group' | 'name'>): Registration[] {
    this.#assertReady(`failed to list extension handlers for GroupHook ${JSON.stringify(`${name}.${group}`)}`)
    return [...this.#byConfig]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, registrations]) => registrations)
      .filter((registration) => registration.group === group && registration.hook === name)
  }

  /** Records an ExtensionConfig whose handlers are unknown. Until `release`, hook calls for objects that its selectors match fail. */
  quarantine(config: ExtensionConfig, problem: string): void {
    const { name } = config.metadata
    this.#quarantined.set(name, {
      extensionConfig: name,
      namespaceSelector: labelSelector(config.spec.namespaceSelector ?? {}),
      objectSelector: extensionOptions(config).objectSelector,
      problem,
    })
  }

  /** Removes an ExtensionConfig from quarantine. Returns whether it was quarantined. */
  release(extensionConfig: string): boolean {
    return this.#quarantined.delete(extensionConfig)
  }

  /** Returns quarantined ExtensionConfigs, sorted by name. */
  quarantined(): Quarantined[] {
    return [...this.#quarantined.values()].sort((a, b) => (a.extensionConfig < b.extensionConfig ? -1 : 1))
  }

  /** Returns the addresses of all servers with registered handlers. */
  clientConfigs(): ClientConfig[] {
    return [...this.#byConfig.values()].flatMap(([first]) => (first ? [first.clientConfig] : []))
  }

  /** Returns the handler of this name. @throws HookFailed `not-registered`, or `not-ready` before `warmUp` */
  get(name: string): Registration {
    const errorPrefix = `failed to get extension handler ${JSON.stringify(name)} from registry`
    this.#assertReady(errorPrefix)
    for (const registrations of this.#byConfig.values()) {
      const match = registrations.find((registration) => registration.name === name)
      if (match) return match
    }
    throw new HookFailed('not-registered', `${errorPrefix}: handler with name ${JSON.stringify(name)} has not been registered`)
  }

  #assertReady(errorPrefix: string): void {
    if (this.#ready) return
    throw new HookFailed('not-ready', `${errorPrefix}: invalid operation: registry has not been warmed up`)
  }
}

/** Returns the registration with its selectors as text, so that `equal` can compare it. */
const asData = ({ namespaceSelector, objectSelector, ...data }: Registration) => ({
  ...data,
  selectors: [namespaceSelector.text, objectSelector.text],
})

function registrationsOf(config: ExtensionConfig): Registration[] {
  const { objectSelector, overrides } = extensionOptions(config)
  const { metadata, spec, status } = config
  return (status?.handlers ?? []).map(({ name, requestHook, timeoutSeconds, failurePolicy }) => {
    const handler = name.endsWith(`.${metadata.name}`) ? name.slice(0, -metadata.name.length - 1) : name
    return {
      name,
      handler,
      extensionConfig: metadata.name,
      ...parseApiVersion(requestHook.apiVersion),
      hook: requestHook.hook,
      // Admission defaults to an empty selector, which matches all namespaces.
      namespaceSelector: labelSelector(spec.namespaceSelector ?? {}),
      objectSelector,
      clientConfig: spec.clientConfig,
      // The operator's override has priority over the announced value.
      timeoutSeconds: overrides[handler]?.timeoutSeconds ?? timeoutSeconds,
      failurePolicy: overrides[handler]?.failurePolicy ?? failurePolicy ?? 'Fail',
      settings: spec.settings ?? {},
    }
  })
}
