import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList, plural, sorted } from '../check.ts'

/** Containers must not use ports of the host. */
export const hostPorts: Check = {
  id: 'hostPorts',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const using = containersOf(spec)
          .map(({ name, ports = [] }) => ({ name, taken: ports.flatMap(({ hostPort }) => (hostPort ? [String(hostPort)] : [])) }))
          .filter(({ taken }) => taken.length > 0)
        if (using.length === 0) return undefined
        const names = using.map(({ name }) => name)
        const ports = sorted(using.flatMap(({ taken }) => taken))
        const use = names.length === 1 ? 'uses' : 'use'
        return { reason: 'hostPort', detail: `${containerList(names)} ${use} ${plural('hostPort', ports)} ${ports.join(', ')}` }
      },
    },
  ],
}
