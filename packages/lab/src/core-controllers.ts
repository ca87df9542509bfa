/** Creates all controllers of the core provider with a shared cluster cache and runtime client. */
import { createCatalog, type Hook, hookCatalog } from '@capstan/api'
import type { Controller } from '@capstan/controller'
import { controller } from '@capstan/controller'
import {
  createClusterCache,
  createClusterClassController,
  createClusterController,
  createClusterResourceSetBindingController,
  createClusterResourceSetController,
  createExtensionConfigController,
  createMachineController,
  createMachineDeploymentController,
  createMachineHealthCheckController,
  createMachinePoolController,
  createMachineSetController,
  createTopologyController,
  createTopologyMachineDeploymentController,
  createTopologyMachineSetController,
} from '@capstan/core'
import type { CallObserver, ExtensionClient, HookTransport, RuntimeClient } from '@capstan/extension'
import { createExtensionClient, httpsHookTransport } from '@capstan/extension'
import type { Client, Clock, Logger, ObjectKey, Random } from '@capstan/kube'
import { Namespace } from '@capstan/kube'
import type { HookCall } from './hook-calls.ts'
import { observeHooks } from './hook-calls.ts'

export interface CoreControllersOptions {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Creates a client of a workload cluster from its kubeconfig. */
  readonly connect: (kubeconfig: string, cluster: ObjectKey) => Promise<Client>
  readonly hooks: Hooks
}

/** Handlers of runtime hooks for all controllers of a process, with a shared registry and shared circuit breakers. */
export interface Hooks {
  readonly runtime: RuntimeClient
  /** Discovers handlers from ExtensionConfigs. Absent if the caller provides the handlers. */
  readonly extensions: ExtensionClient | undefined
}

export interface HooksOptions {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  /** Handlers of runtime hooks. Default: the handlers that ExtensionConfigs register. */
  readonly runtime?: RuntimeClient
  /** Hooks that other providers declare, in all versions. ExtensionConfigs may register handlers for them. */
  readonly providerHooks?: readonly Hook[]
  /** Transport for calls of extensions. Default: HTTPS. */
  readonly hookTransport?: HookTransport
  /** Called after each call of an extension, including discovery; not for calls of `runtime`. */
  readonly onCall?: CallObserver
  /** Called with each result of a hook call, including failures; not called for a hook without handlers. */
  onHookCall?(call: HookCall): void
}

export function createHooks(options: HooksOptions): Hooks {
  const { onHookCall } = options
  const extensions = options.runtime ? undefined : extensionClient(options)
  const handlers = options.runtime ?? extensions!
  return { extensions, runtime: onHookCall ? observeHooks(handlers, (call) => onHookCall(call)) : handlers }
}

export function coreControllers({ clock, random, log, connect, hooks }: CoreControllersOptions): readonly Controller[] {
  const { runtime, extensions } = hooks
  const clusters = createClusterCache({ connect, clock, random, log })
  return [
    controller(clusters.controller),
    ...(extensions ? [createExtensionConfigController({ extensions })] : []),
    createClusterClassController({ runtime }),
    createTopologyController({ runtime, clock }),
    createTopologyMachineDeploymentController(),
    createTopologyMachineSetController(),
    controller(createClusterController({ clusters })),
    controller(createMachineController({ clusters, runtime })),
    controller(createMachineSetController()),
    createClusterResourceSetController({ clusters }),
    createClusterResourceSetBindingController(),
    controller(createMachineDeploymentController({ runtime })),
    controller(createMachineHealthCheckController({ clusters })),
    controller(createMachinePoolController({ clusters })),
  ]
}

function extensionClient({ client, clock, log, providerHooks = [], hookTransport, onCall }: HooksOptions): ExtensionClient {
  const extensions = createExtensionClient({
    transport: hookTransport ?? httpsHookTransport(),
    catalog: createCatalog([...hookCatalog, ...providerHooks]),
    namespaceLabels: async (name) => (await client.get(Namespace, { name })).metadata.labels ?? {},
    clock,
    log,
  })
  if (onCall) extensions.observe(onCall)
  return extensions
}
