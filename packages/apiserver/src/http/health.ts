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

/** Upstream: k8s.io/apiserver/pkg/server/healthz. */
export async function healthAnswer(
  path: HealthPath,
  checks: readonly HealthCheck[],
  query: URLSearchParams,
): Promise<HttpAnswer> {
  const excluded = new Set(query.getAll('exclude'))
  const lines: string[] = []
  let isWell = true
  for (const one of [{ name: 'ping', check() {} } as HealthCheck, ...checks]) {
    const { name, paths } = one
    if (paths && !paths.includes(path)) continue
    if (excluded.has(name)) {
      lines.push(`[+]${name} excluded: ok`)
      continue
    }
    try {
      await one.check()
      lines.push(`[+]${name} ok`)
    } catch {
      isWell = false
      lines.push(`[-]${name} failed: reason withheld`)
    }
  }
  const text = isWell
    ? query.has('verbose')
      ? `${lines.join('\n')}\n${path} check passed\n`
      : 'ok'
    : `${lines.join('\n')}\n${path} check failed\n`
  return {
    status: isWell ? 200 : 500,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    body: text,
  }
}
