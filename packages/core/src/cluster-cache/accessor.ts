/**
 * Maintains the connection to one workload cluster: opens it when there is a kubeconfig and the server responds, probes it while it lasts,
 * and reopens it after a failure. Each cluster has its own accessor, so an unreachable cluster delays no other cluster. Upstream:
 * controllers/clustercache/cluster_accessor.go; backoff and liveness detection differ, see README.md.
 */
import { type Index, Informer } from '@capstan/controller'
import {
  type Client,
  type Clock,
  createClient,
  isReason,
  keyText,
  type Logger,
  Node,
  type ObjectKey,
  type Random,
  seconds,
  StatusError,
  type Timer,
  watchObjects,
  type WatcherEvent,
} from '@capstan/kube'
import { deadline } from './deadline.ts'

/** Durations in milliseconds; `failuresToDisconnect` is a number of probes. */
export const Timing = {
  /** Time between two probes. A watch event counts as a successful probe. */
  probeInterval: seconds(10),
  probeTimeout: seconds(5),
  /** Time limit for creating the client from the kubeconfig. */
  connectTimeout: seconds(10),
  /** Time limit of a request other than a watch, so that a reconcile does not wait forever for an unresponsive server. */
  requestTimeout: seconds(10),
  /** Time limit for the first list of Nodes, including retries of the request. */
  syncTimeout: seconds(60),
  /** Delay after the first failed connection attempt, without jitter. Doubles with every further failed attempt, up to `slowestRetry`. */
  firstRetry: 200,
  slowestRetry: seconds(10),
  /** Failed connection attempts within this time count as one failure. Upstream makes one attempt in this time. */
  failureInterval: seconds(30),
  /** Consecutive failed probes after which the connection is closed and reopened. */
  failuresToDisconnect: 5,
} as const

/**
 * Liveness of a cluster. Times are milliseconds since the Unix epoch; `undefined` before the first probe or the first success, respectively.
 * Connection attempts and watch events also set these times.
 */
export interface Health {
  readonly lastProbe: number | undefined
  readonly lastProbeSuccess: number | undefined
  /**
   * Failures since the last success: each failed probe, the first failed connection attempt, and one for each further 30 s of failed
   * attempts.
   */
  readonly consecutiveFailures: number
}

/**
 * Returns whether probes have failed continuously for longer than `period` milliseconds, counted from the last success, or from `since` if
 * that is later and not in the future. Without a success and without `since`, the first failure is enough. Upstream compares the time alone;
 * here at least one probe or connection attempt must have failed, because otherwise this process itself may have been suspended or
 * overloaded.
 */
export const failsForLonger = (
  { lastProbeSuccess = 0, consecutiveFailures }: Health,
  period: number,
  { now, since = 0 }: { readonly now: number; readonly since?: number },
): boolean => consecutiveFailures > 0 && now - Math.max(lastProbeSuccess, since > now ? 0 : since) > period

/** Stands for the kubeconfig of a cluster whose kubeconfig Secret does not exist or has no `value`. Attempts to connect with it fail. */
export const MissingKubeconfig = ''

/** A connected workload cluster. Nodes come from one watch that all controllers share. */
export interface WorkloadCluster {
  readonly client: Client
  node(name: string): Node | undefined
  nodesByProviderID(providerID: string): readonly Node[]
}

/** A moment by `Clock.now` and by `Clock.elapsed`. Setting the clock changes only the former. */
interface Moment {
  readonly at: number
  readonly elapsed: number
}

export type AccessorEvent =
  | { readonly kind: 'connected' | 'disconnected' | 'probe-failed' | 'probe-recovered' }
  | { readonly kind: 'node'; readonly node: Node; readonly previous: Node | undefined }

export interface AccessorOptions {
  /** Creates a client from a kubeconfig, without contacting the server yet. */
  readonly connect: (kubeconfig: string, cluster: ObjectKey) => Promise<Client>
  /** Probes the server; rejects when it does not respond. */
  readonly probe: (client: Client, signal: AbortSignal) => Promise<void>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const byProviderID: Index<Node> = {
  name: 'spec.providerID',
  kind: Node,
  values: ({ spec }) => (spec?.providerID ? [spec.providerID] : []),
}

export class ClusterAccessor {
  readonly #cluster: ObjectKey
  readonly #options: AccessorOptions
  readonly #report: (event: AccessorEvent) => void
  #kubeconfig: string | undefined
  /** Aborts everything that belongs to the current connection, or to the current attempt to connect. */
  #session = new AbortController()
  #timer: Timer | undefined
  #connection: WorkloadCluster | undefined
  #lastProbe: Moment | undefined
  #lastProbeSuccess: Moment | undefined
  #consecutiveFailures = 0
  #attempts = 0
  /** Time of the first failed connection attempt since the last success, by `Clock.elapsed`, and the failures counted since then. */
  #failedAttempts: { readonly since: number; readonly counted: number } | undefined

  constructor(cluster: ObjectKey, options: AccessorOptions, report: (event: AccessorEvent) => void) {
    this.#cluster = cluster
    this.#options = { ...options, log: options.log.child({ Cluster: keyText(cluster) }) }
    this.#report = report
  }

  get connection(): WorkloadCluster | undefined {
    return this.#connection
  }

  get health(): Health {
    return {
      lastProbe: this.#timeOf(this.#lastProbe),
      lastProbeSuccess: this.#timeOf(this.#lastProbeSuccess),
      consecutiveFailures: this.#consecutiveFailures,
    }
  }

  /** Sets the kubeconfig to connect with; `undefined` disconnects without further attempts. Does nothing if the kubeconfig has not changed. */
  setKubeconfig(kubeconfig: string | undefined): void {
    if (kubeconfig === this.#kubeconfig) return
    this.#kubeconfig = kubeconfig
    this.#attempts = 0
    this.#restart(kubeconfig === undefined ? 'it is not needed any more' : 'its kubeconfig has changed')
  }

  close(): void {
    this.setKubeconfig(undefined)
  }

  #restart(reason: string): void {
    this.#disconnect(reason)
    if (this.#kubeconfig !== undefined) void this.#connect(this.#kubeconfig, this.#session.signal)
  }

  #disconnect(reason: string): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#session.abort(new StatusError('ServiceUnavailable', `the connection was closed because ${reason}`))
    this.#session = new AbortController()
    if (!this.#connection) return
    this.#connection.client.transport.close()
    this.#connection = undefined
    this.#options.log.info('Disconnected from workload cluster', { reason })
    this.#report({ kind: 'disconnected' })
  }

  async #connect(kubeconfig: string, signal: AbortSignal): Promise<void> {
    const { clock, connect, log } = this.#options
    try {
      if (kubeconfig === MissingKubeconfig) throw new Error('its kubeconfig does not exist')
      const untimedClient = await deadline(
        clock,
        Timing.connectTimeout,
        'connecting',
        signal,
        () => connect(kubeconfig, this.#cluster),
        (late) => late.transport.close(),
      )
      const client = withTimeLimit(untimedClient, clock, signal)
      signal.addEventListener('abort', () => client.transport.close(), { once: true })
      await this.#probeOnce(client, signal)
      const nodes = await this.#watchNodes(client, signal)
      if (signal.aborted) return
      this.#attempts = 0
      this.#connection = connectionFrom(client, nodes)
      log.info('Connected to workload cluster')
      this.#recordSuccess()
      this.#report({ kind: 'connected' })
      nodes.subscribe(({ object, previous }) => {
        const node = object ?? previous
        if (node && !signal.aborted) this.#report({ kind: 'node', node: node as Node, previous: previous as Node | undefined })
      })
      this.#probeLater(client, signal, Timing.probeInterval)
    } catch (err) {
      if (signal.aborted) return
      if (this.#attempts === 0) log.info('Waiting for workload cluster', { err })
      else log.debug('Cannot connect to workload cluster', { err, attempts: this.#attempts })
      // Also ends the watch of Nodes, if the attempt has started it.
      this.#disconnect('it could not be completed')
      this.#recordFailedAttempt()
      this.#timer = clock.schedule(this.#backoff(), () => this.#restart('another attempt begins'))
    }
  }

  /** Returns the delay before the next attempt. It doubles up to a limit; jitter prevents clusters from reconnecting at the same time. */
  #backoff(): number {
    const ms = Math.min(Timing.slowestRetry, Timing.firstRetry * 2 ** this.#attempts++)
    return ms * (0.75 + this.#options.random.next() / 2)
  }

  async #watchNodes(client: Client, signal: AbortSignal): Promise<Informer> {
    const { clock, random, log } = this.#options
    const informer = new Informer(Node)
    const events = watchObjects(client, Node, { clock, random, log, signal })
    const following = informer.follow(withoutUnreadFields(this.#recordEvents(events)))
    await deadline(clock, Timing.syncTimeout, 'listing Nodes', signal, () =>
      Promise.race([
        informer.synced,
        following.then(() => Promise.reject(new StatusError('ServiceUnavailable', 'the watch of Nodes ended'))),
      ]),
    )
    return informer
  }

  /** Records each watch event as a successful probe, since it shows that the server responds. */
  async *#recordEvents<Event extends WatcherEvent>(events: AsyncIterable<Event>): AsyncIterable<Event> {
    for await (const event of events) {
      if (this.#connection) this.#recordSuccess()
      yield event
    }
  }

  #probeLater(client: Client, signal: AbortSignal, after: number): void {
    this.#timer = this.#options.clock.schedule(after, () => void this.#probe(client, signal))
  }

  async #probe(client: Client, signal: AbortSignal): Promise<void> {
    const elapsedSinceSuccess = this.#options.clock.elapsed() - this.#lastProbeSuccess!.elapsed
    if (this.#consecutiveFailures === 0 && elapsedSinceSuccess < Timing.probeInterval) {
      return this.#probeLater(client, signal, Timing.probeInterval - elapsedSinceSuccess)
    }
    try {
      await this.#probeOnce(client, signal)
      this.#recordSuccess()
    } catch (err) {
      if (signal.aborted) return
      this.#recordFailure()
      this.#options.log.debug('Probe of workload cluster failed', { err, failures: this.#consecutiveFailures })
      if (isReason(err, 'Unauthorized')) return this.#restart('its credentials are no longer accepted')
      if (this.#consecutiveFailures >= Timing.failuresToDisconnect) return this.#restart('the server is unresponsive')
    }
    if (!signal.aborted) this.#probeLater(client, signal, Timing.probeInterval)
  }

  async #probeOnce(client: Client, signal: AbortSignal): Promise<void> {
    const { clock, probe } = this.#options
    await deadline(clock, Timing.probeTimeout, 'the probe', signal, (inner) => probe(client, inner))
  }

  #recordSuccess(): void {
    this.#failedAttempts = undefined
    const recovered = this.#consecutiveFailures > 0
    this.#lastProbe = this.#lastProbeSuccess = this.#moment()
    this.#consecutiveFailures = 0
    if (recovered) this.#report({ kind: 'probe-recovered' })
  }

  #recordFailedAttempt(): void {
    const now = this.#options.clock.elapsed()
    const { since, counted } = this.#failedAttempts ?? { since: now, counted: 0 }
    const due = 1 + Math.floor((now - since) / Timing.failureInterval)
    this.#failedAttempts = { since, counted: due }
    this.#recordFailure(due - counted)
  }

  #recordFailure(times = 1): void {
    this.#lastProbe = this.#moment()
    this.#consecutiveFailures += times
    this.#report({ kind: 'probe-failed' })
  }

  #moment(): Moment {
    const { clock } = this.#options
    return { at: clock.now(), elapsed: clock.elapsed() }
  }

  /**
   * Returns the time of a recorded moment. If the clock was set since then, converts the recorded time to the new clock time. A difference
   * of less than two seconds is ignored, so that rounding does not change the returned time.
   */
  #timeOf(moment: Moment | undefined): number | undefined {
    if (!moment) return undefined
    const { at, elapsed } = this.#moment()
    const byClock = at - (elapsed - moment.elapsed)
    return Math.abs(byClock - moment.at) < seconds(2) ? moment.at : byClock
  }
}

/** Makes a client whose requests, except watches, have a time limit and end with the session. */
function withTimeLimit({ transport }: Client, clock: Clock, session: AbortSignal): Client {
  return createClient({
    watch: (request, signal) => transport.watch(request, signal),
    close: () => transport.close(),
    send: (request, signal) =>
      deadline(clock, Timing.requestTimeout, 'the request', signal ? AbortSignal.any([session, signal]) : session, (inner) =>
        transport.send(request, inner),
      ),
  })
}

/** Removes `metadata.managedFields` and `status.images` from Nodes: no controller reads them, and they are most of a Node's size. */
async function* withoutUnreadFields(events: AsyncIterable<WatcherEvent<Node>>): AsyncIterable<WatcherEvent<Node>> {
  for await (const event of events) {
    if (event.kind === 'replaced') yield { ...event, objects: event.objects.map(withoutUnread) }
    else if (event.kind === 'applied' || event.kind === 'deleted') yield { ...event, object: withoutUnread(event.object) }
    else yield event
  }
}

function withoutUnread(node: Node): Node {
  const { managedFields: _managedFields, ...metadata } = node.metadata
  if (!node.status) return { ...node, metadata }
  const { images: _images, ...status } = node.status as Node['status'] & { readonly images?: unknown }
  return { ...node, metadata, status }
}

const connectionFrom = (client: Client, informer: Informer): WorkloadCluster => ({
  client,
  node: (name) => informer.get({ name }) as Node | undefined,
  nodesByProviderID: (providerID) => informer.byIndex(byProviderID, providerID),
})
