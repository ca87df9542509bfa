/** The whole provider with core's Cluster and Machine controllers, on the virtual clock. */
import { Cluster, coreKinds, Machine } from '@capstan/api'
import { memoryStore, type Store } from '@capstan/apiserver'
import { createClusterCache, createClusterController, createMachineController } from '@capstan/core'
import { createClient, draft, isTrue, type Logger, Node, Secret, seconds, silent, systemClock, type UnknownObject } from '@capstan/kube'
import { parseKubeconfig, resolveKubeconfig } from '@capstan/kube/node'
import { type TestEnv, testEnv, type TestEnvOptions } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { localControllers } from './controllers.ts'
import { localKinds } from './kinds/all.ts'
import { LocalBootstrapConfig } from './kinds/local-bootstrap-config.ts'
import { LocalCluster } from './kinds/local-cluster.ts'
import { LocalControlPlane } from './kinds/local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from './kinds/local-machine.ts'
import { createWorkloads, type Workloads } from './workload/workloads.ts'

interface World extends TestEnv {
  readonly workloads: Workloads
}

const open: World[] = []
afterEach(async () => {
  for (const world of open.splice(0)) await end(world)
})

async function end(world: World): Promise<void> {
  await world.close()
  await world.workloads.close()
}

/** Stores that outlive a plane which closes them, as those of a data folder do. */
function keptStores() {
  const stores = new Map<string, Store>()
  return {
    names: () => [...stores.keys()],
    openStore: (name: string): Promise<Store> => {
      const store = stores.get(name) ?? memoryStore()
      stores.set(name, store)
      return Promise.resolve(Object.assign(Object.create(store) as Store, { close: () => Promise.resolve() }))
    },
    removeStore: (name: string): Promise<void> => {
      stores.delete(name)
      return Promise.resolve()
    },
  }
}

const chatty: Logger = { debug() {}, info: (m, f) => console.log(m, f), warn: (m, f) => console.log(m, f), error: (m, f) => console.log(m, f), child: () => chatty }
async function aWorld(options: Partial<TestEnvOptions> & { stores?: ReturnType<typeof keptStores> } = {}): Promise<World> {
  const { stores = keptStores(), ...more } = options
  let workloads!: Workloads
  const env = await testEnv({
    kinds: [...coreKinds, ...localKinds],
    controllers: ({ clock, random }) => {
      const log: Logger = options.log ?? silent
      workloads = createWorkloads({ ...stores, clock, random, log })
      const clusters = createClusterCache({
        clock,
        random,
        log,
        connect: async (text) => {
          const { servername } = await resolveKubeconfig(parseKubeconfig(text))
          return createClient(await workloads.whenStarted(servername!))
        },
      })
      return [
        clusters.controller,
        createClusterController({ clusters }),
        createMachineController({ clusters }),
        ...localControllers({ workloads, endpoint: { host: '127.0.0.1', port: 6443 } }),
      ] as never
    },
    ...(process.env.DEBUG ? { log: chatty } : {}),
    ...more,
  })
  const world = { ...env, workloads }
  open.push(world)
  return world
}

const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const key = (name: string) => ({ name, namespace: 'default' })
const ref = (apiGroup: string, kind: string, name: string) => ({ apiGroup, kind, name })
const machineTemplate = (name: string) => ref('infrastructure.capstan.dev', 'LocalMachineTemplate', name)

async function createCluster({ client }: World, { replicas = 1, simulated = {} }: { replicas?: number; simulated?: object } = {}): Promise<void> {
  await client.create(LocalMachineTemplate, { ...named('control-plane'), spec: { template: { spec: { simulated } } } })
  await client.create(LocalCluster, { ...named('demo'), spec: {} })
  await client.create(LocalControlPlane, {
    ...named('demo'),
    spec: { replicas, version: 'v1.35.0', machineTemplate: { spec: { infrastructureRef: machineTemplate('control-plane') } } },
  })
  await client.create(Cluster, {
    ...named('demo'),
    spec: {
      infrastructureRef: ref('infrastructure.capstan.dev', 'LocalCluster', 'demo'),
      controlPlaneRef: ref('controlplane.capstan.dev', 'LocalControlPlane', 'demo'),
    },
  })
}

const machines = async ({ client }: World) => (await client.list(Machine, { namespace: 'default' })).items
const nodes = async ({ workloads }: World) => {
  const client = workloads.clientFor(key('demo'))
  return client ? (await client.list(Node)).items : undefined
}
const shown = async (world: World) =>
  (await machines(world)).map((machine) => `${machine.status?.phase} in ${machine.status?.failureDomain} ${machine.spec.version}`).sort()

test('a cluster comes up at once when nothing is delayed', async () => {
  const world = await aWorld()
  await createCluster(world)
  await world.advance(seconds(2))

  if (process.env.DEBUG) console.log(world.manager.waiting())
  expect(await shown(world)).toEqual(['Running in a v1.35.0'])
  const controlPlane = await world.client.get(LocalControlPlane, key('demo'))
  expect(controlPlane.status).toMatchObject({
    initialization: { controlPlaneInitialized: true },
    replicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    upToDateReplicas: 1,
    version: 'v1.35.0',
  })
  expect(isTrue(controlPlane, 'Available')).toBe(true)
  const cluster = await world.client.get(Cluster, key('demo'))
  expect(cluster.spec.controlPlaneEndpoint).toEqual({ host: '127.0.0.1', port: 6443 })
  expect(cluster.status?.failureDomains?.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  expect((await nodes(world))?.map(({ spec }) => spec?.providerID)).toEqual((await machines(world)).map(({ spec }) => spec.providerID))
})
