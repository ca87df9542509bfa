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
import { HookFailed, isIgnorable } from './hook-failed.ts'
import { createObservedCalls } from './observe-calls.ts'
import type { CallObserver } from './observed-call.ts'
import { RegisteredCalls } from './registered-calls.ts'
import type { Registration } from './registry.ts'
import { HandlerRegistry } from './registry.ts'
import type { RuntimeClient } from './runtime-client.ts'
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
  /** Sets an additional condition for `ready`, which is evaluated at each read of `ready`. */
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
   * Records that the handlers of an ExtensionConfig are unknown because its server was never reached: hooks for objects that it selects
   * fail with its name until it is released. Upstream blocks all hooks at the start, and ignores the ExtensionConfig later.
   */
  quarantine(config: ExtensionConfig, problem: string): void
  release(extensionConfig: string): void
  /** Adds an observer of all later calls, including discovery. */
  observe(observer: CallObserver): void
  /** Breakers of called handlers, by registered name. */
  readonly breakers: ReadonlyMap<string, Breaker>
  /** Number of detections of a message that changes at every call, by registered handler name. */
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

export function createExtensionClient({
  transport,
  catalog,
  namespaceLabels,
  clock,
  log,
  breaker: limits,
  tracer = globalTracer(),
}: ExtensionClientOptions): ExtensionClient {
  const registry = new HandlerRegistry()
  /** Resets the breakers of handlers that are registered again, because they may have a new address, and forgets their messages. */
  const resetBreakers = (extensionConfig: string): void => {
    registeredCalls.resetBreakers((name) => name.endsWith(`.${extensionConfig}`))
    messages.forget((name) => name.endsWith(`.${extensionConfig}`))
  }
  const messages = new UnstableMessages()
  const recordMessage = (hook: Hook, handler: string, forObject: KubeObject, message: string): void => {
    if (!messages.record(handler, forObject.metadata.uid ?? '', message)) return
    log.warn('The message of a handler differed at each of its last calls, so conditions that show it change with every call', {
      hook: hook.name,
      handler,
      [forObject.kind]: keyText(keyOf(forObject)),
      calls: UnstableAfter,
    })
  }

  const observedCalls = createObservedCalls({ transport, clock, tracer })
  const registeredCalls = new RegisteredCalls({ catalog, observedCalls, clock, limits })
  let extraCondition: () => boolean = () => true
  const listeners: ((extensionConfig: string) => void)[] = []
  const notifyChanged = (extensionConfig: string): void => {
    for (const listener of listeners) listener(extensionConfig)
  }

  const matchesNamespace = async ({ namespaceSelector }: Selection, namespace: string | undefined): Promise<boolean> => {
    if (namespaceSelector.requirements.length === 0) return true
    try {
      return namespaceSelector.matches(await namespaceLabels(namespace ?? ''))
    } catch (err) {
      const message = `failed to match namespace: failed to get namespace ${namespace}: ${(err as Error).message}`
      throw new HookFailed('namespace', message, { cause: err })
    }
  }

  const handlersFor: RuntimeClient['handlersFor'] = async (hook, forObject) => {
    const head = `failed to get extension handlers for hook ${JSON.stringify(groupHook(hook))}`
    const names: string[] = []
    for (const quarantined of registry.quarantined()) {
      if (!matchesObject(quarantined, forObject)) continue
      if (!(await withContextAsync(head, matchesNamespace(quarantined, forObject.metadata.namespace)))) continue
      const name = JSON.stringify(quarantined.extensionConfig)
      const text = `${head}: ExtensionConfig ${name} has never been discovered: ${quarantined.problem}`
      throw new HookFailed('not-ready', text, { extensionConfig: quarantined.extensionConfig })
    }
    for (const registration of withContext(head, () => registry.list(hook))) {
      if (!matchesObject(registration, forObject)) continue
      const matches = matchesNamespace(registration, forObject.metadata.namespace)
      if (await withContextAsync(`${head}: failed to get extension handler ${JSON.stringify(registration.name)}`, matches)) {
        names.push(registration.name)
      }
    }
    return names
  }

  const call: ExtensionClient['call'] = async (hook, forObject, name, request, { settings, signal, onIgnored } = {}) => {
    const head = `failed to call extension handler ${JSON.stringify(name)}`
    const registration = withContext(head, () => registry.get(name))
    if (registration.hook !== hook.name || registration.group !== hook.group) {
      throw new HookFailed('wrong-hook', `${head}: handler does not match GroupHook ${JSON.stringify(groupHook(hook))}`)
    }
    if (!(await withContextAsync(head, matchesNamespace(registration, forObject.metadata.namespace)))) {
      const object = keyText(keyOf(forObject))
      throw new HookFailed('namespace', `${head}: namespaceSelector did not match object ${object}`)
    }
    if (!matchesObject(registration, forObject)) {
      const object = keyText(keyOf(forObject))
      throw new HookFailed('namespace', `${head}: objectSelector did not match object ${object}`)
    }
    const merged = { ...registration.settings, ...settings }
    const response = await registeredCalls.call(hook, registration, request, merged, signal).catch((err) => {
      if (!(err instanceof HookFailed)) throw err
      if (registration.failurePolicy !== 'Ignore' || !isIgnorable(err)) throw err.within(head)
      log.warn('Ignored a failed call of an extension handler', { hook: hook.name, handler: name, reason: err.message })
      onIgnored?.(name, err)
      return joinResponses(hook, [])
    })
    recordMessage(hook, name, forObject, response.message ?? '')
    assertSuccess(response, head)
    return response as ResponseOf<typeof hook>
  }

  /** Closes connections of removed servers and replaced CA bundles. */
  const retainConnections = (): void => transport.retain?.(registry.clientConfigs().flatMap(targetIfAny))

  return {
    get ready() {
      return registry.ready && extraCondition()
    },
    readyWhen(condition) {
      extraCondition = condition
    },
    catalog,
    handlersFor,
    call,

    async callAll(hook, forObject, request, { signal, onCall, onAnswer, onIgnored } = {}) {
      const head = `failed to call extension handlers for hook ${JSON.stringify(groupHook(hook))}`
      const responses: AnyResponse[] = []
      for (const name of await withContextAsync(head, handlersFor(hook, forObject))) {
        onCall?.(name)
        const options = { ...(signal ? { signal } : {}), ...(onIgnored ? { onIgnored } : {}) }
        const response = (await withContextAsync(head, call(hook, forObject, name, request, options))) as AnyResponse
        onAnswer?.(name, response)
        responses.push(response)
      }
      return joinResponses(hook, responses) as ResponseOf<typeof hook>
    },

    async discover(config, signal) {
      const head = `failed to discover extension ${JSON.stringify(config.metadata.name)}`
      const discovery = async () => {
        const target = { ...targetOf(config.spec.clientConfig, Discovery), extensionConfig: config.metadata.name }
        const call = { hook: Discovery, target, timeoutSeconds: defaultTimeout, request: {} }
        return observedCalls.call(call, { hook: Discovery, extensionConfig: config.metadata.name }, signal)
      }
      const response = (await withContextAsync(head, discovery())) as ResponseOf<typeof Discovery>
      assertSuccess(response, head)
      return withContext(head, () => checkDiscovery(config.metadata.name, response.handlers ?? [], catalog))
    },

    warmUp: (configs) => registry.warmUp(configs),
    register(config) {
      const { name } = config.metadata
      const isChanged = withContext(`failed to register ExtensionConfig ${JSON.stringify(name)}`, () => registry.add(config))
      resetBreakers(name)
      retainConnections()
      if (isChanged) notifyChanged(name)
    },
    relocate(config) {
      const { name } = config.metadata
      if (!withContext(`failed to register ExtensionConfig ${JSON.stringify(name)}`, () => registry.add(config))) return
      resetBreakers(name)
      retainConnections()
      notifyChanged(name)
    },
    unregister(name) {
      withContext(`failed to unregister ExtensionConfig ${JSON.stringify(name)}`, () => registry.remove(name))
      resetBreakers(name)
      retainConnections()
      notifyChanged(name)
    },
    quarantine: (config, problem) => registry.quarantine(config, problem),
    release(name) {
      if (registry.release(name)) notifyChanged(name)
    },
    onChanged: (listener) => void listeners.push(listener),
    observe: observedCalls.observe,
    breakers: registeredCalls.breakers,
    unstableMessages: messages.counts,
    close: () => transport.close(),
  }
}

/** Returns the target; an empty list for an ExtensionConfig without an address, which is not called. */
function targetIfAny(config: ClientConfig): Target[] {
  try {
    return [targetOf(config, Discovery)]
  } catch {
    return []
  }
}

type Selection = Pick<Registration, 'namespaceSelector' | 'objectSelector'>

/** Whether the object selector matches. It applies to Clusters only: other objects do not have their labels. */
const matchesObject = ({ objectSelector }: Selection, { kind, metadata }: KubeObject): boolean =>
  kind !== 'Cluster' || objectSelector.matches(metadata.labels)

/** Adds `context` to errors that `act` throws. */
function withContext<T>(context: string, act: () => T): T {
  try {
    return act()
  } catch (err) {
    throw err instanceof HookFailed ? err.within(context) : err
  }
}

async function withContextAsync<T>(context: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (err) {
    throw err instanceof HookFailed ? err.within(context) : err
  }
}
