import type { Check, Rule } from '../check.ts'

const allowOnly =
  (allowed: readonly string[]): Rule =>
  ({ spec }) => {
    const forbiddenNames = (spec.securityContext?.sysctls ?? []).map(({ name }) => name).filter((name) => !allowed.includes(name))
    return forbiddenNames.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: forbiddenNames.join(', ') }
  }

/** Names of allowed sysctls. The number in each constant is the minor version of Kubernetes from which its list applies. */
const since0 = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
]
const since27 = [...since0, 'net.ipv4.ip_local_reserved_ports']
const since29 = [
  ...since27,
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
]
const since32 = [...since29, 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem']

/** Allows only namespaced sysctls that are safe for other pods. */
export const sysctls: Check = {
  id: 'sysctls',
  level: 'baseline',
  rules: [
    { since: 0, rule: allowOnly(since0) },
    { since: 27, rule: allowOnly(since27) },
    { since: 29, rule: allowOnly(since29) },
    { since: 32, rule: allowOnly(since32) },
  ],
}
