/**
 * A complete management cluster on the virtual clock: API server, core and local provider. Its story is a list of readable lines about
 * changes of objects and calls of hooks.
 */
import type { CallObserver, HookTransport, RuntimeClient } from '@capstan/extension'
import type { Client, Logger, Transport } from '@capstan/kube'
import { admissionOf, createClient, seededRandom, silent, VirtualClock } from '@capstan/kube'
import type { HookCall, Line, ManagementCluster, ManagementClusterOptions, Stores } from '@capstan/lab'
import {
  connectWorkload,
  coreControllers,
  createHooks,
  createManagementCluster,
  createProviders,
  followChanges,
  lineOf,
  memoryStores,
  ownConversion,
  ownWebhooks,
  providerAdmission,
  ProviderNames,
} from '@capstan/lab'
import { coreKinds, type Hook } from '@capstan/api'
import type { Store, WebhookTransport } from '@capstan/apiserver'
import { createManager, installKinds, type Manager } from '@capstan/controller'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { createWorkloads, localControllers, localKinds } from '@capstan/local'
import { oldTwins, translateRequests, testContract } from './contract-twin.ts'
import { realHost } from './real-host.ts'
import { advance, type PendingWork, createTraffic, settle } from './settle.ts'

export interface ManagementEnvOptions {
  /** Handlers of runtime hooks. Default: the handlers that ExtensionConfigs register, called through `hookTransport`. */
  readonly runtime?: RuntimeClient
  /** Feature gates. Default: all are enabled. */
  readonly gates?: ManagementClusterOptions['gates']
  /** Hooks that a provider of the test declares. */
  readonly providerHooks?: readonly Hook[]
  /** Transport for calls of extensions, such as `inProcess(extensionServer(mine))` or `tapeTransport(tape)`. Default: HTTPS. */
  readonly hookTransport?: HookTransport
  /** Called after each call of an extension that was not aborted, including discovery; not for calls of `runtime`. */
  readonly onCall?: CallObserver
  /** Returns whether the story contains a line about a change or a hook call. Default: it contains all of them. */
  readonly shows?: (line: Line) => boolean
  readonly clock?: VirtualClock
  /** Stores of an earlier management cluster, to continue with its objects. */
  readonly stores?: Stores & { all(): readonly Store[] }
  /** Seed of random values, such as the suffixes of generated names. Default: 1. */
  readonly seed?: number
  readonly log?: Logger
  /** Returns the transport of the controllers to the API server. Default: the in-process transport. Not used on a real server. */
  readonly reach?: ManagementClusterOptions['reach']
  /** Wraps the transport between the controllers and the server, for example with faults. */
  readonly between?: (transport: Transport) => Transport
  /** Transport for calls of webhooks that the test registers. Default: HTTPS. Not used on a real server. */
  readonly webhooks?: WebhookTransport
  /**
   * Turns of the event loop without progress after which `settle` assumes that pending work waits for virtual time. Default: 1,000. On a real
   * server, milliseconds instead of turns: by default 60,000, at least 2,000.
   */
  readonly patience?: number
}

export interface ManagementEnv {
  readonly management: ManagementCluster
  readonly client: Client
  readonly clock: VirtualClock
  readonly stores: Stores & { all(): readonly Store[] }
  /** Hook calls so far, in order. */
  readonly hooks: readonly HookCall[]
  /** Runs all work that is due now, without advancing the clock. */
  settle(): Promise<void>
  /** Advances the clock by `ms`, and settles after each timer. */
  advance(ms: number): Promise<void>
  /** Returns new lines since the last call, with seconds since 2026-01-01, when a new virtual clock starts. */
  story(): string
  /** Adds a line of the test, optionally with a subject such as `Cluster default/demo`. */
  report(text: string, subject?: string): void
  close(): Promise<void>
}

export async function managementEnv(options: ManagementEnvOptions): Promise<ManagementEnv> {
  const clock = options.clock ?? new VirtualClock()
  const start = Date.UTC(2026, 0, 1)
  const stores = options.stores ?? memoryStores()
  const random = seededRandom(options.seed ?? 1)
  const traffic = createTraffic()
  const between = options.between ?? ((transport: Transport) => transport)
  const hooks: HookCall[] = []
  let lines: { at: string; subject: string; text: string }[] = []
  const reportLine = (line: Line) => {
    if (options.shows?.(line) ?? true) report(line.subject, line.text)
  }
  const report = (subject: string, text: string) =>
    void lines.push({ at: ((clock.now() - start) / 1000).toFixed(1).padStart(6), subject, text })

  const managementOptions: ManagementClusterOptions = {
    stores,
    clock,
    random,
    log: options.log ?? silent,
    endpoint: { host: '127.0.0.1', port: 6443 },
    ...(options.runtime ? { runtime: options.runtime } : {}),
    ...(options.gates ? { gates: options.gates } : {}),
    ...(options.providerHooks ? { providerHooks: options.providerHooks } : {}),
    ...(options.hookTransport ? { hookTransport: options.hookTransport } : {}),
    ...(options.onCall ? { onCall: options.onCall } : {}),
    ...(options.webhooks ? { webhooks: options.webhooks } : {}),
    onHookCall(call) {
      hooks.push(call)
      reportLine(lineOf(call))
    },
    reach: async (server, inProcess) =>
      between(traffic.count(options.reach ? await options.reach(server, inProcess) : inProcess)),
  }
  // CAPSTAN_TEST_KUBECONFIG selects a real server, but not for existing stores, whose objects a real server does not have.
  const kubeconfig = options.stores ? undefined : process.env.CAPSTAN_TEST_KUBECONFIG
  const { management, managers, isCaughtUp } = await (kubeconfig !== undefined
    ? onRealServer(kubeconfig, managementOptions, (transport) => between(traffic.count(transport)))
    : testContract() === 'v1beta1'
      ? managementWithOldContract(managementOptions)
      : managementWithNewContract(managementOptions))
  const storyAbort = new AbortController()
  const storyEnd = followChanges(management.client, {
    clock,
    random: seededRandom(2),
    signal: storyAbort.signal,
    report: reportLine,
  })
  const pendingWork: PendingWork = {
    managers: () => managers,
    stores: () => (isCaughtUp ? [] : stores.all()),
    traffic,
    closed: storyAbort.signal,
    ...(options.patience === undefined ? {} : { patience: options.patience }),
    ...(isCaughtUp ? { isCaughtUp } : {}),
  }
  await settle(pendingWork)

  return {
    management,
    client: management.client,
    clock,
    stores,
    hooks,
    settle: () => settle(pendingWork),
    advance: (ms) => advance(clock, ms, pendingWork),
    story() {
      const story = withStableNames(lines)
      lines = []
      return story
    },
    report: (text, subject = '') => report(subject, text),
    async close() {
      storyAbort.abort()
      await management.close()
      await storyEnd
    },
  }
}

interface RunningManagementCluster {
  readonly management: ManagementCluster
  readonly managers: readonly Manager[]
  isCaughtUp?(): Promise<boolean>
}

async function managementWithNewContract(options: ManagementClusterOptions): Promise<RunningManagementCluster> {
  const management = await createManagementCluster(options)
  return { management, managers: [management.manager] }
}

/**
 * Starts a management cluster with a local provider of contract v1beta1. The provider has a separate manager, because its
 * requests are converted, and core's are not.
 */
async function managementWithOldContract(options: ManagementClusterOptions): Promise<RunningManagementCluster> {
  const { stores, clock, random, log, endpoint, reach } = options
  const local = oldTwins(localKinds)
  const kinds = [...coreKinds, ...local]
  const server = createApiServer({
    store: await stores.store('management'),
    clock,
    random,
    log,
    admission: [
      ...providerAdmission(options.providerHooks, undefined, options.gates).filter(
        ({ kind }) => !localKinds.some((localKind) => localKind === kind),
      ),
      ...admissionOf(local),
    ],
    webhooks: ownWebhooks(kinds, () => coreClient, options.webhooks),
  })
  await server.ready
  const asProvider = (transport: Transport) => translateRequests(transport, localKinds)
  const connect = async () => {
    const inProcess = server.transport({ agent: 'capstan' })
    return reach ? await reach(server, inProcess) : inProcess
  }
  const coreClient = createClient(await connect())
  await installKinds(createClient(server.transport()), kinds, { clock, random, conversion: ownConversion })
  const workloads = createWorkloads({
    openStore: (name) => stores.store(name),
    removeStore: (name) => stores.remove(name),
    clock,
    random,
    log,
  })
  const hooks = createHooks({ ...options, client: coreClient })
  const common = { clock, random, log }
  const core = createManager({
    ...common,
    client: coreClient,
    controllers: coreControllers({
      ...common,
      connect: connectWorkload(workloads, { clock, random, endpoint }),
      hooks,
      ...(options.gates ? { gates: options.gates } : {}),
    }),
  })
  const provider = createManager({
    ...common,
    client: createClient(asProvider(await connect())),
    controllers: localControllers({ workloads, endpoint, ...(hooks.runtime && { updates: hooks.runtime }) }),
  })
  await Promise.all([core.start(), provider.start()])
  const management: ManagementCluster = {
    server,
    client: createClient(asProvider(server.transport({ agent: 'capstan' }))),
    manager: core,
    workloads,
    async close() {
      await Promise.all([core.stop(), provider.stop()])
      await workloads.close()
      await server.close()
    },
  }
  return { management, managers: [core, provider] }
}

/** Starts a management cluster on a real API server, with simulated workload clusters. `wrap` wraps the transport of the controllers. */
async function onRealServer(
  kubeconfig: string,
  options: ManagementClusterOptions,
  wrap: (transport: Transport) => Transport,
): Promise<RunningManagementCluster> {
  const { clock, random, log } = options
  const host = await realHost({
    kubeconfig,
    clock,
    kinds: [...coreKinds, ...localKinds],
    admission: providerAdmission(options.providerHooks, undefined, options.gates),
  })
  const client = createClient(wrap(host.transport()))
  const { kinds, controllers, workloads, close } = createProviders({ ...options, names: ProviderNames, client })
  await installKinds(host.client, kinds, { clock, random, conversion: host.conversion })
  await host.installed?.()
  const manager = createManager({ client, clock, random, log, controllers })
  await manager.start()
  const management: ManagementCluster = {
    server: host.server,
    client: host.client,
    manager,
    workloads,
    async close() {
      await manager.stop()
      await close()
      await host.close()
    },
  }
  return { management, managers: [manager], isCaughtUp: () => host.isCaughtUp!([manager]) }
}

/**
 * Formats lines so that they do not depend on random values: the random suffixes of names become numbers in order of
 * appearance, and simultaneous lines are sorted by kind and name of their object.
 */
function withStableNames(lines: readonly { readonly at: string; readonly subject: string; readonly text: string }[]): string {
  const stableNames = new Map<string, string>()
  const countByBase = new Map<string, number>()
  const stabilize = (text: string): string =>
    text.replace(/([a-z][a-z-]*?)((?:-[bcdfghjklmnpqrstvwxz2456789]{5})+)\b/g, (name, base: string) => {
      const stableName = stableNames.get(name)
      if (stableName) return stableName
      const number = (countByBase.get(base) ?? 0) + 1
      countByBase.set(base, number)
      stableNames.set(name, `${base}-${number}`)
      return `${base}-${number}`
    })
  return lines
    .map(({ at, subject, text }, order) => ({ at, order, subject: stabilize(subject), text: stabilize(text) }))
    .sort((a, b) => Number(a.at) - Number(b.at) || (a.subject < b.subject ? -1 : a.subject > b.subject ? 1 : a.order - b.order))
    .map(({ at, subject, text }) => (subject === '' ? `${at}  ${text}` : `${at}  ${subject}: ${text}`))
    .join('\n')
}
