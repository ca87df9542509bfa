/**
 * Runs the whole lifecycle of a managed Cluster with an extension, in memory and on a virtual clock, and traces the calls of the
 * extension and their effects.
 */
import { Cluster, ExtensionConfig, type LabelSelector } from '@capstan/api'
import {
  type CallObserver,
  type Extension,
  extensionServer,
  type HookTransport,
  inProcess,
  type ObservedCall,
} from '@capstan/extension'
import type { Client, Json, Logger } from '@capstan/kube'
import { durationText, getCondition, minutes, orAbsent, seconds, silent, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { callText } from './call-text.ts'
import { createManagedClass } from './managed-class.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'

export type LifecycleStep = 'create' | 'scale' | 'upgrade' | 'delete'

export interface LifecycleOptions {
  /** Steps to run, in this order. Default: all. */
  readonly steps?: readonly LifecycleStep[]
  /** The initial version. Default: v1.34.0. */
  readonly from?: string
  /**
   * The version after the step `upgrade`. Default: v1.36.0. The control plane is also upgraded to each minor version in between, unless the
   * extension plans upgrades.
   */
  readonly to?: string
  /**
   * Number of control plane Machines. Default: 1. With several Machines, the local provider updates some of them in place if the extension
   * has handlers for in-place updates.
   */
  readonly controlPlane?: number
  /** Number of worker Machines before the step `scale`, which adds one Machine. Default: 1. */
  readonly workers?: number
  /** Settings of the ExtensionConfig, which has the name of the extension. */
  readonly settings?: { readonly [name: string]: string }
  /** Selects the namespaces for which the ExtensionConfig is used. Default: all. */
  readonly namespaceSelector?: LabelSelector
  /** Annotations of the ExtensionConfig, such as an object selector or overrides. */
  readonly annotations?: { readonly [name: string]: string }
  /** Labels of the Cluster. */
  readonly labels?: { readonly [name: string]: string }
  /** Variables of the Cluster's topology. */
  readonly variables?: { readonly [name: string]: Json }
  /** Time limit of a step in milliseconds of virtual time, checked every five seconds. Default: ten minutes. */
  readonly patience?: number
  /** Whether the trace also contains changes of Machines and of all other objects, such as the ClusterClass. Default: false. */
  readonly machines?: boolean
  /** Wraps the transport between core and the extension, for example with faults. */
  readonly between?: (transport: HookTransport) => HookTransport
  /** Receives the log of the extension server. Default: no log. */
  readonly log?: Logger
}

export interface Lifecycle {
  /**
   * Lines with seconds since the start, for a snapshot in the test. A failure, or a call of a hook that is not a lifecycle hook, appears only
   * if it differs from the last call of the same handler in the trace.
   */
  readonly trace: string
  /** All calls except aborted ones, in the order in which they ended. Includes discovery. */
  readonly calls: readonly ObservedCall[]
  /** The step that did not complete in time, with the reason. Absent if all steps completed. */
  readonly stuck?: { readonly step: LifecycleStep; readonly why: string }
}

const key = { namespace: 'default', name: 'demo' } as const
const subject = 'Cluster default/demo'

/**
 * Creates a managed Cluster, scales, upgrades and deletes it. Core discovers and calls the extension as in production, with selectors,
 * settings, timeouts, circuit breaker, encoding and decoding. There are no sockets, and waiting takes only virtual time.
 *
 * @example
 * const { trace, stuck } = await lifecycleOf(extension, { settings: { region: 'eu1' } })
 * expect(stuck).toBeUndefined()
 * expect(trace).toMatchInlineSnapshot()
 */
export async function lifecycleOf(
  extension: Extension | ((clock: VirtualClock) => Extension),
  options: LifecycleOptions = {},
): Promise<Lifecycle> {
  const clock = new VirtualClock()
  const loadedExtension = typeof extension === 'function' ? extension(clock) : extension
  const { from = 'v1.34.0', to = 'v1.36.0', steps = ['create', 'scale', 'upgrade', 'delete'] } = options
  const log = reportErrors((text) => env.report(text, subject), options.log ?? silent)
  const transport = inProcess(extensionServer(loadedExtension, { clock, log }))
  const calls: ObservedCall[] = []
  const report = callReporter((text) => env.report(text, subject))
  const env = await managementEnv({
    clock,
    // With its own stores, the environment never uses a real server.
    stores: memoryStores(),
    hookTransport: options.between?.(transport) ?? transport,
    onCall(call) {
      calls.push(call)
      report(call)
    },
    shows: ({ subject, event }) =>
      !event.startsWith('Hook') && (subject.startsWith('Cluster ') || event === 'Scaling' || (options.machines ?? false)),
  })
  try {
    await register(env, loadedExtension, options)
    const extensionConfig = loadedExtension.name
    const managed = {
      name: 'managed',
      namespace: key.namespace,
      versions: versionsBetween(from, to),
      extension: loadedExtension,
      extensionConfig,
    }
    await createManagedClass(env.client, managed)
    await env.settle()
    const trace = () => env.story().replaceAll(`${subject}: `, '')
    for (const step of steps) {
      env.report(`--- ${step}`, subject)
      const why = await runStep(env, step, { ...options, from, to })
      if (why !== undefined) return { trace: trace(), calls, stuck: { step, why } }
    }
    return { trace: trace(), calls }
  } finally {
    await env.close()
  }
}

async function register({ client, settle }: ManagementEnv, { name }: Extension, options: LifecycleOptions): Promise<void> {
  const { settings, namespaceSelector, annotations } = options
  await client.create(ExtensionConfig, {
    metadata: { name, ...(annotations ? { annotations } : {}) },
    spec: {
      clientConfig: { url: `https://${name}.test` },
      ...(settings ? { settings } : {}),
      ...(namespaceSelector ? { namespaceSelector } : {}),
    },
  })
  await settle()
}

/** Starts the step and waits for its end. Returns the reason if it does not complete in time. */
async function runStep(
  env: ManagementEnv,
  step: LifecycleStep,
  options: LifecycleOptions & { readonly from: string; readonly to: string },
): Promise<string | undefined> {
  const { client, clock } = env
  await startStep(client, step, options)
  const end = clock.now() + (options.patience ?? minutes(10))
  let why: string | undefined
  do {
    await env.advance(seconds(5))
    why = whyIncomplete(step, await orAbsent(client.get(Cluster, key)), options.to)
  } while (why !== undefined && clock.now() < end)
  if (why !== undefined) env.report(`${step} is not done after ${durationText(options.patience ?? minutes(10))}: ${why}`, subject)
  return why
}

async function startStep(client: Client, step: LifecycleStep, options: Parameters<typeof runStep>[2]): Promise<void> {
  const { from, to, labels, variables, controlPlane = 1, workers = 1 } = options
  const replicas = '/spec/topology/workers/machineDeployments/0/replicas'
  switch (step) {
    case 'create':
      await client.create(Cluster, {
        metadata: { ...key, ...(labels ? { labels } : {}) },
        spec: {
          topology: {
            classRef: { name: 'managed' },
            version: from,
            controlPlane: { replicas: controlPlane },
            // Without this deletion order, Machines would be deleted in random order.
            workers: {
              machineDeployments: [{ class: 'worker', name: 'workers', replicas: workers, deletion: { order: 'Oldest' } }],
            },
            ...(variables ? { variables: Object.entries(variables).map(([name, value]) => ({ name, value })) } : {}),
          },
        },
      })
      return
    case 'scale':
      await client.patch(Cluster, key, { type: 'json', operations: [{ op: 'replace', path: replicas, value: workers + 1 }] })
      return
    case 'upgrade':
      await client.patch(Cluster, key, { type: 'merge', body: { spec: { topology: { version: to } } } })
      return
    case 'delete':
      await client.delete(Cluster, key)
  }
}

/** Returns the reason why the step is not complete, from the status of the Cluster; `undefined` if it is complete. */
function whyIncomplete(step: LifecycleStep, cluster: Cluster | undefined, to: string): string | undefined {
  if (step === 'delete') {
    if (!cluster) return undefined
    const { reason = 'Unknown', message = '' } = getCondition(cluster, 'Deleting') ?? {}
    const hooks = getCondition(cluster, 'TopologyReconciled')?.message ?? ''
    return `Deleting: ${message || reason}${hooks === '' || hooks === 'Cluster is deleting' ? '' : `: ${hooks}`}`
  }
  if (!cluster) return 'the Cluster is gone'
  for (const type of ['TopologyReconciled', 'Available']) {
    const condition = getCondition(cluster, type)
    if (!condition) return `the Cluster does not have the condition ${type} yet`
    if (condition.status !== 'True') return `${type} is ${condition.status}: ${condition.message || condition.reason}`
  }
  const { controlPlane, workers } = cluster.status ?? {}
  const versions = new Set([...(controlPlane?.versions ?? []), ...(workers?.versions ?? [])].map(({ version }) => version))
  versions.delete(to)
  if (step === 'upgrade' && versions.size > 0) return `there are still Machines of ${[...versions].join(', ')}`
  const replicas = cluster.spec.topology?.workers?.machineDeployments?.[0]?.replicas
  if (workers?.availableReplicas !== replicas) return `${workers?.availableReplicas ?? 0} of ${replicas} workers are available`
  return undefined
}

/**
 * Reports each successful call of a lifecycle hook. Reports a failure, or a call of another hook, only if it differs from the last reported
 * call of the same handler.
 */
function callReporter(report: (text: string) => void): CallObserver {
  const reported = new Map<string, string>()
  return (call) => {
    const text = callText(call)
    const isFailure = call.outcome.kind === 'failed' || call.outcome.response.status !== 'Success'
    const handler = `${call.hook.name} ${call.handler}`
    if ((isFailure || call.hook.tag !== 'Lifecycle Hooks') && reported.get(handler) === text) return
    reported.set(handler, text)
    report(text)
  }
}

/** Wraps a log to also report each distinct error that a handler throws, because core receives only status 500. */
function reportErrors(report: (text: string) => void, log: Logger): Logger {
  const reported = new Set<string>()
  const wrapLogger = (bound: { readonly [field: string]: unknown }, to: Logger): Logger => ({
    debug: (message, fields) => to.debug(message, fields),
    info: (message, fields) => to.info(message, fields),
    warn: (message, fields) => to.warn(message, fields),
    error(message, fields) {
      to.error(message, fields)
      const text = `${String(bound.hook)} of ${String(bound.handler)} threw ${String(fields?.err)}`
      if (fields?.err !== undefined && !reported.has(text)) report(text)
      reported.add(text)
    },
    child: (fields) => wrapLogger({ ...bound, ...fields }, to.child(fields)),
  })
  return wrapLogger({}, log)
}

/** Returns both versions, and the first patch version of every minor between them. */
function versionsBetween(from: string, to: string): string[] {
  const minorOf = (version: string): number => Number(version.split('.')[1])
  const major = from.split('.')[0]
  const versions: string[] = []
  for (let minor = minorOf(from) + 1; minor < minorOf(to); minor++) versions.push(`${major}.${minor}.0`)
  return from === to ? [from] : [from, ...versions, to]
}
