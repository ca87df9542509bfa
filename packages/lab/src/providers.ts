/** Assembles the providers of this repository for a manager, on the embedded API server or any other. */
import { appendAll } from '@capstan/kube'
import { coreKinds, type Hook } from '@capstan/api'
import type { Controller } from '@capstan/controller'
import { createReadOnlyExtensionConfigController, type FeatureGates } from '@capstan/core'
import type { CallObserver, HookTransport, RuntimeClient } from '@capstan/extension'
import type { Client, Clock, DeclaredKind, Logger, Random } from '@capstan/kube'
import type { Workloads } from '@capstan/local'
import { createWorkloads, localControllers, localKinds } from '@capstan/local'
import { connectWorkload, type OwnPod } from './connect-workload.ts'
import { coreControllers, createHooks } from './core-controllers.ts'
import type { HookCall } from './hook-calls.ts'
import type { Stores } from './stores.ts'

export const ProviderNames = ['core', 'local'] as const
export type ProviderName = (typeof ProviderNames)[number]

/** The kinds that each provider installs, and whose admission it serves. */
export const providerKinds: Readonly<Record<ProviderName, readonly DeclaredKind[]>> = { core: coreKinds, local: localKinds }

export interface ProvidersOptions {
  /** The providers that run in this process. */
  readonly names: readonly ProviderName[]
  /** Reads the labels of Namespaces, which the selectors of ExtensionConfigs need. */
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** State of simulated workload clusters. */
  readonly stores: Stores
  /** Address at which workload clusters are served. It is part of their kubeconfigs, and must not change while they exist. */
  readonly endpoint: { readonly host: string; readonly port: number }
  /** The Pod in which this process runs, if it runs in a cluster. */
  readonly ownPod?: OwnPod
  /** Handlers of runtime hooks. Default: the handlers that ExtensionConfigs register. */
  readonly runtime?: RuntimeClient
  /** Feature gates. Default: all are enabled. */
  readonly gates?: FeatureGates
  /** Hooks that other providers declare, in all versions. ExtensionConfigs may register handlers for them. */
  readonly providerHooks?: readonly Hook[]
  /** Transport for calls of extensions. Default: HTTPS. */
  readonly hookTransport?: HookTransport
  /**
   * Called after each call of an extension that was not aborted, including discovery, for example to record the calls; not called for calls
   * of the handlers in `runtime`.
   */
  readonly onCall?: CallObserver
  /**
   * Called with each result of a hook call, including failures; not called for a call of all handlers of a hook if there are none, or if they
   * cannot be determined.
   */
  onHookCall?(call: HookCall): void
}

export interface Providers {
  readonly kinds: readonly DeclaredKind[]
  readonly controllers: readonly Controller[]
  readonly workloads: Workloads
  /** Stops the API servers of simulated workload clusters. Must be called after the manager has stopped. */
  close(): Promise<void>
}

/** Creates the controllers of the named providers, and the simulated workload clusters. */
export function createProviders(options: ProvidersOptions): Providers {
  const { names, stores, clock, random, log, endpoint, ownPod, gates = {} } = options
  const workloads = createWorkloads({
    openStore: (name) => stores.store(name),
    removeStore: (name) => stores.remove(name),
    clock,
    random,
    log,
  })
  const kinds: DeclaredKind[] = []
  const controllers: Controller[] = []
  const hooks = createHooks(options)
  if (names.includes('core')) {
    appendAll(kinds, providerKinds.core)
    const connect = connectWorkload(workloads, { clock, random, endpoint, ...(ownPod ? { ownPod } : {}) })
    appendAll(controllers, coreControllers({ clock, random, log, connect, hooks, gates }))
  } else if (hooks.extensions) {
    // Core runs in another process and discovers handlers; this process registers them from the status of ExtensionConfigs.
    controllers.push(createReadOnlyExtensionConfigController({ extensions: hooks.extensions }))
  }
  if (names.includes('local')) {
    appendAll(kinds, providerKinds.local)
    appendAll(controllers, localControllers({ workloads, endpoint, ...(hooks.runtime && { updates: hooks.runtime }) }))
  }
  return { kinds, controllers, workloads, close: () => workloads.close() }
}
