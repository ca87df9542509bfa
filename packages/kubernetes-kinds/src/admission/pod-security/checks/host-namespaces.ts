import type { Check } from '../check.ts'

const fields = ['hostNetwork', 'hostPID', 'hostIPC'] as const

/** Pods must not share the network, PID or IPC namespace of the host. */
export const hostNamespaces: Check = {
  id: 'hostNamespaces',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const shared = fields.filter((field) => spec[field] === true)
        if (shared.length === 0) return undefined
        return { reason: 'host namespaces', detail: shared.map((field) => `${field}=true`).join(', ') }
      },
    },
  ],
}
