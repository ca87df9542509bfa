/**
 * The test environment: controllers on the embedded API server and a virtual clock that the test advances. It needs one process and
 * no port, and does not wait: an hour of virtual time takes milliseconds, and the same seed results in the same names. If the environment
 * variable CAPSTAN_TEST_KUBECONFIG is set, the controllers use the real API server of that kubeconfig instead of the embedded one.
 */
import type { Store } from '@capstan/apiserver'
import type { ApiServer, ApiServerOptions } from '@capstan/kubernetes-kinds'
import { memoryStore } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import type { Controller, Manager, ManagerOptions } from '@capstan/controller'
import { createManager, installKinds } from '@capstan/controller'
import type { Admission, Client, DeclaredKind, Logger, Random, Transport, WebhookClientConfig } from '@capstan/kube'
import { admissionOf, createClient, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { ownConversion, ownWebhooks } from '@capstan/lab'
import type { ContractVersion } from '@capstan/api/contract'
import { oldTwins, translateRequests, testContract } from './contract-twin.ts'
import { realHost } from './real-host.ts'
import { advance, type PendingWork, createTraffic, settle } from './settle.ts'

type Controllers =
  | readonly Controller[]
  | ((env: { client: Client; clock: VirtualClock; random: Random }) => readonly Controller[])

export interface TestEnvOptions {
  /** Kinds to install as CustomResourceDefinitions. */
  readonly kinds: readonly DeclaredKind[]
  readonly controllers?: Controllers
  /**
   * Controllers of providers, in a separate manager. They use the fields of contract v1beta2; with contract v1beta1, their requests are
   * converted. Created after the manager of `controllers`.
   */
  readonly providers?: Controllers
  /** Admission in addition to the admission of the kinds. */
  readonly admission?: readonly Admission[]
  /**
   * Store of an earlier environment, to continue with its objects. Default: a new store in memory. Not used on a real server.
   */
  readonly store?: Store
  /** Whether the store already contains the CustomResourceDefinitions of `kinds`. Default: false. */
  readonly isInstalled?: boolean
  /** Default: a new clock. */
  readonly clock?: VirtualClock
  /** Seed of the random values, such as generated names. Default: 1. */
  readonly seed?: number
  /**
   * Number of turns of the event loop for which `settle` waits without progress; on a real server, milliseconds, at least
   * 2,000. Default: 1,000; on a real server 60,000. Small numbers are for tests with blocked requests or watches.
   */
  readonly patience?: number
  /** Log of the server and the controllers. Default: none. */
  readonly log?: Logger
  /** The objects that the controllers reconcile. Default: all objects. */
  readonly limits?: Pick<ManagerOptions, 'namespace' | 'eventFilter'>
  /** Wraps the transport between the controllers and the server, for example with faults. */
  readonly between?: (transport: Transport) => Transport
  /**
   * The contract version of the providers' kinds; see `contract-twin.ts`. Default: the value of the environment variable
   * CAPSTAN_TEST_CONTRACT, otherwise v1beta2.
   */
  readonly contract?: ContractVersion
}

export interface TestEnv {
  /** A client for the test, separate from the controllers. */
  readonly client: Client
  readonly clock: VirtualClock
  readonly server: ApiServer
  readonly store: Store
  /** The manager of `controllers`. */
  readonly manager: Manager
  /** Returns a client as the controllers use it: its objects have the fields of the contract version that the provider kinds declare. */
  controllerClient(): Client
  /** Runs all work that is due now. */
  settle(): Promise<void>
  /** Advances the clock by `ms`, from timer to timer, and settles after each timer. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

/** The API server of an environment. */
export interface Host {
  /** A client for the test. */
  readonly client: Client
  /** The conversion webhook of the kinds. */
  readonly conversion: WebhookClientConfig
  /** Returns a transport for the controllers. */
  transport(): Transport
  readonly server: ApiServer
  readonly store: Store
  /** Called after the kinds are installed. Resolves when the server serves them and calls the webhooks. */
  installed?(): Promise<void>
  /** Returns whether informers are up to date, for servers whose store is not accessible. */
  isCaughtUp?(managers: readonly Manager[]): Promise<boolean>
  close(): Promise<void>
}

/** Starts an API server, installs the kinds and starts the managers. Returns when no work is due. */
export async function testEnv(options: TestEnvOptions): Promise<TestEnv> {
  const clock = options.clock ?? new VirtualClock()
  const random = seededRandom(options.seed ?? 1)
  const log = options.log ?? silent
  const isOld = (options.contract ?? testContract()) === 'v1beta1'
  const kinds = isOld ? oldTwins(options.kinds) : options.kinds
  const admission = [...admissionOf(kinds), ...(options.admission ?? [])]
  /** Lets the test and the providers use the fields of contract v1beta2. */
  const withV1beta2Fields = (transport: Transport) => (isOld ? translateRequests(transport, options.kinds) : transport)
  // `npm run interop -- controllers` sets the variable, to run the same tests on a real server.
  const kubeconfig = process.env.CAPSTAN_TEST_KUBECONFIG
  const host: Host =
    kubeconfig === undefined
      ? await embeddedHost({
          store: options.store ?? memoryStore(),
          clock,
          random,
          log,
          admission,
          webhooks: ownWebhooks(kinds, () => host.client),
          wrapForTest: withV1beta2Fields,
        })
      : await realHost({ kubeconfig, clock, kinds, admission, wrapForTest: withV1beta2Fields })
  const { client, store } = host

  const traffic = createTraffic()
  if (!options.isInstalled) await installKinds(client, kinds, { clock, random, conversion: host.conversion })
  await host.installed?.()

  const between = options.between ?? ((transport: Transport) => transport)
  const connect = () => between(traffic.count(host.transport()))
  const managerOf = (controllers: Controllers, transport: Transport): Manager => {
    const client = createClient(transport)
    return createManager({
      client,
      clock,
      random,
      log,
      ...options.limits,
      controllers: typeof controllers === 'function' ? controllers({ client, clock, random }) : controllers,
    })
  }
  const manager = managerOf(options.controllers ?? [], connect())
  const managers = [manager, ...(options.providers ? [managerOf(options.providers, withV1beta2Fields(connect()))] : [])]
  const closing = new AbortController()
  const pendingWork: PendingWork = {
    closed: closing.signal,
    managers: () => managers,
    stores: () => (host.isCaughtUp ? [] : [store]),
    traffic,
    ...(host.isCaughtUp ? { isCaughtUp: () => host.isCaughtUp!(managers) } : {}),
    ...(options.patience === undefined ? {} : { patience: options.patience }),
  }
  await Promise.all(managers.map((manager) => manager.start()))
  await settle(pendingWork)

  return {
    client,
    clock,
    server: host.server,
    store,
    manager,
    controllerClient: () => createClient(connect()),
    settle: () => settle(pendingWork),
    advance: (ms) => advance(clock, ms, pendingWork),
    async close() {
      closing.abort()
      await Promise.all(managers.map((manager) => manager.stop()))
      await host.close()
    },
  }
}

interface EmbeddedHostOptions extends ApiServerOptions {
  readonly store: Store
  /** Wraps the transport of the test's own client. */
  readonly wrapForTest: (transport: Transport) => Transport
}

async function embeddedHost({ wrapForTest, ...options }: EmbeddedHostOptions): Promise<Host> {
  const server = createApiServer(options)
  await server.ready
  return {
    client: createClient(wrapForTest(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))),
    conversion: ownConversion,
    transport: () => server.transport(),
    server,
    store: options.store,
    close: () => server.close(),
  }
}
