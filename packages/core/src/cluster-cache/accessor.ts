/**
 * The connection to one workload cluster: made when there is a kubeconfig and the server answers, watched over while it lasts,
 * made anew when it is lost. Each runs on its own, so one that cannot be reached holds up no other.
 * Upstream: controllers/clustercache/cluster_accessor.go; backoff and signs of life differ, see README.md.
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

export const Timing = {
  /** Between two probes of a cluster that shows no other sign of life. */
  probeInterval: seconds(10),
  probeTimeout: seconds(5),
  connectTimeout: seconds(10),
  /** For any one request, so that a pass that meets a silent server does not wait for ever. */
  requestTimeout: seconds(10),
  syncTimeout: seconds(60),
  firstRetry: 200,
  slowestRetry: seconds(10),
  /** Failed probes in a row after which the connection is given up and made anew. */
  failuresToDisconnect: 5,
} as const

/** What is known of a cluster's liveness. Times are milliseconds since the Unix epoch. */
export interface Health {
  readonly lastProbe: number | undefined
  readonly lastProbeSuccess: number | undefined
  /** Failed probes and connection attempts since the last success. */
  readonly consecutiveFailures: number
}

/**
 * Whether probes have failed, and only failed, for longer than that; counted from `since` if that was later than the last success.
 * Upstream looks at the time alone. Long silence without a probe that failed is ours: this process stood still, or had too much to do.
 */
export const failsForLonger = (
  { lastProbeSuccess = 0, consecutiveFailures }: Health,
  than: number,
  { now, since = 0 }: { readonly now: number; readonly since?: number },
): boolean => consecutiveFailures > 0 && now - Math.max(lastProbeSuccess, since) > than

/** A connected workload cluster. Nodes come from one watch that all controllers share. */
export interface WorkloadCluster {
  readonly client: Client
  node(name: string): Node | undefined
  nodesByProviderID(providerID: string): readonly Node[]
}

export type AccessorEvent =
  | { readonly kind: 'connected' | 'disconnected' | 'probe-failed' | 'probe-recovered' }
  | { readonly kind: 'node'; readonly node: Node; readonly previous: Node | undefined }

export interface AccessorOptions {
  /** Makes a client from a kubeconfig. It need not talk to the server yet. */
  readonly connect: (kubeconfig: string, cluster: ObjectKey) => Promise<Client>
  /** Asks the server for a sign of life; rejects when there is none. */
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
  readonly #tell: (event: AccessorEvent) => void
  #kubeconfig: string | undefined
  /** Ends whatever the present kubeconfig has started. */
  #session = new AbortController()
  #timer: Timer | undefined
  #connection: WorkloadCluster | undefined
  #health: Health = { lastProbe: undefined, lastProbeSuccess: undefined, consecutiveFailures: 0 }
  #attempts = 0

  constructor(cluster: ObjectKey, options: AccessorOptions, tell: (event: AccessorEvent) => void) {
    this.#cluster = cluster
    this.#options = { ...options, log: options.log.child({ Cluster: keyText(cluster) }) }
    this.#tell = tell
  }

  get connection(): WorkloadCluster | undefined {
    return this.#connection
  }

  get health(): Health {
    return this.#health
  }

  /** Connects by this kubeconfig from now on, or not at all. The one in use already changes nothing. */
  want(kubeconfig: string | undefined): void {
    if (kubeconfig === this.#kubeconfig) return
    this.#kubeconfig = kubeconfig
    this.#attempts = 0
    this.#restart('its kubeconfig has changed')
  }

  close(): void {
    this.want(undefined)
  }

  #restart(why: string): void {
    this.#end(why)
    if (this.#kubeconfig !== undefined) void this.#connect(this.#kubeconfig, this.#session.signal)
  }

  #end(why: string): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#session.abort(new StatusError('ServiceUnavailable', `the connection was closed because ${why}`))
    this.#session = new AbortController()
    if (!this.#connection) return
    this.#connection.client.transport.close()
    this.#connection = undefined
    this.#options.log.info('Disconnected from workload cluster', { reason: why })
    this.#tell({ kind: 'disconnected' })
  }

  async #connect(kubeconfig: string, signal: AbortSignal): Promise<void> {
    const { clock, connect, log } = this.#options
    try {
      const made = await deadline(
        clock,
        Timing.connectTimeout,
        'connecting',
        signal,
        () => connect(kubeconfig, this.#cluster),
        (late) => late.transport.close(),
      )
      const client = bounded(made, clock, signal)
      signal.addEventListener('abort', () => client.transport.close(), { once: true })
      await this.#probeOnce(client, signal)
      const nodes = await this.#watchNodes(client, signal)
      if (signal.aborted) return
      this.#attempts = 0
      this.#connection = connectionOver(client, nodes)
      log.info('Connected to workload cluster')
      this.#succeeded()
      this.#tell({ kind: 'connected' })
      nodes.subscribe(({ object, previous }) => {
        const node = object ?? previous
        if (node && !signal.aborted) this.#tell({ kind: 'node', node: node as Node, previous: previous as Node | undefined })
      })
      this.#probeLater(client, signal, Timing.probeInterval)
    } catch (err) {
      if (signal.aborted) return
      if (this.#attempts === 0) log.info('Waiting for workload cluster', { err })
      else log.debug('Cannot connect to workload cluster', { err, attempts: this.#attempts })
      // What the attempt has started, such as the watch of Nodes, ends with it.
      this.#end('it could not be completed')
      this.#failed()
      this.#timer = clock.schedule(this.#backoff(), () => this.#restart('it is made anew'))
    }
  }

  /** Doubles from attempt to attempt, and spreads clusters that failed together. */
  #backoff(): number {
    const ms = Math.min(Timing.slowestRetry, Timing.firstRetry * 2 ** this.#attempts++)
    return ms * (0.75 + this.#options.random.next() / 2)
  }

  async #watchNodes(client: Client, signal: AbortSignal): Promise<Informer> {
    const { clock, random, log } = this.#options
    const informer = new Informer(Node)
    const events = watchObjects(client, Node, { clock, random, log, signal })
    const ended = informer.follow(this.#listening(events))
    await deadline(clock, Timing.syncTimeout, 'listing Nodes', signal, () =>
      Promise.race([
        informer.synced,
        ended.then(() => Promise.reject(new StatusError('ServiceUnavailable', 'the watch of Nodes ended'))),
      ]),
    )
    return informer
  }

  /** What the watch brings is a sign of life, as good as a probe. */
  async *#listening<Event extends WatcherEvent>(events: AsyncIterable<Event>): AsyncIterable<Event> {
    for await (const event of events) {
      if (this.#connection) this.#succeeded()
      yield event
    }
  }

  #probeLater(client: Client, signal: AbortSignal, after: number): void {
    this.#timer = this.#options.clock.schedule(after, () => void this.#probe(client, signal))
  }

  async #probe(client: Client, signal: AbortSignal): Promise<void> {
    const quietFor = this.#options.clock.now() - (this.#health.lastProbeSuccess ?? 0)
    if (this.#health.consecutiveFailures === 0 && quietFor < Timing.probeInterval) {
      return this.#probeLater(client, signal, Timing.probeInterval - quietFor)
    }
    try {
      await this.#probeOnce(client, signal)
      this.#succeeded()
    } catch (err) {
      if (signal.aborted) return
      this.#failed()
      this.#options.log.debug('Probe of workload cluster failed', { err, failures: this.#health.consecutiveFailures })
      if (isReason(err, 'Unauthorized')) return this.#restart('its credentials are no longer accepted')
      if (this.#health.consecutiveFailures >= Timing.failuresToDisconnect) return this.#restart('it does not answer')
    }
    if (!signal.aborted) this.#probeLater(client, signal, Timing.probeInterval)
  }

  async #probeOnce(client: Client, signal: AbortSignal): Promise<void> {
    const { clock, probe } = this.#options
    await deadline(clock, Timing.probeTimeout, 'the probe', signal, (inner) => probe(client, inner))
  }

  #succeeded(): void {
    const now = this.#options.clock.now()
    const recovered = this.#health.consecutiveFailures > 0
    this.#health = { lastProbe: now, lastProbeSuccess: now, consecutiveFailures: 0 }
    if (recovered) this.#tell({ kind: 'probe-recovered' })
  }

  #failed(): void {
    this.#health = {
      ...this.#health,
      lastProbe: this.#options.clock.now(),
      consecutiveFailures: this.#health.consecutiveFailures + 1,
    }
    this.#tell({ kind: 'probe-failed' })
  }
}

/** A client whose requests, watches aside, take a limited time, and end with the session. */
function bounded({ transport }: Client, clock: Clock, session: AbortSignal): Client {
  return createClient({
    watch: (request, signal) => transport.watch(request, signal),
    close: () => transport.close(),
    send: (request, signal) =>
      deadline(clock, Timing.requestTimeout, 'the request', signal ? AbortSignal.any([session, signal]) : session, (inner) =>
        transport.send(request, inner),
      ),
  })
}

const connectionOver = (client: Client, informer: Informer): WorkloadCluster => ({
  client,
  node: (name) => informer.get({ name }) as Node | undefined,
  nodesByProviderID: (providerID) => informer.byIndex(byProviderID, providerID),
})
