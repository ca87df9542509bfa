/**
 * Metrics of a manager, with controller-runtime's names, labels and buckets (v0.24), so that existing dashboards and alerts can be used. Only
 * `capstan_keys_waiting` is a metric of our own. Counters and histograms are updated at each event, gauges are read at each scrape.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export type ReconcileResult = 'success' | 'error' | 'requeue_after'

export interface ControllerMetrics {
  readonly registry: Registry
  /** Records the end of a reconcile. `isTerminal` means that it ended with an error that is not retried. */
  reconciled(controller: string, result: ReconcileResult, durationMs: number, isTerminal: boolean): void
  /** Records a reconcile that has reached its time limit. */
  timedOut(controller: string): void
  queue(controller: string): QueueMetrics
}

/** Receives the events of a work queue. Durations are in milliseconds. */
export interface QueueMetrics {
  added(): void
  /**
   * A key was added with a delay: after a failure, for a later time, or because of the rate limit or a pause after its last
   * run.
   */
  retried(): void
  /** A key was taken from the queue after `waitedMs`. */
  taken(waitedMs: number): void
  done(workedMs: number): void
}

/** State of a controller at a scrape. */
export interface LoopState {
  readonly name: string
  readonly concurrency: number
  readonly activeWorkers: number
  /** Number of keys that are ready, by priority. */
  readonly depth: { readonly normal: number; readonly low: number }
  /** Number of keys whose last reconcile failed or returned a reason to wait. */
  readonly waiting: number
}

/** Priority of keys from lists of all objects and from periodic reconciles. Upstream: controller-runtime's `handler.LowPriority`. */
const LowPriority = '-100'

const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3,
  3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
const queueBuckets = Array.from({ length: 12 }, (_, power) => Number(`1e${power - 8}`))

export function createMetrics(): ControllerMetrics {
  const registry = new Registry()
  const registers = [registry]
  const byController = { labelNames: ['controller'], registers }
  const byQueue = { labelNames: ['name', 'controller'], registers }
  const reconciles = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Reconciles per controller and result',
    labelNames: ['controller', 'result'],
    registers,
  })
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Failed reconciles, per controller',
    ...byController,
  })
  const terminalErrors = new Counter({
    name: 'controller_runtime_terminal_reconcile_errors_total',
    help: 'Reconciles that failed with a terminal error, which is not retried, per controller',
    ...byController,
  })
  const timeouts = new Counter({
    name: 'controller_runtime_reconcile_timeouts_total',
    help: 'Reconciles that exceeded their time limit, per controller',
    ...byController,
  })
  const duration = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long reconciles take, per controller',
    buckets: reconcileBuckets,
    ...byController,
  })
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Keys added to the queue', ...byQueue })
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Keys added with a delay: after a failure, for a later time, because of the rate limit, or because of the pause after a reconcile',
    ...byQueue,
  })
  const waits = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long keys are in the queue before they are taken',
    buckets: queueBuckets,
    ...byQueue,
  })
  const work = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long the work on a key takes',
    buckets: queueBuckets,
    ...byQueue,
  })
  return {
    registry,
    reconciled(controller, result, durationMs, isTerminal) {
      reconciles.inc({ controller, result })
      if (result === 'error') errors.inc({ controller })
      if (isTerminal) terminalErrors.inc({ controller })
      duration.observe({ controller }, durationMs / 1000)
    },
    timedOut: (controller) => timeouts.inc({ controller }),
    queue(controller) {
      const labels = { name: controller, controller }
      const [added, retried, waited, worked] = [adds, retries, waits, work].map((metric) => metric.labels(labels)) as [
        Counter.Internal,
        Counter.Internal,
        Histogram.Internal<string>,
        Histogram.Internal<string>,
      ]
      return {
        added: () => added.inc(),
        retried: () => retried.inc(),
        taken: (waitedMs) => waited.observe(waitedMs / 1000),
        done: (workedMs) => worked.observe(workedMs / 1000),
      }
    },
  }
}

/** Registers the gauges of controllers: concurrency, workers in use, waiting keys and queue depth. */
export function registerLoops({ registry }: ControllerMetrics, read: () => readonly LoopState[]): void {
  const gauge = (name: string, help: string, value: (state: LoopState) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['controller'],
      registers: [registry],
      collect() {
        for (const state of read()) this.set({ controller: state.name }, value(state))
      },
    })
  gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Maximum number of concurrent reconciles, per controller',
    (state) => state.concurrency,
  )
  gauge('controller_runtime_active_workers', 'Workers in use, per controller', (state) => state.activeWorkers)
  gauge('capstan_keys_waiting', 'Keys whose last reconcile failed or waits for something', (state) => state.waiting)
  new Gauge({
    name: 'workqueue_depth',
    help: 'Keys that are ready, by priority: 0, or -100 for those from lists of all objects and from periodic reconciles',
    labelNames: ['name', 'controller', 'priority'],
    registers: [registry],
    collect() {
      for (const { name, depth } of read()) {
        this.set({ name, controller: name, priority: '0' }, depth.normal)
        this.set({ name, controller: name, priority: LowPriority }, depth.low)
      }
    },
  })
}

/** Registers the gauge that shows for each Lease whether this manager holds it, under client-go's name. */
export function registerMasterStatus({ registry }: ControllerMetrics, leases: () => Iterable<readonly [string, boolean]>): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: '1 while this manager holds the Lease, otherwise 0',
    labelNames: ['name'],
    registers: [registry],
    collect() {
      for (const [name, isHeld] of leases()) this.set({ name }, isHeld ? 1 : 0)
    },
  })
}
