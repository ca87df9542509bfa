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
        const violators = containersOf(spec)
          .map(({ name, ports = [] }) => ({ name, taken: ports.flatMap(({ hostPort }) => (hostPort ? [String(hostPort)] : [])) }))
          .filter(({ taken }) => taken.length > 0)
        if (violators.length === 0) return undefined
        const names = violators.map(({ name }) => name)
        const ports = sorted(violators.flatMap(({ taken }) => taken))
        const predicate = names.length === 1 ? 'uses' : 'use'
        return {
          reason: 'hostPort',
          detail: `${containerList(names)} ${predicate} ${plural('hostPort', ports)} ${ports.join(', ')}`,
        }
      },
    },
  ],
}
