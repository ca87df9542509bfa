/**
 * Process and client metrics of a manager, with the names that prom-client and controller-runtime use.
 * Metrics of controllers are in `@capstan/controller`.
 */
import { Counter, collectDefaultMetrics, type Registry } from 'prom-client'

export interface RequestCounter {
  readonly metric: Counter
  readonly count: (method: string, code: string) => void
}

/** Creates the counter of requests to the API server. It can count before a registry exists. */
export function requestCounter(server: string): RequestCounter {
  const { host } = new URL(server)
  const metric = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server by status code, method and host; code `<error>` stands for a request without a response',
    labelNames: ['code', 'method', 'host'],
    registers: [],
  })
  return { metric, count: (method, code) => metric.inc({ code, method, host }) }
}

/** Registers the counter and prom-client's process metrics (`process_…`, `nodejs_…`). */
export function registerProcessMetrics(registry: Registry, { metric }: RequestCounter): void {
  registry.registerMetric(metric)
  collectDefaultMetrics({ register: registry })
}
