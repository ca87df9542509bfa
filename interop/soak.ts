/**
 * Creates, scales, upgrades and deletes clusters in `capstan up`, while the suite causes random faults. The desired state has at most
 * sixty clusters. By default, as in CI, the suite causes faults for two minutes and takes about three; with `--all` it causes faults for
 * thirty minutes. After each fault, every cluster must reach its desired state, every acknowledged write must be stored, no object may be
 * missing or exist twice, and memory and data folder must be smaller than their limits. A seed, which the suite prints, determines changes
 * and faults. To repeat them, set CAPSTAN_SOAK_SEED to the printed seed.
 */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Cluster, Machine } from '@capstan/api'
import {
  type Client,
  ConfigMap,
  isReason,
  isTrue,
  type Kind,
  type KubeObject,
  messageOf,
  minutes,
  Namespace,
  orAbsent,
  type Random,
  Secret,
  seconds,
  seededRandom,
  systemClock,
} from '@capstan/kube'
import { LocalBootstrapConfig, LocalCluster, LocalControlPlane, LocalMachine } from '@capstan/local'
import { registerSampleExtension, type SampleExtension, startSampleExtension } from '../packages/cli/src/sample-extension.ts'
import { largestInputs } from './abuse/inputs.ts'
import { type CapstanProcess, Checks, startCapstan, withClient } from './processes/capstan-process.ts'
import { createClass, localProvider } from './life/life.ts'
import { progressSince } from './shared/progress.ts'
import { type SmallDisk, smallDisk } from './processes/small-disk.ts'
import type { Outcome, Suite, SuiteOptions } from './shared/suite.ts'
import { residentBytes } from './processes/proc.ts'

export const soakSuite: Suite = {
  shows:
    '60 clusters are created and deleted while the server is killed, its disk is full or its clock wrong: no object is lost or created twice',
  ci: true,
  tools: [],
  minutes: 50,
  run,
}

/** Maximum number of Clusters in the desired state. */
const MaxClusters = 60
const namespace = 'soak'
const Versions = ['v1.33.0', 'v1.34.0', 'v1.35.0']
/** Size of the disk in megabytes, if it is a separate file system: several times the size of all clusters' state. */
const DiskSize = 512
/** Limits for the memory of the process and for its data folder in megabytes: about twice the usual sizes. */
const MaxMemory = 700
const MaxStored = 128
/**
 * Seconds in which memory must become smaller than its limit after all clusters have reached their desired state. After a flood of
 * requests, memory exceeds the limit until V8 returns it to the system: 100 s after the last garbage collection, or earlier if the process
 * is idle.
 */
const MemoryPatience = 150
/** Seconds after which the requests of a flood are aborted, so that a flood does not last longer on a busy machine. */
const FloodLength = 20
/** Seconds in which all clusters must reach their desired state after a fault has ended; long enough for a busy machine. */
const Patience = 300

interface DesiredState {
  version: string
  workers: number
}

async function run({ all = false }: SuiteOptions = {}): Promise<Outcome> {
  const seed = Number(process.env.CAPSTAN_SOAK_SEED ?? Date.now() % 1_000_000)
  const length = minutes(all ? 30 : 2)
  console.log(`seed ${seed} (CAPSTAN_SOAK_SEED), faults occur for ${length / minutes(1)} minutes`)
  const base = mkdtempSync(join(tmpdir(), 'capstan-soak-'))
  const disk = await smallDisk(join(base, 'disk'), DiskSize)
  console.log(`disk: ${disk.kind}`)
  const server = new Server(base, disk)
  const checks = new Checks()
  try {
    await server.start()
    await withClient(server.kubeconfig, async (client) => {
      const soak = new Soak(client, server, seed, checks)
      await soak.run(length)
    })
    const { code } = await server.stop()
    checks.check('the server stops cleanly', code === 0, code)
  } finally {
    await server.end()
    await disk.close()
    rmSync(base, { recursive: true, force: true })
  }
  return checks
}

/** `capstan up`, in which this suite causes faults. */
class Server {
  readonly kubeconfig: string
  readonly disk: SmallDisk
  readonly #faults: string
  readonly #data: string
  #process: CapstanProcess | undefined

  constructor(base: string, disk: SmallDisk) {
    this.disk = disk
    this.kubeconfig = join(base, 'kubeconfig')
    this.#faults = join(base, 'faults.json')
    this.#data = join(disk.folder, 'data')
  }

  async start(): Promise<void> {
    writeFileSync(this.#faults, '{}')
    // The first start selects a free port. `capstan up` stores the port in its data folder, and later starts use it again.
    const port = this.#process ? [] : ['--port', '0']
    const flags = ['--data', this.#data, '--kubeconfig', this.kubeconfig, '--output', 'json', ...port]
    const preload = fileURLToPath(new URL('soak/preload.ts', import.meta.url))
    const prefix = [...this.disk.prefix, 'env', `NODE_OPTIONS=--import=${preload}`, `CAPSTAN_SOAK_FAULTS=${this.#faults}`]
    this.#process = await startCapstan(['up', ...flags], /ApiServerReady/, prefix)
  }

  get pid(): number {
    return this.#process!.pid
  }

  kill(): Promise<void> {
    return this.#process!.kill()
  }

  stop(): Promise<{ code: number | null }> {
    return this.#process!.stop()
  }

  async end(): Promise<void> {
    await this.#process?.kill()
  }

  /**
   * Sets the faults of the process: each fdatasync takes `slow` ms longer, and `Date.now` is wrong by `step` ms. Default: 0.
   */
  setFaults(faults: { slow?: number; step?: number }): void {
    writeFileSync(this.#faults, JSON.stringify(faults))
    process.kill(this.pid, 'SIGUSR2')
  }

  /** Returns the sizes of the process's memory and of its data folder, in megabytes. */
  sizes(): { memory: number; stored: number } {
    // The disk may be visible to the server only.
    const folder = join(`/proc/${this.pid}/root`, this.#data)
    const files = readdirSync(folder, { recursive: true }) as string[]
    const bytes = files.reduce((sum, file) => sum + (statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0), 0)
    return { memory: residentBytes(this.pid) / 2 ** 20, stored: bytes / 2 ** 20 }
  }
}

/** Makes changes and causes faults, and checks the state after each fault. */
class Soak {
  readonly #client: Client
  readonly #server: Server
  /** Faults, changes and writes run concurrently. With one shared generator, their random numbers would depend on each other's speed. */
  readonly #random: { readonly faults: Random; readonly changes: Random; readonly writes: Random }
  readonly #checks: Checks
  readonly #progress = progressSince()
  /** Clusters that must exist, by name, with their desired state. */
  readonly #desired = new Map<string, DesiredState>()
  /** ConfigMaps by name, with their last acknowledged count. */
  readonly #acknowledged = new Map<string, number>()
  /** Clusters whose upgrade may be unfinished: admission would reject another upgrade. */
  readonly #upgraded = new Set<string>()
  #created = 0
  #writes = 0
  #extension: SampleExtension | undefined

  constructor(client: Client, server: Server, seed: number, checks: Checks) {
    this.#client = client
    this.#server = server
    this.#random = { faults: seededRandom(seed), changes: seededRandom(seed + 1), writes: seededRandom(seed + 2) }
    this.#checks = checks
  }

  async run(length: number): Promise<void> {
    await this.#client.create(Namespace, { metadata: { name: namespace } })
    const context = {
      client: this.#client,
      namespace,
      provider: localProvider,
      checks: this.#checks,
      progress: this.#progress,
      limit: 60,
    }
    await createClass(context)
    await this.#startExtension()
    try {
      await this.#change(MaxClusters)
      if (!(await this.#checkState('created'))) return
      const end = performance.now() + length
      for (let remaining: string[] = []; performance.now() < end; ) {
        // Every fault occurs once before any fault occurs again.
        if (remaining.length === 0) remaining = Object.keys(this.#faults)
        const fault = oneOf(remaining, this.#random.faults)
        remaining.splice(remaining.indexOf(fault), 1)
        const faultEnded = this.#faults[fault]!()
        await Promise.all([faultEnded, this.#change(10), this.#write(20)])
        if (!(await this.#checkState(fault))) return
      }
      for (const name of this.#desired.keys()) await this.#persist(() => this.#remove(name))
      this.#desired.clear()
      await this.#checkState('all deleted')
      this.#progress(`${this.#created} clusters created, ${this.#writes} writes acknowledged`)
    } finally {
      await this.#extension?.stop()
    }
  }

  /** Functions, by the name of the fault, that cause a fault and resolve when it has ended. */
  readonly #faults: { readonly [name: string]: () => Promise<void> } = {
    killed: async () => {
      await this.#pause(1, 5)
      await this.#server.kill()
      await this.#pause(0, 2)
      await this.#server.start()
    },
    'disk full': async () => {
      await this.#pause(0, 2)
      this.#server.disk.fill(this.#server.pid)
      await this.#pause(2, 6)
      this.#server.disk.free(this.#server.pid)
    },
    'disk full, then killed': async () => {
      this.#server.disk.fill(this.#server.pid)
      await this.#pause(1, 4)
      await this.#server.kill()
      this.#server.disk.free(this.#server.pid)
      await this.#server.start()
    },
    'disk slow': async () => {
      this.#server.setFaults({ slow: 300 })
      await this.#pause(4, 10)
      this.#server.setFaults({})
    },
    'clock ahead': () => this.#step(1),
    'clock behind': () => this.#step(-1),
    'extension stopped': async () => {
      await this.#extension!.stop()
      await this.#pause(3, 10)
      await this.#startExtension()
    },
    'workload clusters unreachable': async () => {
      const names = [...this.#desired.keys()].filter(() => this.#random.faults.next() < 0.2)
      const restored = await Promise.all(names.map((name) => this.#disconnect(name)))
      await this.#pause(3, 10)
      for (const restore of restored) await restore()
    },
    flooded: async () => {
      const inputs = largestInputs()
        .filter(({ path }) => path.includes('/configmaps?') && !path.includes('fieldManager'))
        .map(({ body }) => JSON.parse(body!) as { metadata: object })
      const signal = AbortSignal.timeout(seconds(FloodLength))
      const large = inputs.map((body) =>
        this.#client.create(ConfigMap, { ...body, metadata: { ...body.metadata, namespace } } as never, { dryRun: true, signal }),
      )
      const small = Array.from({ length: 2000 }, () => this.#client.list(Machine, { namespace, signal }))
      await Promise.allSettled([...large, ...small])
    },
  }

  /** Sets the clock ahead (1) or back (-1) for some seconds, by one minute to 61 minutes. */
  async #step(direction: number): Promise<void> {
    this.#server.setFaults({ step: direction * seconds(60 + Math.floor(this.#random.faults.next() * 3600)) })
    await this.#pause(4, 10)
    this.#server.setFaults({})
  }

  async #startExtension(): Promise<void> {
    this.#extension = await this.#persist(() =>
      startSampleExtension({
        client: this.#client,
        clock: systemClock,
        onExit: (reason) => console.log(`extension ended: ${reason}`),
      }),
    )
    await this.#persist(() => registerSampleExtension(this.#client, this.#extension!))
  }

  /**
   * Replaces the address in the kubeconfig of a workload cluster with an address that no server has.
   *
   * @returns a function that restores it
   */
  async #disconnect(name: string): Promise<() => Promise<void>> {
    const key = { namespace, name: `${name}-kubeconfig` }
    const secret = await this.#persist(() => orAbsent(this.#client.get(Secret, key)))
    const value = secret?.data?.value
    if (value === undefined) return async () => {}
    const unreachableKubeconfig = Buffer.from(
      Buffer.from(value, 'base64')
        .toString()
        .replace(/server: \S+/, 'server: https://127.0.0.1:1'),
    )
    const set = (text: string) =>
      this.#persist(async () => {
        await orAbsent(this.#client.patch(Secret, key, { type: 'merge', body: { data: { value: text } } }))
      })
    await set(unreachableKubeconfig.toString('base64'))
    return () => set(value)
  }

  /**
   * Makes at most `count` random changes, one after another: creates a Cluster if fewer than `MaxClusters` are desired, otherwise
   * deletes, scales or upgrades one.
   */
  async #change(count: number): Promise<void> {
    for (let change = 0; change < count; change++) {
      const names = [...this.#desired.keys()]
      const name = oneOf(names, this.#random.changes)
      const chance = this.#random.changes.next()
      if (names.length < MaxClusters) await this.#create()
      else if (chance < 0.4) {
        await this.#persist(() => this.#remove(name))
        this.#desired.delete(name)
      } else if (chance < 0.8) await this.#patch(name, { workers: 1 + Math.floor(this.#random.changes.next() * 3) })
      else if (!this.#upgraded.has(name)) {
        this.#upgraded.add(name)
        await this.#patch(name, { version: Versions[Versions.indexOf(this.#desired.get(name)!.version) + 1] ?? Versions.at(-1)! })
      }
    }
  }

  async #create(): Promise<void> {
    const name = `c${this.#created++}`
    const desired = { version: Versions[0]!, workers: 1 }
    const topology = {
      classRef: { name: 'life' },
      version: desired.version,
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [{ class: 'worker', name: 'md', replicas: desired.workers }] },
    }
    await this.#persist(async () => {
      try {
        await this.#client.create(Cluster, { metadata: { namespace, name }, spec: { topology } } as never)
      } catch (err) {
        // An earlier attempt created the Cluster, but its response was lost.
        if (!isReason(err, 'AlreadyExists')) throw err
      }
    })
    this.#desired.set(name, desired)
  }

  async #patch(name: string, change: Partial<DesiredState>): Promise<void> {
    const desired = { ...this.#desired.get(name)!, ...change }
    const operations = [
      { op: 'replace' as const, path: '/spec/topology/version', value: desired.version },
      { op: 'replace' as const, path: '/spec/topology/workers/machineDeployments/0/replicas', value: desired.workers },
    ]
    await this.#persist(() => this.#client.patch(Cluster, { namespace, name }, { type: 'json', operations }))
    this.#desired.set(name, desired)
  }

  async #remove(name: string): Promise<void> {
    await orAbsent(this.#client.delete(Cluster, { namespace, name }))
  }

  /** Writes ConfigMaps, each with the number of its writes, and records each acknowledged write. */
  async #write(count: number): Promise<void> {
    for (let write = 0; write < count; write++) {
      const name = `written-${Math.floor(this.#random.writes.next() * 50)}`
      const next = (this.#acknowledged.get(name) ?? 0) + 1
      const object = { metadata: { namespace, name }, data: { count: String(next) } }
      await this.#persist(() => this.#client.apply(ConfigMap, object, { fieldManager: 'soak', force: true }))
      this.#acknowledged.set(name, next)
      this.#writes++
    }
  }

  /**
   * Waits until all clusters have their desired state, at most `Patience` seconds, then checks stored writes, memory and data folder.
   *
   * @returns whether all clusters have reached their desired state
   */
  async #checkState(after: string): Promise<boolean> {
    const started = performance.now()
    let problems = await this.#persist(() => this.#problems())
    while (problems.length > 0 && performance.now() < started + seconds(Patience)) {
      await sleep(1000)
      problems = await this.#persist(() => this.#problems())
    }
    this.#upgraded.clear()
    this.#checks.check(
      `${after}: every cluster has the desired state, with the expected number of objects`,
      problems.length === 0,
      problems.slice(0, 5),
    )
    const { items } = await this.#persist(() => this.#client.list(ConfigMap, { namespace }))
    const counts = new Map(items.map(({ metadata, data }) => [metadata.name, Number(data?.count)]))
    const lost = [...this.#acknowledged].filter(([name, count]) => counts.get(name) !== count)
    this.#checks.check(`${after}: every acknowledged write is stored`, lost.length === 0, lost)
    const settled = performance.now()
    while (this.#server.sizes().memory >= MaxMemory && performance.now() < settled + seconds(MemoryPatience)) await sleep(1000)
    const { memory, stored } = this.#server.sizes()
    this.#checks.check(`${after}: memory is smaller than ${MaxMemory} MB`, memory < MaxMemory, memory)
    this.#checks.check(`${after}: the data folder is smaller than ${MaxStored} MB`, stored < MaxStored, stored)
    const took = ((settled - started) / 1000).toFixed(0)
    const state =
      problems.length === 0
        ? `${this.#desired.size} clusters in their desired state`
        : `${problems.length} differences from the desired state`
    this.#progress(`${after}: ${state} after ${took} s, ${memory.toFixed(0)} MB, ${stored.toFixed(1)} MB stored`)
    return problems.length === 0
  }

  /** Returns the differences from the desired state: clusters and objects that are missing, wrong or superfluous. */
  async #problems(): Promise<string[]> {
    const clusters = (await this.#client.list(Cluster, { namespace })).items
    const machines = (await this.#client.list(Machine, { namespace })).items
    const owned = new Map<string, readonly KubeObject[]>()
    for (const kind of [LocalCluster, LocalControlPlane, LocalMachine, LocalBootstrapConfig] as unknown as Kind[])
      owned.set(kind.kind, (await this.#client.list(kind, { namespace })).items)
    const ofCluster = (objects: readonly KubeObject[], name: string) =>
      objects.filter(({ metadata }) => metadata.labels?.['cluster.x-k8s.io/cluster-name'] === name)
    const problems = clusters
      .filter(({ metadata }) => !this.#desired.has(metadata.name))
      .map(({ metadata }) => `${metadata.name} exists, although it was deleted`)
    for (const [name, { version, workers }] of this.#desired) {
      const cluster = clusters.find(({ metadata }) => metadata.name === name)
      const ownMachines = ofCluster(machines, name) as Machine[]
      if (!cluster) problems.push(`${name} is lost`)
      else if (!isTrue(cluster, 'Available') || !isTrue(cluster, 'TopologyReconciled'))
        problems.push(`${name} is not Available, or not TopologyReconciled`)
      if (cluster?.spec.topology?.version !== version) problems.push(`${name} has lost its version ${version}`)
      const desiredMachines = ownMachines.filter((machine) => machine.spec.version === version && isTrue(machine, 'Available'))
      if (desiredMachines.length !== workers + 1 || ownMachines.length !== workers + 1)
        problems.push(
          `${name} has ${ownMachines.length} Machines, ${desiredMachines.length} of them Available with the desired version, expected ${workers + 1}`,
        )
    }
    const expected = [...this.#desired.values()].reduce((sum, { workers }) => sum + workers + 1, 0)
    for (const [kind, objects] of owned) {
      const count = kind === 'LocalCluster' || kind === 'LocalControlPlane' ? this.#desired.size : expected
      if (objects.length !== count) problems.push(`there are ${objects.length} objects of kind ${kind}, expected ${count}`)
    }
    return problems
  }

  /** Repeats an action until it succeeds, because faults make requests fail. @throws Error after `Patience` seconds */
  async #persist<T>(act: () => Promise<T>): Promise<T> {
    const end = performance.now() + seconds(Patience)
    for (;;) {
      try {
        return await act()
      } catch (err) {
        if (performance.now() > end) throw new Error(`An action failed for ${Patience} s: ${messageOf(err)}`, { cause: err })
        await sleep(200)
      }
    }
  }

  #pause(least: number, most: number): Promise<void> {
    return sleep(seconds(least + this.#random.faults.next() * (most - least)))
  }
}

const oneOf = <T>(list: readonly T[], random: Random): T => list[Math.floor(random.next() * list.length)]!

const sleep = (length: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, length))
