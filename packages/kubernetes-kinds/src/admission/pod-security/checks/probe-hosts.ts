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
        const violators = containersOf(spec)
          .map((container) => ({ name: container.name, hosts: hostsOf(container) }))
          .filter(({ hosts }) => hosts.length > 0)
        if (violators.length === 0) return undefined
        const names = sorted(violators.map(({ name }) => name))
        const hosts = sorted(violators.flatMap((container) => container.hosts))
        const verb = names.length === 1 ? 'uses' : 'use'
        const detail = `${containerList(names)} ${verb} ${plural('probe or lifecycle host', hosts)} ${quoted(hosts)}`
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
