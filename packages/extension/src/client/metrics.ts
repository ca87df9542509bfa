/**
 * Metrics of calls: upstream's metrics with the same names and labels, and additional metrics. Upstream: internal/runtime/metrics,
 * v1.14.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { BreakerState } from './breaker.ts'
import type { CallObserver, ObservedCall } from './observed-call.ts'

const hookLabels = ['group', 'version', 'hook'] as const

/** Registers the metrics and returns the observer that counts calls, including discovery. Responses that core has cached are not counted. */
export function callMetrics(registry: Registry): CallObserver {
  const requests = new Counter({
    name: 'capi_runtime_sdk_requests_total',
    help: 'Calls of extension servers, by HTTP status and status of the response.',
    labelNames: ['code', 'host', ...hookLabels, 'status'],
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'capi_runtime_sdk_request_duration_seconds',
    help: 'Duration of calls of extension servers.',
    labelNames: ['host', ...hookLabels],
    buckets: [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60],
    registers: [registry],
  })
  const handlerRequests = new Counter({
    name: 'capstan_runtime_sdk_handler_requests_total',
    help: 'Calls by handler, registered hook version and outcome.',
    labelNames: ['extension_config', 'handler', 'announced_version', 'hook', 'outcome'],
    registers: [registry],
  })
  const handlerDuration = new Histogram({
    name: 'capstan_runtime_sdk_handler_request_duration_seconds',
    help: 'Duration of calls, by handler.',
    labelNames: ['extension_config', 'handler', 'hook'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30],
    registers: [registry],
  })
  const attemptsTotal = new Counter({
    name: 'capstan_runtime_sdk_handler_attempts_total',
    help: 'Attempts to send a request, by handler. A request that the server has not processed, because the connection ended or the server rejected the stream, may be sent again, which is another attempt.',
    labelNames: ['extension_config', 'handler', 'hook'],
    registers: [registry],
  })
  const deprecated = new Counter({
    name: 'capstan_runtime_sdk_deprecated_requests_total',
    help: 'Calls of handlers that registered for a deprecated version.',
    labelNames: ['extension_config', 'handler', 'announced_version', 'hook'],
    registers: [registry],
  })
  return ({ hook, announcedVersion, isDeprecated, handler = '', extensionConfig, url, took, attempts, code, outcome }) => {
    const labels = { host: url.host, group: hook.group, version: hook.version, hook: hook.name }
    requests.inc({ code: code ?? '<error>', ...labels, status: statusLabel(outcome) })
    duration.observe(labels, took / 1000)
    const handlerLabels = { extension_config: extensionConfig, handler, announced_version: announcedVersion, hook: hook.name }
    attemptsTotal.inc({ extension_config: extensionConfig, handler, hook: hook.name }, attempts)
    handlerDuration.observe({ extension_config: extensionConfig, handler, hook: hook.name }, took / 1000)
    handlerRequests.inc({ ...handlerLabels, outcome: outcome.kind === 'failed' ? outcome.code : statusLabel(outcome) })
    if (isDeprecated) deprecated.inc(handlerLabels)
  }
}

/** Returns the status label. An extension may return any status text, but the number of label values must be limited. */
function statusLabel(outcome: ObservedCall['outcome']): string {
  const status = outcome.kind === 'response' ? outcome.response.status : undefined
  return status === 'Success' || status === 'Failure' ? status : 'Unknown'
}

/** Registers a gauge with the state of all circuit breakers, by handler. The states are read at each scrape. */
export function breakerMetrics(registry: Registry, breakers: ReadonlyMap<string, { readonly state: BreakerState }>): void {
  new Gauge({
    name: 'capstan_runtime_sdk_breaker_state',
    help: 'State of the circuit breaker of each handler: 0 closed, 1 half-open, 2 open.',
    labelNames: ['handler'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [handler, { state }] of breakers) this.set({ handler }, states[state])
    },
  })
}

/** Registers a gauge with the numbers in `unstable`: for each handler, the number of calls that returned an unstable message. */
export function messageMetrics(registry: Registry, unstable: ReadonlyMap<string, number>): void {
  new Gauge({
    name: 'capstan_runtime_sdk_unstable_messages',
    help: 'Calls since registration that returned an unstable message: in five or more consecutive calls for one object, each message differed from the one before.',
    labelNames: ['handler'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [handler, count] of unstable) this.set({ handler }, count)
    },
  })
}

const states: { readonly [state in BreakerState]: number } = { closed: 0, 'half-open': 1, open: 2 }
