import { containersOf } from '../../../kinds/pod/defaults.ts'
import type { Container } from '../../../kinds/schemas/types.ts'
import { type Check, containerList, plural, quoted, sorted } from '../check.ts'

/** Probes and lifecycle handlers must not set a host, so that the kubelet sends requests only to the pod. */
export const probeHosts: Check = {
  id: 'hostProbesAndHostLifecycle',
  level: 'baseline',
  rules: [
    {
      since: 34,
      rule({ spec }) {
        const asking = containersOf(spec)
          .map((container) => ({ name: container.name, hosts: hostsOf(container) }))
          .filter(({ hosts }) => hosts.length > 0)
        if (asking.length === 0) return undefined
        const names = sorted(asking.map(({ name }) => name))
        const hosts = sorted(asking.flatMap((container) => container.hosts))
        const use = names.length === 1 ? 'uses' : 'use'
        const detail = `${containerList(names)} ${use} ${plural('probe or lifecycle host', hosts)} ${quoted(hosts)}`
        return { reason: 'probe or lifecycle host', detail }
      },
    },
  ],
}

function hostsOf({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container): string[] {
  const handlers = [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]
  return handlers
    .flatMap((handler) => [handler?.httpGet?.host ?? '', handler?.tcpSocket?.host ?? ''])
    .filter((host) => host !== '')
}
