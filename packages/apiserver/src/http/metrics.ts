/** Metrics of requests and health in the Prometheus text format. Upstream: k8s.io/apiserver/pkg/endpoints/metrics. */
import type { ResourceAttributes } from '../auth/authorizer.ts'
import type { Resource } from '../registry/resource.ts'
import { subresourcesOf } from './discovery/discovery.ts'
import type { HttpResponse } from './exchange.ts'
import { checksOf, type HealthCheck } from './health.ts'
import type { HealthPath } from './route.ts'

export class RequestCounts {
  /**
   * Number of requests for each combination of label values; the key is a JSON array of the values. All values are names and codes that the
   * server knows, so that clients cannot add series without bound.
   */
  readonly #counts = new Map<string, number>()

  /** Counts an authorized request. Upstream counts no requests for subresources that do not exist. */
  add(served: Resource, attributes: ResourceAttributes, dryRunValues: readonly string[], code: number): void {
    const { verb } = attributes
    const { group, version, plural: resource } = served
    const [subresource = ''] = attributes.subresource?.split('/') ?? []
    if (subresource !== '' && !subresourcesOf(served).some((known) => known.name === subresource)) return
    const dryRun = dryRunValues.length === 0 ? '' : dryRunValues.every((value) => value === 'All') ? 'All' : 'invalid'
    const verbName = verbNames[verb] ?? verb.toUpperCase()
    const series = JSON.stringify([String(code), dryRun, group, resource, scopeOf(attributes), subresource, verbName, version])
    this.#counts.set(series, (this.#counts.get(series) ?? 0) + 1)
  }

  text(): string {
    const series = [...this.#counts].map(([values, count]) => [labelsOf(JSON.parse(values) as string[]), count] as const)
    series.sort(([a], [b]) => (a < b ? -1 : 1))
    return metric('apiserver_request_total', 'Completed requests by verb, resource and response code.', 'counter', series)
  }
}

/** Returns the value of the label `scope`. Upstream: CleanScope. */
function scopeOf({ verb, namespace, name }: ResourceAttributes): 'resource' | 'namespace' | 'cluster' {
  if (name !== undefined || verb === 'create') return 'resource'
  return namespace === undefined ? 'cluster' : 'namespace'
}

function labelsOf(values: readonly string[]): string {
  const [code = '', dry_run = '', group = '', resource = '', scope = '', subresource = '', verb = '', version = ''] = values
  return labels({ code, component: 'apiserver', dry_run, group, resource, scope, subresource, verb, version })
}

const verbNames: { readonly [verb: string]: string } = { create: 'POST', update: 'PUT', deletecollection: 'DELETECOLLECTION' }

/** Runs all health checks, and returns their results as metrics. Upstream: k8s.io/component-base/metrics/prometheus/slis. */
export async function healthMetrics(checks: readonly HealthCheck[]): Promise<string> {
  const series: [string, number][] = []
  for (const type of ['healthz', 'livez', 'readyz'] as const satisfies readonly HealthPath[]) {
    for (const { name, check } of checksOf(type, checks)) {
      let isHealthy = 1
      try {
        await check()
      } catch {
        isHealthy = 0
      }
      series.push([labels({ name, type }), isHealthy])
    }
  }
  return metric('kubernetes_healthcheck', '1 if the health check succeeds, otherwise 0.', 'gauge', series)
}

export const metricsResponse = (text: string): HttpResponse => ({
  status: 200,
  headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores' },
  body: text,
})

function metric(name: string, help: string, type: 'counter' | 'gauge', series: readonly (readonly [string, number])[]): string {
  const lines = series.map(([labelled, value]) => `${name}${labelled} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

const labels = (values: { readonly [label: string]: string }): string =>
  `{${Object.entries(values)
    .map(([label, value]) => `${label}=${JSON.stringify(value)}`)
    .join(',')}}`
