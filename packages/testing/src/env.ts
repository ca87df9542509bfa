/**
 * The test environment: controllers on the embedded API server, on a clock that moves when the test says so. One process, no port
 * (unless asked for), no sleep: an hour of waiting is a millisecond, and the same seed gives the same names.
 */
import type { ApiServer, Store } from '@capstan/apiserver'
import { createApiServer, memoryStore } from '@capstan/apiserver'
import type { Controller, Manager } from '@capstan/controller'
import { createManager, installKinds } from '@capstan/controller'
import type { Admission, Client, DeclaredKind, Logger, Random, Transport } from '@capstan/kube'
import { admissionOf, createClient, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { advance, createTraffic, settle } from './settle.ts'

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

export async function testEnv(options: TestEnvOptions): Promise<TestEnv> {
  const clock = options.clock ?? new VirtualClock()
  const random = seededRandom(options.seed ?? 1)
  const log = options.log ?? silent
  const store = options.store ?? memoryStore()
  const server = createApiServer({
    store,
    clock,
    random,
    log,
    admission: [...admissionOf(options.kinds), ...(options.admission ?? [])],
  })
  await server.ready

  const traffic = createTraffic()
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  await installKinds(client, options.kinds, { clock, random })

  const between = options.between ?? ((transport: Transport) => transport)
  const controllersClient = createClient(between(traffic.count(server.transport())))
  const { controllers = [] } = options
  const manager = createManager({
    client: controllersClient,
    clock,
    random,
    log,
    controllers: typeof controllers === 'function' ? controllers({ client: controllersClient, clock, random }) : controllers,
  })
  const busy = {
    managers: () => [manager],
    stores: () => [store],
    traffic,
    ...(options.patience === undefined ? {} : { patience: options.patience }),
  }
  await manager.start()
  await settle(busy)

  return {
    client,
    clock,
    server,
    store,
    manager,
    settle: () => settle(busy),
    advance: (ms) => advance(clock, ms, busy),
    async close() {
      await manager.stop()
      await server.close()
    },
  }
}
