/** Environment of a scenario: its own namespace, a recording of the namespace, and waits with time limits. */
import {
  Cluster,
  IPAddress,
  IPAddressClaim,
  Machine,
  MachineDeployment,
  MachinePool,
  MachineSet,
  PausedAnnotation,
} from '@capstan/api'
import type { ContractVersion } from '@capstan/api/contract'
import {
  type Client,
  type Clock,
  type DeleteOptions,
  type Input,
  isReason,
  type Kind,
  keyOf,
  type KubeObject,
  messageOf,
  Namespace,
  orAbsent,
  type Random,
  Secret,
  seconds,
  sleep,
  type UnknownObject,
} from '@capstan/kube'
import type { ContractName } from '../manifests.ts'
import { type Moment, Recording } from './recording.ts'
import { stubs } from './stubs.ts'
import type { PoolKind, Target } from './target.ts'

/** Time limits in milliseconds. */
export interface Limits {
  /** Maximum duration of each wait for a condition. Some waits have a shorter time limit. */
  readonly wait: number
  /**
   * Duration of waits without a condition, for example to show that the provider does not change a paused object. Also the maximum time until
   * the recording is current.
   */
  readonly quiet: number
}

export const defaultLimits: Limits = { wait: seconds(180), quiet: seconds(5) }

export interface Versions {
  /** Version with which control planes and Machines are created. */
  readonly kubernetes: string
  /** Version to which scenarios upgrade. */
  readonly upgradeTo: string
}

export interface BenchOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly target: Target
  /** Kind of the address pools under test, if any. */
  readonly pool?: PoolKind
  readonly limits: Limits
  readonly versions: Versions
  /** Restarts the provider. If absent, restarts cannot be tested. */
  readonly restart?: () => Promise<void>
  readonly signal: AbortSignal
  progress(line: string): void
}

/** An object of the provider, read in one of its API versions. */
export interface Snapshot {
  readonly contract: ContractName
  readonly contractVersion: ContractVersion
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  readonly object: UnknownObject
}

/** Record of a scenario, for the checks. */
export interface ScenarioRecord {
  readonly target: Target
  readonly pool: PoolKind | undefined
  readonly versions: Versions
  readonly limits: Limits
  readonly recording: Recording
  /** Moments of the scenario at which checks read the recording, by name, such as `ready`. */
  readonly marks: ReadonlyMap<string, Moment>
  readonly snapshots: readonly Snapshot[]
  /** Results of single requests, by name. */
  readonly requestResults: ReadonlyMap<string, RequestResult>
  /** Reason why the scenario ended before its last step. */
  readonly stopped: string | undefined
}

export interface RequestResult {
  /** End of the request, in milliseconds since the Unix epoch. */
  readonly at: number
  readonly object: KubeObject
  /** Error message of the request or of the check of its response; `undefined` without an error. */
  readonly error: string | undefined
}

/** Error for a scenario that cannot continue. */
export class ScenarioStopped extends Error {
  override readonly name = 'ScenarioStopped'
}

/** The environment of one scenario, and the record of the scenario. */
export class Bench implements ScenarioRecord {
  readonly client: Client
  readonly target: Target
  readonly pool: PoolKind | undefined
  readonly versions: Versions
  readonly limits: Limits
  readonly namespace: string
  readonly recording: Recording
  readonly marks = new Map<string, Moment>()
  readonly snapshots: Snapshot[] = []
  readonly requestResults = new Map<string, RequestResult>()
  readonly restart: (() => Promise<void>) | undefined
  stopped: string | undefined
  readonly #options: BenchOptions
  /** Aborted when the scenario has ended: ends the recording. */
  readonly #ended = new AbortController()

  constructor(options: BenchOptions, namespace: string) {
    this.#options = options
    this.client = options.client
    this.target = options.target
    this.pool = options.pool
    this.versions = options.versions
    this.limits = options.limits
    this.restart = options.restart
    this.namespace = namespace
    this.recording = new Recording(options)
  }

  now(): number {
    return this.#options.clock.now()
  }

  /** Records the current moment under a name, by which checks find the state of objects at that moment. */
  mark(name: string): void {
    this.marks.set(name, this.recording.now())
  }

  /** Creates the namespace and begins to record. */
  async begin(): Promise<void> {
    const { client, clock, random, signal } = this.#options
    await client.create(Namespace, { metadata: { name: this.namespace } }, { signal })
    const kinds: Kind[] = [Cluster, Machine, MachineSet, MachineDeployment, MachinePool, Secret, ...this.targetKinds()]
    if (this.pool) kinds.push(IPAddressClaim, IPAddress, this.pool.kind)
    await this.recording.follow(client, kinds, this.namespace, {
      clock,
      random,
      signal: AbortSignal.any([signal, this.#ended.signal]),
    })
  }

  /** Runs a scenario. If it stops before its last step, records the reason. */
  async run(scenario: (bench: Bench) => Promise<void>): Promise<void> {
    try {
      await this.begin()
      await scenario(this)
    } catch (err) {
      this.#options.signal.throwIfAborted()
      this.stopped = messageOf(err)
      this.mark('stopped')
    }
    this.mark('end')
    // Changes during the cleanup are not part of the scenario.
    this.#ended.abort()
  }

  async create<T extends KubeObject>(kind: Kind<T>, object: Input<T>): Promise<T> {
    return this.client.create(
      kind,
      { ...object, metadata: { ...object.metadata, ...this.#scopeOf(kind) } },
      { signal: this.#options.signal },
    )
  }

  async patch<T extends KubeObject>(kind: Kind<T>, name: string, body: object, subresource?: 'status'): Promise<T> {
    const options = { signal: this.#options.signal, ...(subresource ? { subresource } : {}) }
    return this.client.patch(kind, { ...this.#scopeOf(kind), name }, { type: 'merge', body }, options)
  }

  async delete(kind: Kind, name: string, options: DeleteOptions = {}): Promise<void> {
    await orAbsent(this.client.delete(kind, { ...this.#scopeOf(kind), name }, { ...options, signal: this.#options.signal }))
  }

  /** The namespace, for kinds that have one. */
  #scopeOf(kind: Kind): { namespace?: string } {
    return kind.scope === 'Cluster' ? {} : { namespace: this.namespace }
  }

  /** Sends a request and records its result for a check. */
  async send(name: string, object: KubeObject, request: () => Promise<unknown>): Promise<void> {
    let error: string | undefined
    try {
      await request()
    } catch (err) {
      this.#options.signal.throwIfAborted()
      error = messageOf(err)
    }
    this.requestResults.set(name, { at: this.now(), object, error })
  }

  /** Records the objects of the provider as read in each API version that implements a contract. */
  async snapshot(): Promise<void> {
    for (const contractTarget of Object.values(this.target)) {
      for (const { contractVersion, kind } of contractTarget.claims) {
        const { items } = await this.client.list(kind, { namespace: this.namespace, signal: this.#options.signal })
        for (const object of items) {
          this.snapshots.push({
            contract: contractTarget.contract,
            contractVersion,
            at: this.now(),
            // Items of lists may lack apiVersion and kind.
            object: { ...object, apiVersion: `${kind.group}/${kind.version}`, kind: kind.kind },
          })
        }
      }
    }
  }

  /**
   * Waits until a condition is true, and then, at most `limits.quiet`, until the recording is current.
   *
   * @throws ScenarioStopped if the condition is not true after `limits.wait`
   */
  async until(condition: string, isTrue: () => boolean): Promise<void> {
    const deadline = this.now() + this.limits.wait
    this.#options.progress(`${this.namespace}: waiting until ${condition}`)
    while (!isTrue()) {
      const remaining = deadline - this.now()
      if (remaining <= 0) throw new ScenarioStopped(`waited ${this.limits.wait / 1000} s until ${condition}`)
      await this.#nextChangeWithin(remaining)
    }
    await this.#catchUp()
  }

  /**
   * Waits until a condition is true or `deadline` (milliseconds since the Unix epoch) has passed, and then, at most `limits.quiet`, until the
   * recording is current. A check evaluates the result.
   */
  async untilOrDeadline(condition: string, deadline: number, isTrue: () => boolean): Promise<void> {
    this.#options.progress(`${this.namespace}: waiting until ${condition}`)
    while (!isTrue() && this.now() < deadline) await this.#nextChangeWithin(deadline - this.now())
    await this.#catchUp()
  }

  /**
   * Waits, at most `limits.quiet`, until the recording contains the current state of all objects. Each kind has its own watch: after a change
   * of one kind has arrived, an earlier change of another kind may still be on its way.
   */
  async #catchUp(): Promise<void> {
    const deadline = this.now() + this.limits.quiet
    // A failed list request is repeated after the next change.
    const isCurrent = () => this.recording.isCurrent().catch(() => false)
    while (!(await isCurrent()) && this.now() < deadline) await this.#nextChangeWithin(deadline - this.now())
  }

  /** Waits for `limits.quiet`, for example to show that a paused object does not change. */
  async quiet(): Promise<void> {
    await sleep(this.#options.clock, this.limits.quiet, this.#options.signal)
  }

  /** Deletes the objects and the namespace of the scenario, and ends the recording. @returns objects whose finalizers had to be removed */
  async close(): Promise<string[]> {
    // Objects are deleted even if the run was interrupted.
    const signal = AbortSignal.timeout(seconds(120))
    try {
      await this.#unpause(signal)
      const stuckAddresses = await this.#removeAddresses(signal)
      await this.#removeAll(Cluster, signal)
      const kinds: Kind[] = [Machine, MachinePool, ...this.targetKinds()]
      for (const kind of kinds) await this.#removeAll(kind, signal)
      const stuckObjects = await this.#release([Cluster, MachineDeployment, MachineSet, ...kinds], signal)
      await orAbsent(this.client.delete(Namespace, { name: this.namespace }, { signal }))
      return [...stuckAddresses, ...stuckObjects]
    } finally {
      this.#ended.abort()
    }
  }

  /**
   * Returns the kinds under test, and the stub kinds for a control plane or bootstrap config that is not under test. Empty if
   * only an IPAM provider is under test.
   */
  targetKinds(): Kind<UnknownObject>[] {
    if (!this.target.InfraCluster) return []
    return [
      ...Object.values(this.target).map(({ kind }) => kind),
      ...(this.target.ControlPlane ? [] : [stubs[0]!]),
      ...(this.target.BootstrapConfig ? [] : [stubs[1]!]),
    ]
  }

  /** Unpauses objects, because controllers do not delete paused ones. */
  async #unpause(signal: AbortSignal): Promise<void> {
    const { namespace } = this
    for (const kind of [Cluster, ...this.targetKinds(), ...(this.pool ? [IPAddressClaim] : [])] as Kind[]) {
      for (const object of (await this.client.list(kind, { namespace, signal })).items) {
        const body = {
          ...(kind === (Cluster as Kind) ? { spec: { paused: null } } : {}),
          metadata: { annotations: { [PausedAnnotation]: null } },
        }
        await orAbsent(this.client.patch(kind, keyOf(object), { type: 'merge', body }, { signal }))
      }
    }
  }

  /** Deletes claims, then the pool: providers release an address only while its Cluster and its pool exist. */
  async #removeAddresses(signal: AbortSignal): Promise<string[]> {
    if (!this.pool) return []
    const { kind } = this.pool
    await this.#removeAll(IPAddressClaim, signal)
    const stuckAddresses = await this.#release([IPAddressClaim, IPAddress], signal)
    await orAbsent(this.client.delete(kind, { ...this.#scopeOf(kind), name: this.namespace }, { signal }))
    return [...stuckAddresses, ...(await this.#release([kind], signal))]
  }

  async #removeAll(kind: Kind, signal: AbortSignal): Promise<void> {
    await this.client.deleteCollection(kind, { namespace: this.namespace }, { signal })
  }

  /** Waits for controllers to remove their finalizers, then removes the remaining finalizers until all objects are deleted. */
  async #release(kinds: readonly Kind[], signal: AbortSignal): Promise<string[]> {
    const { clock, limits } = this.#options
    const deadline = clock.now() + Math.min(limits.wait, seconds(60))
    const released = new Set<string>()
    for (;;) {
      const remaining = await this.#remainingObjects(kinds, signal)
      if (remaining.length === 0) return [...released]
      if (clock.now() >= deadline) {
        for (const { kind, object } of remaining) {
          released.add(`${kind.kind} ${this.namespace}/${object.metadata.name}`)
          await this.#removeFinalizers(kind, object, signal)
        }
      }
      await sleep(clock, 1000)
    }
  }

  async #removeFinalizers(kind: Kind, object: KubeObject, signal: AbortSignal): Promise<void> {
    await orAbsent(this.client.delete(kind, keyOf(object), { signal }))
    const body = { metadata: { finalizers: null } }
    await orAbsent(this.client.patch(kind, keyOf(object), { type: 'merge', body }, { signal }))
  }

  async #remainingObjects(kinds: readonly Kind[], signal: AbortSignal): Promise<{ kind: Kind; object: KubeObject }[]> {
    const lists = await Promise.all(
      kinds.map(async (kind) => {
        try {
          const { items } = await this.client.list(kind, { ...this.#scopeOf(kind), signal })
          // Of a cluster-scoped kind of pools, only the pool with the name of the namespace belongs to this scenario.
          return items
            .filter(({ metadata }) => kind.scope !== 'Cluster' || metadata.name === this.namespace)
            .map((object) => ({ kind, object }))
        } catch (err) {
          if (isReason(err, 'NotFound')) return []
          throw err
        }
      }),
    )
    return lists.flat()
  }

  async #nextChangeWithin(ms: number): Promise<void> {
    const { clock, signal } = this.#options
    const waitEnd = new AbortController()
    const abort = () => waitEnd.abort(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      signal.throwIfAborted()
      await Promise.race([this.recording.changed, sleep(clock, ms, waitEnd.signal)])
    } finally {
      signal.removeEventListener('abort', abort)
      // Stops the timer, whose promise is no longer awaited.
      waitEnd.abort(new ScenarioStopped('no longer waiting'))
    }
  }
}
