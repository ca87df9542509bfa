/** Calls the handlers that are registered for a hook and aggregates their responses. Upstream: internal/runtime/client, v1.14. */
import type { Catalog, ClientConfig, ExtensionConfig, ExtensionHandler, Hook, ResponseOf } from '@capstan/api'
import { Discovery, groupHookText as groupHook } from '@capstan/api'
import type { Clock, KubeObject, Logger } from '@capstan/kube'
import { keyOf, keyText } from '@capstan/kube'
import type { Tracer } from '@opentelemetry/api'
import { type AnyResponse, assertSuccess, joinResponses } from './answers.ts'
import type { Breaker, BreakerLimits } from './breaker.ts'
import { type Target, targetOf } from './client-config.ts'
import { checkDiscovery, defaultTimeout } from './discovery.ts'
import { HookFailed, isIgnorable, withContext, withContextAsync } from './hook-failed.ts'
import { createObservedCalls, type ObservedCalls } from './observe-calls.ts'
import type { CallObserver } from './observed-call.ts'
import { RegisteredCalls } from './registered-calls.ts'
import { HandlerRegistry } from './registry.ts'
import type { CallAllOptions, CallInput, CallOptions, RuntimeClient } from './runtime-client.ts'
import { SelectedHandlers } from './selected-handlers.ts'
import { globalTracer } from '../tracing.ts'
import type { HookTransport } from './transport.ts'
import { UnstableAfter, UnstableMessages } from './unstable-messages.ts'

/** The runtime client with the methods for the ExtensionConfig controller. */
export interface ExtensionClient extends RuntimeClient {
  readonly catalog: Catalog
  /** Calls discovery on the server of an ExtensionConfig. @throws HookFailed */
  discover(config: ExtensionConfig, signal?: AbortSignal): Promise<ExtensionHandler[]>
  /** Registers all ExtensionConfigs. Afterwards the client is ready if the condition of `readyWhen` is true. */
  warmUp(configs: readonly ExtensionConfig[]): void
  /** Sets an additional condition for `ready`, which is evaluated when `ready` is read after `warmUp`. */
  readyWhen(condition: () => boolean): void
  /** Registers `status.handlers` of an ExtensionConfig. Replaces its earlier handlers. */
  register(config: ExtensionConfig): void
  /**
   * Registers the handlers of an earlier discovery with the present spec, when discovery fails. Resets their breakers only if something
   * changed. Upstream calls the handlers with the spec of the last successful discovery.
   */
  relocate(config: ExtensionConfig): void
  unregister(extensionConfig: string): void
  /**
   * Records that the handlers of an ExtensionConfig are unknown because its discovery never succeeded. Until `release`, hooks for objects
   * that it selects fail with an error that names it. Upstream blocks all hooks at the start, and ignores the ExtensionConfig later.
   */
  quarantine(config: ExtensionConfig, problem: string): void
  release(extensionConfig: string): void
  /** Adds an observer of all later calls, including discovery. */
  observe(observer: CallObserver): void
  /** Breakers of called handlers, by registered name. */
  readonly breakers: ReadonlyMap<string, Breaker>
  /**
   * Number of calls with an unstable message, by registered handler name. A message is unstable if it has differed from the message before at
   * each of the last calls for the same object.
   */
  readonly unstableMessages: ReadonlyMap<string, number>
  close(): void
}

export interface ExtensionClientOptions {
  readonly transport: HookTransport
  /** Hooks for which handlers may register, including those of providers. */
  readonly catalog: Catalog
  /** Returns the labels of a namespace. @throws Error if the namespace does not exist */
  readonly namespaceLabels: (namespace: string) => Promise<{ readonly [key: string]: string }>
  readonly clock: Clock
  readonly log: Logger
  readonly breaker?: BreakerLimits
  /** Tracer that starts a span for each call. Default: the tracer that the program has registered. */
  readonly tracer?: Tracer
}

export const createExtensionClient = (options: ExtensionClientOptions): ExtensionClient => new RegistryClient(options)

/** Calls the handlers of a `HandlerRegistry`. */
class RegistryClient implements ExtensionClient {
  readonly catalog: Catalog
  readonly #options: ExtensionClientOptions
  readonly #registry = new HandlerRegistry()
  readonly #selected: SelectedHandlers
  readonly #observedCalls: ObservedCalls
  readonly #registeredCalls: RegisteredCalls
  readonly #messages = new UnstableMessages()
  readonly #listeners: ((extensionConfig: string) => void)[] = []
  #extraCondition: () => boolean = () => true

  constructor(options: ExtensionClientOptions) {
    const { transport, catalog, namespaceLabels, clock, breaker: limits, tracer = globalTracer() } = options
    this.#options = options
    this.catalog = catalog
    this.#selected = new SelectedHandlers(this.#registry, namespaceLabels)
    this.#observedCalls = createObservedCalls({ transport, clock, tracer })
    this.#registeredCalls = new RegisteredCalls({ catalog, observedCalls: this.#observedCalls, clock, limits })
  }

  get ready(): boolean {
    return this.#registry.ready && this.#extraCondition()
  }

  get breakers(): ReadonlyMap<string, Breaker> {
    return this.#registeredCalls.breakers
  }

  get unstableMessages(): ReadonlyMap<string, number> {
    return this.#messages.counts
  }

  readyWhen(condition: () => boolean): void {
    this.#extraCondition = condition
  }

  handlersFor(hook: Hook, forObject: KubeObject): Promise<readonly string[]> {
    return this.#selected.namesFor(hook, forObject)
  }

  async call<H extends Hook>(
    hook: H,
    forObject: KubeObject,
    name: string,
    request: CallInput<H>,
    { settings, signal, onIgnored }: CallOptions = {},
  ): Promise<ResponseOf<H>> {
    const head = `failed to call extension handler ${JSON.stringify(name)}`
    const registration = await withContextAsync(head, this.#selected.get(name, hook, forObject))
    const merged = { ...registration.settings, ...settings }
    const received = this.#registeredCalls.call(hook, registration, request, merged, signal).then((answer) => {
      this.#recordMessage(hook, name, forObject, answer.message ?? '')
      return answer
    })
    const response = await received.catch((err) => {
      if (!(err instanceof HookFailed)) throw err
      if (registration.failurePolicy !== 'Ignore' || !isIgnorable(err)) throw err.within(head)
      const failure = { hook: hook.name, handler: name, reason: err.message }
      this.#options.log.warn('Ignored a failed call of an extension handler', failure)
      onIgnored?.(name, err)
      return joinResponses(hook, [])
    })
    assertSuccess(response, head)
    return response as ResponseOf<H>
  }

  async callAll<H extends Hook>(
    hook: H,
    forObject: KubeObject,
    request: CallInput<H>,
    { signal, onCall, onAnswer, onIgnored }: CallAllOptions = {},
  ): Promise<ResponseOf<H>> {
    const head = `failed to call extension handlers for hook ${JSON.stringify(groupHook(hook))}`
    const responses: AnyResponse[] = []
    for (const name of await withContextAsync(head, this.handlersFor(hook, forObject))) {
      onCall?.(name)
      const options = { ...(signal ? { signal } : {}), ...(onIgnored ? { onIgnored } : {}) }
      const response = (await withContextAsync(head, this.call(hook, forObject, name, request, options))) as AnyResponse
      onAnswer?.(name, response)
      responses.push(response)
    }
    return joinResponses(hook, responses) as ResponseOf<H>
  }

  async discover({ metadata: { name }, spec }: ExtensionConfig, signal?: AbortSignal): Promise<ExtensionHandler[]> {
    const head = `failed to discover extension ${JSON.stringify(name)}`
    const discovery = async () => {
      const target = { ...targetOf(spec.clientConfig, Discovery), extensionConfig: name }
      const call = { hook: Discovery, target, timeoutSeconds: defaultTimeout, request: {} }
      return this.#observedCalls.call(call, { hook: Discovery, extensionConfig: name }, signal)
    }
    const response = (await withContextAsync(head, discovery())) as ResponseOf<typeof Discovery>
    assertSuccess(response, head)
    return withContext(head, () => checkDiscovery(name, response.handlers ?? [], this.catalog))
  }

  warmUp(configs: readonly ExtensionConfig[]): void {
    this.#registry.warmUp(configs)
  }

  register(config: ExtensionConfig): void {
    const isChanged = this.#add(config)
    this.#resetCallState(config.metadata.name)
    if (isChanged) this.#notifyChanged(config.metadata.name)
  }

  relocate(config: ExtensionConfig): void {
    if (!this.#add(config)) return
    this.#resetCallState(config.metadata.name)
    this.#notifyChanged(config.metadata.name)
  }

  unregister(name: string): void {
    withContext(`failed to unregister ExtensionConfig ${JSON.stringify(name)}`, () => this.#registry.remove(name))
    this.#resetCallState(name)
    this.#notifyChanged(name)
  }

  quarantine(config: ExtensionConfig, problem: string): void {
    this.#registry.quarantine(config, problem)
  }

  release(name: string): void {
    if (this.#registry.release(name)) this.#notifyChanged(name)
  }

  onChanged(listener: (extensionConfig: string) => void): void {
    this.#listeners.push(listener)
  }

  observe(observer: CallObserver): void {
    this.#observedCalls.observe(observer)
  }

  close(): void {
    this.#options.transport.close()
  }

  /** Registers the handlers of an ExtensionConfig. Returns whether they changed. */
  #add(config: ExtensionConfig): boolean {
    const context = `failed to register ExtensionConfig ${JSON.stringify(config.metadata.name)}`
    return withContext(context, () => this.#registry.add(config))
  }

  /**
   * Resets the breakers of the ExtensionConfig's handlers, which may have a new address or may be removed, and forgets their messages.
   * Closes connections to removed servers and connections with replaced CA bundles.
   */
  #resetCallState(extensionConfig: string): void {
    this.#registeredCalls.resetBreakers((name) => name.endsWith(`.${extensionConfig}`))
    this.#messages.forget((name) => name.endsWith(`.${extensionConfig}`))
    this.#options.transport.retain?.(this.#registry.clientConfigs().flatMap(targetIfAny))
  }

  #notifyChanged(extensionConfig: string): void {
    for (const listener of this.#listeners) listener(extensionConfig)
  }

  #recordMessage(hook: Hook, handler: string, forObject: KubeObject, message: string): void {
    if (!this.#messages.record(handler, forObject.metadata.uid ?? '', message)) return
    this.#options.log.warn(
      'The message of a handler differed at each of its last calls, so conditions that show it change with every call',
      {
        hook: hook.name,
        handler,
        [forObject.kind]: keyText(keyOf(forObject)),
        calls: UnstableAfter,
      },
    )
  }
}

/** Returns a list with the target; an empty list if the address or caBundle is invalid, since such a server is never called. */
function targetIfAny(config: ClientConfig): Target[] {
  try {
    return [targetOf(config, Discovery)]
  } catch {
    return []
  }
}
