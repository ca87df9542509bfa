/**
 * The test environment: controllers on the embedded API server, on a clock that moves when the test says so. One process, no port
 * (unless asked for), no sleep: an hour of waiting is a millisecond, and the same seed gives the same names.
 */
import type { Store } from '@capstan/apiserver'
import type { ApiServer, ApiServerOptions } from '@capstan/kubernetes-kinds'
import { memoryStore } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import type { Controller, Manager } from '@capstan/controller'
import { createManager, installKinds } from '@capstan/controller'
import type { Admission, Client, DeclaredKind, Logger, Random, Transport, WebhookClientConfig } from '@capstan/kube'
import { admissionOf, createClient, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { ownConversion, ownWebhooks } from '@capstan/lab'
import { realHost } from './real-host.ts'
import { advance, type Busy, createTraffic, settle } from './settle.ts'

export interface TestEnvOptions {
  /** Kinds to install as CustomResourceDefinitions. */
  readonly kinds: readonly DeclaredKind[]
  readonly controllers?:
    | readonly Controller[]
    | ((env: { client: Client; clock: VirtualClock; random: Random }) => readonly Controller[])
  /** Beside what the kinds declare themselves. */
  readonly admission?: readonly Admission[]
  /** To go on where another environment stopped. */
  readonly store?: Store
  readonly clock?: VirtualClock
  readonly seed?: number
  /** How long `settle` waits for what makes no progress, in turns of the event loop. Few for a test that makes something deaf. */
  readonly patience?: number
  readonly log?: Logger
  /** Puts something between the controllers and the server, such as faults. */
  readonly between?: (transport: Transport) => Transport
}

export interface TestEnv {
  /** A client of the test's own, beside the controllers. */
  readonly client: Client
  readonly clock: VirtualClock
  readonly server: ApiServer
  readonly store: Store
  readonly manager: Manager
  /** Lets everything happen that can happen now. */
  settle(): Promise<void>
  /** Moves the clock by `ms`, from one thing that is due to the next, and lets each one settle. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

/** Where an environment's API server is. */
export interface Host {
  /** The test's own client. */
  readonly client: Client
  /** The webhook that converts between versions of a kind. */
  readonly conversion: WebhookClientConfig
  /** For the controllers. */
  transport(): Transport
  readonly server: ApiServer
  readonly store: Store
  /** Called once the kinds are served. */
  installed?(): Promise<void>
  /** Whether informers are up to date, where the store does not show it. */
  isCaughtUp?(manager: Manager): Promise<boolean>
  close(): Promise<void>
}

export async function testEnv(options: TestEnvOptions): Promise<TestEnv> {
  const clock = options.clock ?? new VirtualClock()
  const random = seededRandom(options.seed ?? 1)
  const log = options.log ?? silent
  const admission = [...admissionOf(options.kinds), ...(options.admission ?? [])]
  // `npm run interop -- controllers` runs tests that are written for the embedded server on a real one.
  const kubeconfig = process.env.CAPSTAN_TEST_KUBECONFIG
  const host: Host =
    kubeconfig === undefined
      ? await embeddedHost({
          store: options.store ?? memoryStore(),
          clock,
          random,
          log,
          admission,
          webhooks: ownWebhooks(options.kinds, () => host.client),
        })
      : await realHost({ kubeconfig, clock, kinds: options.kinds, admission })
  const { client, store } = host

  const traffic = createTraffic()
  await installKinds(client, options.kinds, { clock, random, conversion: host.conversion })
  await host.installed?.()

  const between = options.between ?? ((transport: Transport) => transport)
  const controllersClient = createClient(between(traffic.count(host.transport())))
  const { controllers = [] } = options
  const manager = createManager({
    client: controllersClient,
    clock,
    random,
    log,
    controllers: typeof controllers === 'function' ? controllers({ client: controllersClient, clock, random }) : controllers,
  })
  const closing = new AbortController()
  const busy: Busy = {
    closed: closing.signal,
    managers: () => [manager],
    stores: () => (host.isCaughtUp ? [] : [store]),
    traffic,
    ...(host.isCaughtUp ? { isCaughtUp: () => host.isCaughtUp!(manager) } : {}),
    ...(options.patience === undefined ? {} : { patience: options.patience }),
  }
  await manager.start()
  await settle(busy)

  return {
    client,
    clock,
    server: host.server,
    store,
    manager,
    settle: () => settle(busy),
    advance: (ms) => advance(clock, ms, busy),
    async close() {
      closing.abort()
      await manager.stop()
      await host.close()
    },
  }
}

async function embeddedHost(options: ApiServerOptions & { store: Store }): Promise<Host> {
  const server = createApiServer(options)
  await server.ready
  return {
    client: createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' })),
    conversion: ownConversion,
    transport: () => server.transport(),
    server,
    store: options.store,
    close: () => server.close(),
  }
}
