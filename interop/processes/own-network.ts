/** Network namespaces that have only a loopback interface, for suites whose programs listen on all addresses or whose pods need addresses. */
import { spawnSync } from 'node:child_process'

/** Command line prefix that runs a command in a new network namespace, or the reason why the machine does not allow this. */
export type OwnNetwork =
  | { readonly kind: 'available'; readonly prefix: readonly string[] }
  | { readonly kind: 'unavailable'; readonly why: string }

/** Returns how to run a command in a new network namespace: as root, or otherwise in a new user namespace. */
export function ownNetwork(): OwnNetwork {
  if (process.platform !== 'linux') return { kind: 'unavailable', why: `${process.platform} has no network namespaces` }
  let reason = ''
  for (const unshare of [
    ['unshare', '--net'],
    ['unshare', '--user', '--map-root-user', '--net'],
  ]) {
    const prefix = [...unshare, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
    const { status, stderr, error } = spawnSync(prefix[0]!, [...prefix.slice(1), 'true'], { encoding: 'utf8' })
    if (status === 0) return { kind: 'available', prefix }
    reason = error?.message ?? stderr.trim()
  }
  return { kind: 'unavailable', why: reason }
}
