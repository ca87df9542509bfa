/**
 * An environment with core and a provider in separate managers, on one embedded API server and a virtual clock. The provider can
 * be restarted, and its transport can be wrapped.
 */
import { coreKinds } from '@capstan/api'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { type Controller, createManager, installKinds, type Manager } from '@capstan/controller'
import {
  admissionOf,
  type Client,
  type Clock,
  createClient,
  type DeclaredKind,
  type Kind,
  type Logger,
  type Random,
  seededRandom,
  silent,
  StatusError,
  type Transport,
  VirtualClock,
} from '@capstan/kube'
import {
  connectWorkload,
  coreControllers,
  createHooks,
  createProviders,
  memoryStores,
  ownConversion,
  ownWebhooks,
  providerAdmission,
} from '@capstan/lab'
import { localKinds, type Workloads } from '@capstan/local'
import type { ContractVersion } from '@capstan/api/contract'
import { oldTwins, translateRequests } from './contract-twin.ts'
import { advance, type PendingWork, createTraffic, settle } from './settle.ts'

/** A running provider. */
export interface RunningProvider {
  readonly controllers: readonly Controller[]
  /** Workload clusters that the provider simulates in this process. */
  readonly workloads?: Pick<Workloads, 'whenStarted'>
  close(): Promise<void>
}

export interface ProviderContext {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface ProviderEnvOptions {
  readonly kinds: readonly DeclaredKind[]
  /** Called at the start and at each restart. */
  start(context: ProviderContext): RunningProvider
  /** Wraps the transport between the provider and the API server. */
  readonly between?: (transport: Transport) => Transport
  /**
   * Contract version that the provider's kinds are installed with; default: v1beta2. With v1beta1, the provider still uses the fields of
   * v1beta2: its requests and their responses are converted.
   */
  readonly contract?: ContractVersion
}

export interface ProviderEnv {
  readonly client: Client
  /** Client whose objects have the fields of contract v1beta2. With option `contract: 'v1beta1'`, its requests and responses are converted. */
  readonly v1beta2Client: Client
  readonly clock: VirtualClock
  /** Stops the provider and starts it again. Core continues to run. */
  restart(): Promise<void>
  /** Advances the clock until the promise settles. @throws if it does not settle within `limit` milliseconds of virtual time */
  during<T>(work: Promise<T>, limit: number): Promise<T>
  /** Advances the clock by `ms`, and settles after each timer. */
  advance(ms: number): Promise<void>
  /** Runs all work that is due now, without advancing the clock. */
  settle(): Promise<void>
  /** Connects to a simulated workload cluster, as core does. */
  connect(kubeconfig: string): Promise<Client>
  close(): Promise<void>
}

const isLocal = (kind: Kind): boolean => (localKinds as readonly Kind[]).includes(kind)

const endpoint = { host: '127.0.0.1', port: 6443 }

/** Returns the local provider, with simulated workload clusters whose state is kept during restarts. */
export function localProvider(): Pick<ProviderEnvOptions, 'kinds' | 'start'> {
  const stores = memoryStores()
  return {
    kinds: localKinds,
    start: (context) => createProviders({ ...context, names: ['local'], stores, endpoint }),
  }
}

export async function providerEnv({
  kinds: declared,
  start,
  between = (same) => same,
  contract,
}: ProviderEnvOptions): Promise<ProviderEnv> {
  const isOld = contract === 'v1beta1'
  const kinds = isOld ? oldTwins(declared) : declared
  const withV1beta2Fields = (transport: Transport) => (isOld ? translateRequests(transport, declared) : transport)
  const clock = new VirtualClock()
  const random = seededRandom(1)
  const log = silent
  const store = await memoryStores().store('management')
  const allKinds = [...coreKinds, ...kinds]
  const server = createApiServer({
    store,
    clock,
    random,
    log,
    admission: [
      // With contract v1beta1, copies with that contract's label and fields replace the local kinds. Their admission is added below.
      ...providerAdmission().filter(({ kind }) => !isOld || !isLocal(kind)),
      ...admissionOf(kinds.filter((kind) => !isLocal(kind))),
    ],
    webhooks: ownWebhooks(allKinds, () => client),
  })
  await server.ready
  const testTransport = server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' })
  const client = createClient(testTransport)
  await installKinds(client, allKinds, { clock, random, conversion: ownConversion })

  const traffic = createTraffic()
  let provider: { running: RunningProvider; manager: Manager } | undefined
  const coreClient = createClient(traffic.count(server.transport({ agent: 'core' })))
  const connect = async (kubeconfig: string): Promise<Client> => {
    const workloads = provider?.running.workloads
    // Tests have no network: workload clusters that are not simulated are unreachable.
    if (!workloads) throw new StatusError('ServiceUnavailable', 'no workload cluster is simulated')
    return connectWorkload(workloads, { clock, random, endpoint })(kubeconfig)
  }
  const hooks = createHooks({ client: coreClient, clock, log })
  const core = createManager({
    client: coreClient,
    clock,
    random,
    log,
    controllers: coreControllers({ clock, random, log, connect, hooks }),
  })
  const pendingWork: PendingWork = {
    managers: () => [core, ...(provider ? [provider.manager] : [])],
    stores: () => [store],
    traffic,
  }
  const startProvider = async () => {
    const context = {
      client: createClient(withV1beta2Fields(traffic.count(between(server.transport({ agent: 'provider' }))))),
      clock,
      random,
      log,
    }
    const running = start(context)
    const manager = createManager({ ...context, controllers: running.controllers })
    provider = { running, manager }
    await manager.start()
  }
  const stopProvider = async () => {
    const stopping = provider!
    await stopping.manager.stop()
    await stopping.running.close()
  }
  await startProvider()
  await core.start()
  await settle(pendingWork)

  return {
    client,
    v1beta2Client: createClient(withV1beta2Fields(testTransport)),
    clock,
    async restart() {
      await stopProvider()
      await startProvider()
    },
    async during(work, limit) {
      let isSettled = false
      const result = work.finally(() => {
        isSettled = true
      })
      // Prevents an unhandled rejection while the clock advances; `return result` passes it to the caller.
      result.catch(() => {})
      const end = clock.now() + limit
      while (!isSettled && clock.now() < end) await advance(clock, 1000, pendingWork)
      if (!isSettled) throw new Error(`not settled after ${limit / 1000} s of virtual time`)
      return result
    },
    advance: (ms) => advance(clock, ms, pendingWork),
    settle: () => settle(pendingWork),
    connect,
    async close() {
      await core.stop()
      await stopProvider()
      hooks.extensions?.close?.()
      await server.close()
    },
  }
}
