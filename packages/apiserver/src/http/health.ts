import type { HttpAnswer } from './exchange.ts'
import type { Store } from '../store/store.ts'
import type { HealthPath } from './route.ts'

/** One thing that must be well. It throws when it is not; the reason stays in the log. */
export interface HealthCheck {
  readonly name: string
  /** The paths that ask it; all of them when absent. */
  readonly paths?: readonly HealthPath[]
  check(): void | Promise<void>
}

/** Whether writes can be stored. `livez` does not ask: starting anew makes no room on a disk, and reads go on. */
export const storeCheck = (store: Store): HealthCheck => ({
  name: 'etcd',
  paths: ['healthz', 'readyz'],
  check() {
    if (store.failure) throw store.failure
  },
})

/**
 * What upstream's server does when it starts, under the names that monitors and installers ask for. Here a server answers only when
 * it has done all of that which it does at all.
 */
const startHooks = [
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
  ...startHooks,
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

/** Where single checks can be asked for. */
export const healthPaths = (): string[] =>
  Object.entries(names).flatMap(([path, list]) => [`/${path}`, ...list.map((name) => `/${path}/${name}`)])

/** The checks of a path: upstream's names, and those of this server beside them, which decide where the name is the same. */
export function checksOf(path: HealthPath, checks: readonly HealthCheck[]): readonly HealthCheck[] {
  const own = checks.filter(({ paths }) => paths === undefined || paths.includes(path))
  return [
    ...names[path].map((name) => own.find((one) => one.name === name) ?? { name, check() {} }),
    ...own.filter(({ name }) => !names[path].includes(name)),
  ]
}

export interface HealthQuestion {
  readonly path: HealthPath
  /** One check alone; the empty text: all of them. */
  readonly only: string
}

/** Upstream: k8s.io/apiserver/pkg/server/healthz. `undefined` when there is no such check. */
export async function healthAnswer(
  { path, only }: HealthQuestion,
  given: readonly HealthCheck[],
  query: URLSearchParams,
): Promise<HttpAnswer | undefined> {
  const checks = checksOf(path, given).filter(({ name }) => only === '' || name === only)
  if (checks.length === 0) return undefined
  const excluded = new Set(query.getAll('exclude'))
  const lines: string[] = []
  let isWell = true
  for (const { name, check } of checks) {
    if (excluded.has(name)) {
      lines.push(`[+]${name} excluded: ok`)
      continue
    }
    try {
      await check()
      lines.push(`[+]${name} ok`)
    } catch {
      isWell = false
      lines.push(`[-]${name} failed: reason withheld`)
    }
  }
  const text = isWell
    ? query.has('verbose') && only === ''
      ? `${lines.join('\n')}\n${path} check passed\n`
      : 'ok'
    : `${lines.join('\n')}\n${path} check failed\n`
  // Upstream: one check alone that is well says so without caring what a browser makes of it.
  const headers = isWell && only !== '' ? { 'content-type': plainText['content-type'] } : plainText
  return { status: isWell ? 200 : 500, headers, body: text }
}

export const plainText = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
