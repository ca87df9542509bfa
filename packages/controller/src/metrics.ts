/** Metrics of a manager, under controller-runtime's names, so that existing dashboards and alerts work. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export type PassResult = 'success' | 'error' | 'requeue_after'

export interface ControllerMetrics {
  readonly registry: Registry
  pass(controller: string, result: PassResult, durationMs: number): void
}

export function createMetrics(): ControllerMetrics {
  const registry = new Registry()
  const registers = [registry]
  const passes = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Passes per controller and result',
    labelNames: ['controller', 'result'],
    registers,
  })
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Passes per controller that failed',
    labelNames: ['controller'],
    registers,
  })
  const duration = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long passes take, per controller',
    labelNames: ['controller'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30, 60],
    registers,
  })
  return {
    registry,
    pass(controller, result, durationMs) {
      passes.inc({ controller, result })
      if (result === 'error') errors.inc({ controller })
      duration.observe({ controller }, durationMs / 1000)
    },
  }
}

/** Registers a gauge that is read at each scrape, such as the depth of a queue. */
export function registerGauge(
  metrics: ControllerMetrics,
  name: string,
  help: string,
  read: () => Iterable<readonly [string, number]>,
): void {
  new Gauge({
    name,
    help,
    labelNames: ['controller'],
    registers: [metrics.registry],
    collect() {
      for (const [controller, value] of read()) this.set({ controller }, value)
    },
  })
}

/** Registers the gauge that shows whether this manager leads, under client-go's name. */
export function registerMasterStatus(metrics: ControllerMetrics, name: string, leads: () => boolean): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: '1 while this manager holds the Lease, 0 while it waits for it',
    labelNames: ['name'],
    registers: [metrics.registry],
    collect() {
      this.set({ name }, leads() ? 1 : 0)
    },
  })
}
