/**
 * Creates the controllers of the core provider, except those of disabled feature gates, with a shared cluster cache and runtime
 * client.
 */
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
  type FeatureGates,
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
  /** Feature gates. Default: all are enabled. */
  readonly gates?: FeatureGates
}

/** Handlers of runtime hooks for all controllers of a process, with a shared registry and shared circuit breakers. */
export interface Hooks {
  /** Absent when the feature gate RuntimeSDK is disabled: no hook is called. */
  readonly runtime: RuntimeClient | undefined
  /** Discovers handlers from ExtensionConfigs. Absent if the caller provides the handlers, or if RuntimeSDK is disabled. */
  readonly extensions: ExtensionClient | undefined
}

export interface HooksOptions {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  /** Feature gates. Default: all are enabled. */
  readonly gates?: FeatureGates
  /** Handlers of runtime hooks. Default: the handlers that ExtensionConfigs register. */
  readonly runtime?: RuntimeClient
  /** Hooks that other providers declare, in all versions. ExtensionConfigs may register handlers for them. */
  readonly providerHooks?: readonly Hook[]
  /** Transport for calls of extensions. Default: HTTPS. */
  readonly hookTransport?: HookTransport
  /** Called after each call of an extension that was not aborted, including discovery; not called for calls of the handlers in `runtime`. */
  readonly onCall?: CallObserver
  /**
   * Called with each result of a hook call, including failures; not called if the hook has no handlers, or if its handlers cannot
   * be determined.
   */
  onHookCall?(call: HookCall): void
}

/** Creates the handlers of runtime hooks that the controllers of one process share. */
export function createHooks(options: HooksOptions): Hooks {
  const { onHookCall, gates } = options
  if (gates?.RuntimeSDK === false) return { runtime: undefined, extensions: undefined }
  const extensions = options.runtime ? undefined : extensionClient(options)
  const handlers = options.runtime ?? extensions!
  return { extensions, runtime: onHookCall ? observeHooks(handlers, (call) => onHookCall(call)) : handlers }
}

export function coreControllers({
  clock,
  random,
  log,
  connect,
  hooks,
  gates = {},
}: CoreControllersOptions): readonly Controller[] {
  const { runtime, extensions } = hooks
  const clusters = createClusterCache({ connect, clock, random, log })
  const topologyControllers = () => [
    createClusterClassController({ runtime }),
    createTopologyController({ runtime, clock }),
    createTopologyMachineDeploymentController(),
    createTopologyMachineSetController(),
  ]
  return [
    controller(clusters.controller),
    ...(extensions ? [createExtensionConfigController({ extensions })] : []),
    ...(gates.ClusterTopology === false ? [] : topologyControllers()),
    controller(createClusterController({ clusters, gates })),
    controller(createMachineController({ clusters, ...(runtime && { runtime }) })),
    controller(createMachineSetController({ gates })),
    createClusterResourceSetController({ clusters }),
    createClusterResourceSetBindingController({ gates }),
    controller(createMachineDeploymentController(runtime ? { runtime } : {})),
    controller(createMachineHealthCheckController({ clusters })),
    ...(gates.MachinePool === false ? [] : [controller(createMachinePoolController({ clusters }))]),
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
