/**
 * Combines managers of upstream and of Capstan: our core with upstream's kubeadm providers and in-memory machines, upstream's core with our
 * local provider, and only our managers. The first two combinations run on `capstan apiserver` and on a real API server, the last one only
 * on a real API server. Each combination runs Clusters through their whole lifecycle. In two further cases, one on each API server, each
 * core takes over Clusters of the other core (`swap/take-over.ts`).
 */
import { join } from 'node:path'
import { Cluster } from '@capstan/api'
import { installKinds } from '@capstan/controller'
import {
  createClient,
  messageOf,
  Namespace,
  systemClock,
  systemRandom,
  type Transport,
  ValidatingWebhookConfiguration,
} from '@capstan/kube'
import { localKinds } from '@capstan/local'
import { coreKinds } from '@capstan/api'
import { startCapstanApiServer } from './processes/capstan-api-server.ts'
import { type CapstanProcess, Checks, startCapstan } from './processes/capstan-process.ts'
import {
  waitUntilSettled,
  type ClusterName,
  createClass,
  createCluster,
  inventory,
  type TestProvider,
  undeletedObjects,
  localProvider,
  inMemoryProvider,
  remediate,
  remove,
  scale,
  type LifeContext,
  upgrade,
  type DesiredState,
} from './life/life.ts'
import { moveAndMoveBack } from './life/move.ts'
import type { ApiServerOptions, RunningApiServer } from './processes/api-server.ts'
import { startRealApiServer } from './processes/real-api-server.ts'
import { namesWith, type Outcome, type Suite, type SuiteOptions } from './shared/suite.ts'
import { runTakeOver } from './swap/take-over.ts'
import { moduleFolder } from './shared/tools.ts'
import { until } from './shared/until.ts'
import { clusterctlOn } from './upstream/clusterctl.ts'
import { type Component, components, install, type Managers, managersUser, startManagers } from './upstream/managers.ts'
import { readManifests } from './upstream/manifests.ts'

/** A combination of managers on one API server. */
interface Cell {
  readonly server: 'capstan' | 'kubernetes'
  /** Capstan's providers in the cell. */
  readonly ours: readonly ('core' | 'local')[]
  /** Upstream's managers in the cell, by the names of their tools. */
  readonly theirs: readonly string[]
  readonly provider: TestProvider
}

const kubeadm = ['cabpk', 'kcp', 'capd']

const cells: { readonly [name: string]: Cell } = {
  'all-ours-on-kubernetes': { server: 'kubernetes', ours: ['core', 'local'], theirs: [], provider: localProvider },
  'our-core-on-capstan': { server: 'capstan', ours: ['core'], theirs: kubeadm, provider: inMemoryProvider },
  'our-core-on-kubernetes': { server: 'kubernetes', ours: ['core'], theirs: kubeadm, provider: inMemoryProvider },
  'our-provider-on-capstan': { server: 'capstan', ours: ['local'], theirs: ['capi-core'], provider: localProvider },
  'our-provider-on-kubernetes': { server: 'kubernetes', ours: ['local'], theirs: ['capi-core'], provider: localProvider },
}
/** Cases in which each core takes over the Clusters of the other core, with the API server of each case. */
const takeOvers: { readonly [name: string]: Cell['server'] } = {
  'take-over-on-capstan': 'capstan',
  'take-over-on-kubernetes': 'kubernetes',
}
/** Numbers of machines of a Cluster. */
interface Size {
  readonly controlPlane: number
  readonly workers: number
  /** Machines of the pool of each Cluster, if its provider has pools. `classy` has a ClusterClass, `plain` has none. */
  readonly pool: { readonly [name in ClusterName]: number }
}
const small: Size = { controlPlane: 1, workers: 2, pool: { classy: 1, plain: 2 } }
const large: Size = { controlPlane: 3, workers: 3, pool: { classy: 2, plain: 1 } }

/** The cells that run without flags, as in CI. The other cells take many minutes, because upstream's managers wait for timers. */
const cellsInCI = ['all-ours-on-kubernetes']

export const swapSuite: Suite = {
  shows: "our core with upstream's providers, upstream's core with ours, and all ours, through the lifecycle of Clusters",
  ci: true,
  tools: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'clusterctl', ...components.map(({ tool }) => tool)],
  ownNetwork: true,
  minutes: 90,
  async prepare() {
    for (const { tool, module } of components) await moduleFolder(tool, module)
  },
  async run(options: SuiteOptions = {}) {
    const names = [...Object.keys(cells), ...Object.keys(takeOvers)]
    const chosen = chosenOf(names, options)
    console.log(`${chosen.length} of ${names.length} cells and cases: ${chosen.join(', ')}; --all runs all, --only TEXT some`)
    const outcome = { passed: 0, failed: 0 }
    const times = new Map<string, Times>()
    for (const name of chosen) {
      const { passed, failed } = await runCell(name, times)
      outcome.passed += passed
      outcome.failed += failed
    }
    printTimes(times)
    return outcome
  },
}

function chosenOf(names: readonly string[], { all, only }: SuiteOptions): readonly string[] {
  if (only !== undefined) return namesWith(names, only)
  return all ? names : cellsInCI
}

/** Duration of each phase in seconds, for each Cluster. */
type Times = Map<string, { readonly [name in ClusterName]?: number }>

/** Prints a table of the durations. `timesByCell` contains the cells that have run. */
function printTimes(timesByCell: ReadonlyMap<string, Times>): void {
  const phases = new Set([...timesByCell.values()].flatMap((times) => [...times.keys()]))
  if (phases.size === 0) return
  console.log(`\nseconds with a class and without\n| phase | ${[...timesByCell.keys()].join(' | ')} |`)
  console.log(`| --- |${' --- |'.repeat(timesByCell.size)}`)
  for (const phase of phases) {
    const texts = [...timesByCell.values()].map((times) => {
      const { classy, plain } = times.get(phase) ?? {}
      return [classy, plain].map((seconds) => seconds?.toFixed(0) ?? '-').join(' / ')
    })
    console.log(`| ${phase} | ${texts.join(' | ')} |`)
  }
}

/** Runs one cell, or one case of `takeOvers`. An error that ends it counts as one failed check. */
async function runCell(name: string, times: Map<string, Times>): Promise<Outcome> {
  const checks = new Checks()
  const startedAt = performance.now()
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s`
  const progress = (line: string) => console.log(`${seconds()}  ${name}: ${line}`)
  try {
    const cell = cells[name]
    if (cell) {
      const ofCell: Times = new Map()
      times.set(name, ofCell)
      await runLifecycle(cell, checks, progress, ofCell)
    } else {
      await using apiServer = await startApiServer(takeOvers[name]!, { users: [managersUser], progress })
      await runTakeOver(apiServer, checks, progress)
    }
    checks.check(`${name} completes`, true)
  } catch (err) {
    checks.check(`${name} completes`, false, messageOf(err).slice(0, 3000))
  }
  progress(`${checks.passed} passed, ${checks.failed} failed`)
  return checks
}

const startApiServer = (server: Cell['server'], options: ApiServerOptions): Promise<RunningApiServer> =>
  server === 'capstan' ? startCapstanApiServer(options) : startRealApiServer(options)

async function runLifecycle(cell: Cell, checks: Checks, progress: (line: string) => void, times: Times): Promise<void> {
  const { provider } = cell
  await using apiServer = await startApiServer(cell.server, {
    users: [managersUser],
    progress,
    durable: cell.server === 'capstan',
  })
  const client = apiServer.client()
  const running: { ours?: CapstanProcess; theirs?: Managers } = {}
  const startOurs = async () => {
    const folder = join(apiServer.folder, 'manager')
    const flags = ['--kubeconfig', apiServer.kubeconfig, '--providers', cell.ours.join(','), '--diagnostics-port', '0']
    const furtherFlags = [
      '--webhook-port',
      '0',
      '--log-level',
      'error',
      ...(cell.ours.includes('local') ? ['--data', folder] : []),
    ]
    running.ours = await startCapstan(['manager', ...flags, ...furtherFlags], /Manager ready/)
    await until(client, ValidatingWebhookConfiguration, 'webhooks of our managers', (all) =>
      cell.ours.every((provider) => all.some(({ metadata }) => metadata.name === `capstan-${provider}`)),
    )
  }
  try {
    const chosen = components.filter(({ tool }) => cell.theirs.includes(tool))
    // The manager of core starts first. Core's kinds are installed with it, and upstream's providers do not start without them.
    if (cell.ours.includes('core')) await startOurs()
    if (chosen.length > 0) running.theirs = await startManagers(apiServer, progress, { components: chosen })
    if (!cell.ours.includes('core')) await startOurs()
    progress('all managers ready')
    await using moveTarget = await startCapstanApiServer()
    await installMoveTarget(moveTarget, cell, chosen)

    const namespace = 'team'
    await client.create(Namespace, { metadata: { name: namespace } })
    const gate = new RestartGate()
    const context: LifeContext = {
      client: createClient(gate.guard(client.transport)),
      namespace,
      provider,
      checks,
      progress,
      limit: 300,
    }
    await createClass(context)
    const before = await inventory(context)
    // capd is not killed, because upstream's in-memory machines exist only in its memory. All other managers and all processes of the API
    // server are killed, also etcd.
    const restartAll = async () => {
      await running.ours!.kill()
      await apiServer.restartAll()
      await running.theirs?.restart(cell.theirs.filter((tool) => tool !== 'capd'))
      await startOurs()
      progress(`managers and API server killed and started again${cell.theirs.includes('capd') ? ', except capd' : ''}`)
    }
    const desiredStateOf = (name: ClusterName, size: Size, version: string): DesiredState => {
      const { pool, ...others } = size
      return { version, ...others, ...(provider.pool ? { pool: pool[name] } : {}) }
    }
    const timed = async (name: ClusterName, phase: string, act: () => Promise<void>) => {
      const startedAt = performance.now()
      await act()
      progress(`${name}: ${phase}`)
      times.set(phase, { ...times.get(phase), [name]: (performance.now() - startedAt) / 1000 })
    }
    const createAndChange = async (name: ClusterName, during?: () => Promise<void>) => {
      const scaled = desiredStateOf(name, large, 'v1.33.0')
      const second = desiredStateOf(name, large, 'v1.34.0')
      const last = desiredStateOf(name, large, 'v1.36.0')
      await timed(name, 'Available', () => createCluster(context, name, desiredStateOf(name, small, 'v1.33.0')))
      await timed(name, 'scaled', () => scale(context, name, scaled))
      await timed(name, 'upgraded by one minor version', () => upgrade(context, name, [second.version], second, during))
      await timed(name, 'upgraded by two minor versions', () => upgrade(context, name, ['v1.35.0', last.version], last))
      await timed(name, 'worker remediated', () => remediate(context, name, 'worker', last))
      await timed(name, 'control plane Machine remediated', () => remediate(context, name, 'control plane', last))
      checks.check(`${name} is created, scaled, upgraded and remediated`, true)
    }
    const results = await Promise.allSettled([
      createAndChange('classy', () => gate.restart(restartAll)),
      createAndChange('plain'),
    ])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    await checkClusterctl(apiServer, context)
    await moveAndMoveBack(context, apiServer, moveTarget)
    const names = ['classy', 'plain'] as const
    for (const name of names) await waitUntilSettled(context, name, desiredStateOf(name, large, 'v1.36.0'))
    progress('moved away and back')
    await Promise.all(names.map((name) => timed(name, 'deleted', () => remove(context, name))))
    const undeleted = await undeletedObjects(context, before)
    checks.check('all objects of deleted Clusters are deleted', undeleted.length === 0, undeleted)
    const stopped = await running.ours!.stop()
    checks.check('our manager stops cleanly', stopped.code === 0, stopped)
  } catch (err) {
    for (const program of running.theirs?.programs ?? []) console.log(`--- ${program.name}\n${program.tail(12)}`)
    throw err
  } finally {
    await running.ours?.kill()
    await running.theirs?.[Symbol.asyncDispose]()
  }
}

/** Separates restarts from the suite's requests: a request waits until a restart has ended, and a restart waits for started requests. */
class RestartGate {
  #restarting: Promise<void> | undefined
  readonly #requests = new Set<Promise<unknown>>()

  /** Returns a transport whose requests wait for restarts. Watches do not wait, because the suite's watchers open them again. */
  guard(transport: Transport): Transport {
    return {
      send: async (request, signal) => {
        await this.#restarting
        const response = transport.send(request, signal)
        this.#requests.add(response)
        return response.finally(() => this.#requests.delete(response))
      },
      watch: (request, signal) => transport.watch(request, signal),
      close: () => transport.close(),
    }
  }

  /** Calls `act`, which restarts processes, when all started requests have ended. */
  restart(act: () => Promise<void>): Promise<void> {
    this.#restarting = Promise.allSettled(this.#requests).then(act)
    return this.#restarting
  }
}

/** Installs the kinds of a cell's managers on the API server to which Clusters are moved, with the labels that clusterctl needs. */
async function installMoveTarget(moveTarget: RunningApiServer, { ours }: Cell, theirs: readonly Component[]): Promise<void> {
  const client = moveTarget.client()
  const kinds = [...(ours.includes('core') ? coreKinds : []), ...(ours.includes('local') ? localKinds : [])]
  await installKinds(client, kinds, { clock: systemClock, random: systemRandom })
  const { crds } = await readManifests(theirs, { urlOf: () => 'https://127.0.0.1:1', ca: moveTarget.ca })
  // No manager on this server converts objects, so the server serves only the storage versions.
  const stored = crds.map((crd) => ({
    ...crd,
    spec: {
      ...crd.spec,
      conversion: { strategy: 'None' as const },
      versions: crd.spec.versions.map((version) => ({ ...version, served: version.storage })),
    },
  }))
  await install(client, stored)
}

/** Checks `clusterctl describe cluster` and `clusterctl get kubeconfig` for each Cluster. */
async function checkClusterctl(apiServer: RunningApiServer, { namespace, checks, client, provider }: LifeContext): Promise<void> {
  const clusterctl = await clusterctlOn(apiServer)
  for (const { metadata } of (await client.list(Cluster, { namespace })).items) {
    const { out } = await clusterctl.run('describe', 'cluster', metadata.name, '-n', namespace, '--show-conditions', 'all')
    const kinds = ['Cluster', provider.controlPlane.kind, 'MachineDeployment', ...(provider.pool ? ['MachinePool'] : [])]
    const isComplete = kinds.every((kind) => out.includes(`${kind} ${namespace}/`)) && out.includes('WorkerMachinesReady')
    checks.check(`clusterctl describes ${metadata.name}`, isComplete, out)
    const { out: kubeconfig } = await clusterctl.run('get', 'kubeconfig', metadata.name, '-n', namespace)
    checks.check(`clusterctl gets the kubeconfig of ${metadata.name}`, kubeconfig.includes('client-certificate-data'))
  }
}
