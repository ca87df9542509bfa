/**
 * Measures `capstan manager`, then upstream's Go managers, each on its own kube-apiserver with etcd; with `--short`, only `capstan manager`.
 * Clusters have one control plane machine and two workers. The bench measures the time from apply to Available, an upgrade of all Clusters,
 * the idle managers, and the deletion. Requests are counted in the API server's audit log. `--managers N,…` instead measures, for each N, N core
 * managers of Capstan that share the Clusters, without an upgrade. `--sides one-process` measures one process of Capstan with core and the
 * local provider, without webhooks.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Cluster, ClusterClass, Machine } from '@capstan/api'
import { type Client, isTrue, Lease, Namespace, seconds, sleep, systemClock } from '@capstan/kube'
import { type CapstanProcess, startCapstan } from '../interop/processes/capstan-process.ts'
import { createObjectsFromFile } from '../interop/life/life.ts'
import { type AuditEvent, auditPolicy, readAudit } from '../interop/manifests/audit.ts'
import { cpuSeconds, residentBytes } from '../interop/processes/proc.ts'
import type { RunningApiServer } from '../interop/processes/api-server.ts'
import { startRealApiServer } from '../interop/processes/real-api-server.ts'
import { namespacesOfShards, sharesOf } from '../interop/shared/shards.ts'
import { CannotRun } from '../interop/shared/suite.ts'
import { toolPaths } from '../interop/shared/tools.ts'
import { until } from '../interop/shared/until.ts'
import { allowManagers, components, managersUser, startManagers } from '../interop/upstream/managers.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, megabytes, now } from './figure.ts'

/** Managers to measure together, and the class and namespaces of their Clusters. */
interface Side {
  readonly name: string
  readonly className: string
  /** Path of the ClusterClass, relative to `interop/life`. */
  readonly classFile: string
  /** Namespaces in which Clusters are created in turn. */
  readonly namespaces: readonly string[]
  start(apiServer: RunningApiServer): Promise<Running>
}

interface Running {
  readonly pids: readonly number[]
  /** Returns the number of reconciles so far whose writes did not arrive in the cache in time. Only Capstan logs them. */
  missedWrites?(): number
  stop(): Promise<void>
}

const versions = { first: 'v1.35.0', second: 'v1.36.0' }
const machinesOfCluster = 3
/** Time limit of a step in seconds: upstream needs ten minutes for a hundred Clusters. */
const Limit = 1800

const capstan: Side = {
  name: 'capstan',
  className: 'bench',
  classFile: '../../bench/clusterclass.yaml',
  namespaces: ['default'],
  start: (apiServer) => startCapstanManagers(apiServer, [withWebhooks('core'), withWebhooks('local')]),
}

/**
 * One process with core and the local provider, and without webhooks: kube-apiserver then calls no admission webhook and converts no object.
 */
const oneProcess: Side = {
  ...capstan,
  name: 'one-process',
  start: (apiServer) => startCapstanManagers(apiServer, [['--no-webhooks']]),
}

/** Number of shards: divisible by the numbers of managers that are usually compared (1, 2 and 3). */
const Shards = 6

/** Runs `managers` core managers, which share the shards, and one local provider. Each shard has one namespace with Clusters. */
const sharedSide = (managers: number): Side => ({
  ...capstan,
  name: `${managers} core manager${managers === 1 ? '' : 's'}`,
  namespaces: namespacesOfShards(Shards),
  async start(apiServer) {
    const flags = [
      ...withWebhooks('core'),
      '--leader-elect',
      `--leader-elect-shards=${Shards}`,
      '--webhook-cert-secret=default/webhooks',
    ]
    const running = await startCapstanManagers(apiServer, [
      ...Array.from({ length: managers }, () => flags),
      withWebhooks('local'),
    ])
    await until(apiServer.client(), Lease, 'the shards are divided evenly', areDivided(managers))
    return running
  },
})

const areDivided = (managers: number) => (all: readonly Lease[]) => {
  const shares = sharesOf(all, 'controller-leader-election-capi', Shards)
  return shares?.length === managers && shares[0]! - shares.at(-1)! <= 1
}

const withWebhooks = (provider: string): string[] => ['--providers', provider, '--webhook-port', '0']

/** Starts one manager for each list of flags. */
async function startCapstanManagers(
  apiServer: RunningApiServer,
  flagsOfManagers: readonly (readonly string[])[],
): Promise<Running> {
  await allowManagers(apiServer.client())
  const common = ['--kubeconfig', apiServer.kubeconfigOf(managersUser.name), '--diagnostics-port', '0']
  const processes: CapstanProcess[] = []
  for (const flags of flagsOfManagers)
    processes.push(await startCapstan(['manager', ...flags, ...common, '--log-level', 'warn'], /Manager ready/))
  return {
    pids: processes.map(({ pid }) => pid),
    missedWrites: () => sum(processes.map((managerProcess) => managerProcess.stderr().split(MissedWritesText).length - 1)),
    stop: async () => void (await Promise.all(processes.map((managerProcess) => managerProcess.stop()))),
  }
}

/** Part of the log entry that `packages/controller/src/loop.ts` writes when own writes do not arrive in the cache in time. */
const MissedWritesText = 'Own writes have not been seen'

const upstream: Side = {
  name: 'upstream',
  className: 'memory',
  classFile: '../upstream/class.yaml',
  namespaces: ['default'],
  async start(apiServer) {
    const managers = await startManagers(apiServer, () => {})
    return {
      pids: managers.programs.map(({ pid }) => pid),
      async stop() {
        await managers.removeWebhooks()
        await managers[Symbol.asyncDispose]()
      },
    }
  },
}

const allSides = [capstan, oneProcess, upstream]

export async function* managersBench({
  short,
  clusters = short ? [1] : [1, 20],
  managers,
  sides = short ? [capstan.name] : [capstan.name, upstream.name],
}: BenchOptions): AsyncIterable<Figure> {
  const unknown = sides.filter((name) => !allSides.some((side) => side.name === name))
  if (unknown.length > 0)
    throw new CannotRun(`there is no side ${unknown.join(', ')}: there are ${allSides.map(({ name }) => name).join(', ')}`)
  const measured = managers ? managers.map(sharedSide) : allSides.filter(({ name }) => sides.includes(name))
  await needTools(...(measured.includes(upstream) ? components.map(({ tool }) => tool) : []))
  for (const side of measured) for (const count of clusters) yield* measure(side, { count, short, upgrades: !managers })
}

async function needTools(...furtherTools: readonly string[]): Promise<void> {
  try {
    await toolPaths('etcd', 'kube-apiserver', 'kube-controller-manager', ...furtherTools)
  } catch (err) {
    throw new CannotRun(String(err))
  }
}

interface Scale {
  readonly count: number
  readonly short: boolean
  readonly upgrades: boolean
}

async function* measure(side: Side, { count, short, upgrades }: Scale): AsyncIterable<Figure> {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-'))
  const audit = join(folder, 'audit.log')
  const policy = join(folder, 'policy.json')
  writeFileSync(policy, JSON.stringify(auditPolicy([managersUser.name])))
  // By default, kube-apiserver begins a second log file after 100 MB, possibly in the middle of a measurement.
  const flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`, '--audit-log-maxsize=400']
  await using apiServer = await startRealApiServer({ users: [managersUser], flags })
  const running = await side.start(apiServer)
  const what = `${side.name}, ${count} cluster${count === 1 ? '' : 's'}`
  const meter = new Meter(running, apiServer, audit)
  try {
    const client = apiServer.client()
    for (const namespace of side.namespaces) {
      if (namespace !== 'default') await client.create(Namespace, { metadata: { name: namespace } })
      await createObjectsFromFile({ client, namespace }, side.classFile)
    }
    const areAccepted = (all: readonly ClusterClass[]) =>
      all.length === side.namespaces.length && all.every((clusterClass) => isTrue(clusterClass, 'VariablesReady'))
    await until(client, ClusterClass, 'classes accepted', areAccepted)
    const keyOf = (index: number) => ({ namespace: side.namespaces[index % side.namespaces.length]!, name: `c-${index}` })

    let start = meter.read()
    await inParallel(count, 20, (index) => client.create(Cluster, aCluster(keyOf(index), side.className)))
    await untilAll(client, count, 'Available', (cluster) => isTrue(cluster, 'Available'))
    yield* meter.figures(`${what}: apply to Available`, start, count)
    yield { name: `${what}: resident memory of the managers`, value: megabytes(meter.residentBytes()), unit: 'MB' }

    if (upgrades) {
      start = meter.read()
      const operations = [{ op: 'replace' as const, path: '/spec/topology/version', value: versions.second }]
      await inParallel(count, 20, (index) => client.patch(Cluster, keyOf(index), { type: 'json', operations }))
      await until(client, Machine, 'upgraded', isUpgraded(count * machinesOfCluster), { seconds: Limit })
      await untilAll(client, count, 'settled', isSettled)
      yield* meter.figures(`${what}: upgrade of all`, start, count)
    }

    await sleep(systemClock, seconds(short ? 2 : 10))
    start = meter.read()
    await sleep(systemClock, seconds(short ? 2 : 20))
    const idle = meter.since(start)
    yield { name: `${what}: CPU of the managers when idle, of one core`, value: (idle.managers / idle.wall) * 100, unit: '%' }
    yield { name: `${what}: requests when idle`, value: idle.events.length / idle.wall, unit: '/s' }

    start = meter.read()
    await inParallel(count, 20, (index) => client.delete(Cluster, keyOf(index)))
    await until(client, Cluster, 'deleted', (all) => all.length === 0, { seconds: Limit })
    yield* meter.figures(`${what}: deletion of all`, start, count)
  } finally {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Waits until `count` Clusters fulfil a condition. Prints how many do, at most every 15 seconds. */
async function untilAll(client: Client, count: number, what: string, isReached: (cluster: Cluster) => boolean): Promise<void> {
  let reportedAt = now()
  await until(
    client,
    Cluster,
    what,
    (all) => {
      const done = all.filter(isReached).length
      if (now() - reportedAt > seconds(15)) {
        console.error(`  ${done} of ${count} Clusters ${what}`)
        reportedAt = now()
      }
      return done === count
    },
    { seconds: Limit },
  )
}

const isUpgraded = (count: number) => (machines: readonly Machine[]) =>
  machines.length === count &&
  machines.every((machine) => machine.spec.version === versions.second && isTrue(machine, 'Available'))

const isSettled = (cluster: Cluster): boolean =>
  isTrue(cluster, 'Available') &&
  isTrue(cluster, 'TopologyReconciled') &&
  isFalse(cluster, 'RollingOut') &&
  isFalse(cluster, 'ScalingDown')
const isFalse = ({ status }: Cluster, type: string): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === 'False') ?? false

const aCluster = (key: { readonly namespace: string; readonly name: string }, className: string) => ({
  metadata: key,
  spec: {
    clusterNetwork: { services: { cidrBlocks: ['10.128.0.0/12'] }, pods: { cidrBlocks: ['192.168.0.0/16'] } },
    topology: {
      classRef: { name: className },
      version: versions.first,
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [{ class: 'worker', name: 'md-0', replicas: machinesOfCluster - 1 }] },
    },
  },
})

interface Reading {
  /** Time of the reading, in milliseconds. */
  readonly at: number
  /** CPU seconds of the managers so far. */
  readonly managers: number
  /** CPU seconds of kube-apiserver, etcd and kube-controller-manager so far. */
  readonly server: number
  /** Number of requests of the managers so far. */
  readonly requests: number
  readonly missedWrites: number
}

/** Reads the CPU time of the managers and the server, the memory of the managers, and the audit log. */
class Meter {
  readonly #running: Running
  readonly #apiServer: RunningApiServer
  readonly #audit: string

  constructor(running: Running, apiServer: RunningApiServer, audit: string) {
    this.#running = running
    this.#apiServer = apiServer
    this.#audit = audit
  }

  read(): Reading {
    return { ...this.#readTimes(), requests: this.#events().length, missedWrites: this.#running.missedWrites?.() ?? 0 }
  }

  since(before: Reading) {
    const after = this.#readTimes()
    return {
      wall: (after.at - before.at) / 1000,
      managers: after.managers - before.managers,
      server: after.server - before.server,
      events: this.#events().slice(before.requests),
    }
  }

  #readTimes(): Pick<Reading, 'at' | 'managers' | 'server'> {
    return {
      at: now(),
      managers: sum(this.#running.pids.map(cpuSeconds)),
      server: sum(this.#apiServer.programs.map(({ pid }) => cpuSeconds(pid))),
    }
  }

  residentBytes(): number {
    return sum(this.#running.pids.map(residentBytes))
  }

  *figures(what: string, before: Reading, count: number): Iterable<Figure> {
    const { wall, managers, server, events } = this.since(before)
    yield { name: what, value: wall, unit: 's' }
    yield { name: `${what}: CPU of the managers for each cluster`, value: managers / count, unit: 's' }
    yield { name: `${what}: CPU of the server for each cluster`, value: server / count, unit: 's' }
    yield { name: `${what}: requests for each cluster`, value: events.length / count, unit: 'requests' }
    for (const [verb, number] of counted(events, ({ verb }) => verb))
      yield { name: `${what}: requests for each cluster, ${verb}`, value: number / count, unit: 'requests' }
    const conflicts = events.filter(({ responseStatus }) => responseStatus?.code === 409)
    yield { name: `${what}: conflicts (409) for each cluster`, value: conflicts.length / count, unit: 'requests' }
    if (this.#running.missedWrites) {
      const missed = this.#running.missedWrites() - before.missedWrites
      yield { name: `${what}: reconciles whose own writes have not been seen in time`, value: missed, unit: 'times' }
    }
    for (const [conflict, number] of counted(conflicts, conflictOf).slice(0, 10))
      console.log(`    ${number} conflicts: ${conflict}`)
    for (const [target, number] of counted(events, targetOf).slice(0, 10))
      console.log(`    ${(number / count).toFixed(1).padStart(6)} ${target}`)
  }

  /** @throws Error if kube-apiserver has begun a second file, which it does after renaming the first one to `audit-<time>.log` */
  #events(): AuditEvent[] {
    if (readdirSync(dirname(this.#audit)).some((name) => name.startsWith('audit-')))
      throw new Error(`The audit log has more than one file: ${this.#audit}`)
    const text = readFileSync(this.#audit, 'utf8')
    // The last line may be incomplete.
    return readAudit(text.slice(0, text.lastIndexOf('\n') + 1))
  }
}

const targetOf = ({ verb, objectRef }: AuditEvent): string =>
  `${verb} ${objectRef?.resource ?? 'other'}${objectRef?.subresource ? `/${objectRef.subresource}` : ''}`

const conflictOf = (event: AuditEvent): string =>
  `${targetOf(event)} ${event.objectRef?.name ?? ''} by ${event.userAgent ?? 'unknown'}: ${event.responseStatus?.message ?? ''}`

function counted(events: readonly AuditEvent[], nameOf: (event: AuditEvent) => string): [string, number][] {
  const counts = new Map<string, number>()
  for (const event of events) counts.set(nameOf(event), (counts.get(nameOf(event)) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, value) => total + value, 0)
