import type { HttpResponse } from './exchange.ts'
import type { Store } from '../store/store.ts'
import type { HealthPath } from './route.ts'

/** A health check. `check` throws when it fails; the response does not contain the reason. */
export interface HealthCheck {
  readonly name: string
  /** Paths that run the check; default: all. */
  readonly paths?: readonly HealthPath[]
  check(): void | Promise<void>
}

/** Checks that writes can be stored. In `livez` the check always passes: a restart does not free disk space, and reads still work. */
export const storeCheck = (store: Store): HealthCheck => ({
  name: 'etcd',
  paths: ['healthz', 'readyz'],
  check() {
    if (store.failure) throw store.failure
  },
})

/**
 * Post-start hooks of kube-apiserver, by the names that monitors and installers query. They always pass: this server responds only after it
 * has started.
 */
const postStartHooks = [
  'start-apiserver-admission-initializer',
  'generic-apiserver-start-informers',
  'priority-and-fairness-config-consumer',
  'priority-and-fairness-filter',
  'storage-object-count-tracker-hook',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'start-system-namespaces-controller',
  'peer-endpoint-reconciler-controller',
  'start-cluster-authentication-info-controller',
  'start-kube-apiserver-identity-lease-controller',
  'start-kube-apiserver-identity-lease-garbage-collector',
  'storage-readiness',
  'start-legacy-token-tracking-controller',
  'start-service-ip-repair-controllers',
  'rbac/bootstrap-roles',
  'scheduling/bootstrap-system-priority-classes',
  'priority-and-fairness-config-producer',
  'bootstrap-controller',
  'start-kubernetes-service-cidr-controller',
  'start-kube-aggregator-informers',
  'apiservice-status-local-available-controller',
  'apiservice-status-remote-available-controller',
  'apiservice-registration-controller',
  'apiservice-discovery-controller',
  'kube-apiserver-autoregistration',
].map((name) => `poststarthook/${name}`)
const hooks = [
  ...postStartHooks,
  'autoregister-completion',
  'poststarthook/apiservice-openapi-controller',
  'poststarthook/apiservice-openapiv3-controller',
]

/** Upstream's checks, in its order. */
const names: { readonly [path in HealthPath]: readonly string[] } = {
  healthz: ['ping', 'log', 'loopback-serving-certificate', 'etcd', ...hooks],
  livez: ['ping', 'log', 'loopback-serving-certificate', 'etcd', ...hooks],
  readyz: ['ping', 'log', 'etcd', 'etcd-readiness', 'informer-sync', ...hooks, 'shutdown'],
}

/** Returns the paths of all health endpoints and of upstream's single checks. */
export const healthPaths = (): string[] =>
  Object.entries(names).flatMap(([path, list]) => [`/${path}`, ...list.map((name) => `/${path}/${name}`)])

/**
 * Returns the checks of a path: upstream's checks, then the other elements of `checks`. An upstream check that `checks` does not contain
 * always passes.
 */
export function checksOf(path: HealthPath, checks: readonly HealthCheck[]): readonly HealthCheck[] {
  const checksOfPath = checks.filter(({ paths }) => paths === undefined || paths.includes(path))
  return [
    ...names[path].map((name) => checksOfPath.find((check) => check.name === name) ?? { name, check() {} }),
    ...checksOfPath.filter(({ name }) => !names[path].includes(name)),
  ]
}

export interface HealthRequest {
  readonly path: HealthPath
  /** Name of a single check; empty: all checks. */
  readonly only: string
}

/** Runs the checks of a path; returns `undefined` when the single check does not exist. Upstream: k8s.io/apiserver/pkg/server/healthz. */
export async function healthResponse(
  { path, only }: HealthRequest,
  checks: readonly HealthCheck[],
  query: URLSearchParams,
): Promise<HttpResponse | undefined> {
  const selectedChecks = checksOf(path, checks).filter(({ name }) => only === '' || name === only)
  if (selectedChecks.length === 0) return undefined
  const excluded = new Set(query.getAll('exclude'))
  const lines: string[] = []
  let isHealthy = true
  for (const { name, check } of selectedChecks) {
    if (excluded.has(name)) {
      lines.push(`[+]${name} excluded: ok`)
      continue
    }
    try {
      await check()
      lines.push(`[+]${name} ok`)
    } catch {
      isHealthy = false
      lines.push(`[-]${name} failed: reason withheld`)
    }
  }
  const details = `${lines.join('\n')}\n${path} check ${isHealthy ? 'passed' : 'failed'}\n`
  const showsDetails = !isHealthy || (query.has('verbose') && only === '')
  const text = showsDetails ? details : 'ok'
  // For a single check that passes, upstream omits the header X-Content-Type-Options.
  const headers = isHealthy && only !== '' ? { 'content-type': plainText['content-type'] } : plainText
  return { status: isHealthy ? 200 : 500, headers, body: text }
}

/** Response headers of a plain text. */
export const plainText = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
