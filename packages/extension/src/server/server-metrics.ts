/** Metrics of an extension server. Upstream's extension servers have the metrics of controller-runtime's webhook server instead. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ServedCall } from './server.ts'

/** Registers the metrics of calls and returns the function that records a call. */
export function servedCallMetrics(registry: Registry): (call: ServedCall) => void {
  const requests = new Counter({
    name: 'capstan_extension_requests_total',
    help: 'Calls by handler and outcome.',
    labelNames: ['hook', 'handler', 'status'],
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'capstan_extension_request_duration_seconds',
    help: 'Duration of calls, from the request headers to the response.',
    labelNames: ['hook', 'handler'],
    buckets: [0.001, 0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30],
    registers: [registry],
  })
  return ({ hook, handler, status, took }) => {
    requests.inc({ hook, handler, status })
    duration.observe({ hook, handler }, took / 1000)
  }
}

/** Registers a gauge with the expiry of the serving certificate, for alerts. `expiry` returns milliseconds since the epoch. */
export function certificateMetric(registry: Registry, expiry: () => number): void {
  new Gauge({
    name: 'capstan_extension_certificate_expiry_timestamp_seconds',
    help: 'Expiry of the serving certificate, in seconds since the epoch.',
    registers: [registry],
    collect() {
      this.set(expiry() / 1000)
    },
  })
}
