/**
 * Simulates several manager processes with one API server and the virtual clock. Each process has its own informers, connections and
 * memory, and can be killed at any time. All processes share the stores of simulated workload clusters.
 */
import { coreKinds } from '@capstan/api'
import type { Store } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { createManager, installKinds, type Manager } from '@capstan/controller'
import { type FetchHandler, inProcess } from '@capstan/extension'
import { type Client, createClient, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { createProviders, memoryStores, providerAdmission, ProviderNames } from '@capstan/lab'
import { localKinds } from '@capstan/local'
import { mortalConnections } from './mortal-process.ts'
import { type PendingWork, createTraffic, settle } from './settle.ts'

export interface FleetEnvOptions {
  /** HTTP handler for the requests to all extension servers. It runs in no manager process: killing a manager does not stop it. */
  readonly extensions: FetchHandler
  /** Whether managers use leader election. Without it, all started managers reconcile. */
  readonly leaderElection?: boolean
}

export interface ManagerProcess {
  readonly name: string
  readonly manager: Manager
  readonly isDead: boolean
  /** Kills the process now or, with `writes`, immediately after that number of additional writes. */
  kill(writes?: number): void
}

export interface FleetEnv {
  /** A client for the test. */
  readonly client: Client
  readonly clock: VirtualClock
  /** The store of the API server. */
  readonly store: Store
  /** Running managers. */
  readonly managers: readonly ManagerProcess[]
  /** Starts a further manager process. */
  start(): Promise<ManagerProcess>
  /** Runs all work that is due now, without advancing the clock. */
  settle(): Promise<void>
  /** Advances the clock by `ms`, and settles after each timer. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

/** Header that names the calling process, so that a handler can kill it during the call. */
export const CallerHeader = 'x-calling-process'

export async function fleetEnv({ extensions, leaderElection = false }: FleetEnvOptions): Promise<FleetEnv> {
  const clock = new VirtualClock()
  const random = seededRandom(1)
  const stores = memoryStores()
  const store = await stores.store('management')
  const server = createApiServer({ store, clock, random, log: silent, admission: providerAdmission() })
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  await installKinds(client, [...coreKinds, ...localKinds], { clock, random })

  const traffic = createTraffic()
  const started: { readonly process: ManagerProcess; end(): Promise<void> }[] = []
  const running = () => started.map(({ process }) => process).filter(({ isDead }) => !isDead)
  const pendingWork: PendingWork = { managers: () => running().map(({ manager }) => manager), stores: () => [store], traffic }

  async function start(): Promise<ManagerProcess> {
    const name = `manager-${started.length + 1}`
    const connections = mortalConnections({
      clock,
      stores,
      transport: traffic.count(server.transport({ agent: 'capstan' })),
      hooks: inProcess((request) => {
        const headers = new Headers(request.headers)
        headers.set(CallerHeader, name)
        return extensions(new Request(request, { headers }))
      }),
    })
    const options = {
      client: createClient(connections.transport),
      clock: connections.clock,
      random: seededRandom(started.length + 2),
      log: silent,
    }
    const { controllers, close } = createProviders({
      ...options,
      names: ProviderNames,
      stores: connections.stores,
      hookTransport: connections.hooks,
      endpoint: { host: '127.0.0.1', port: 6443 },
    })
    const manager = createManager({
      ...options,
      controllers,
      ...(leaderElection ? { leaderElection: { namespace: 'default', name: 'leader', identity: name } } : {}),
    })
    const process: ManagerProcess = {
      name,
      manager,
      get isDead() {
        return connections.isDead
      },
      kill: (writes) => connections.kill(writes),
    }
    let hasEnded = false
    started.push({
      process,
      async end() {
        if (hasEnded) return
        hasEnded = true
        connections.kill()
        connections.rejectPending()
        await manager.stop()
        await close()
      },
    })
    await manager.start()
    await settle(pendingWork)
    return process
  }
  const endDead = async () => {
    for (const { process, end } of started) if (process.isDead) await end()
  }

  return {
    client,
    clock,
    store,
    get managers() {
      return running()
    },
    async start() {
      await endDead()
      return start()
    },
    settle: () => settle(pendingWork),
    async advance(ms) {
      const end = clock.now() + ms
      await settle(pendingWork)
      while (clock.step(end)) await settle(pendingWork)
    },
    async close() {
      for (const { end } of started) await end()
      await server.close()
    },
  }
}
