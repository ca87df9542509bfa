import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList } from '../check.ts'

/** Containers must not be privileged. */
export const privileged: Check = {
  id: 'privileged',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const names = containersOf(spec).flatMap(({ name, securityContext }) =>
          securityContext?.privileged === true ? [name] : [],
        )
        if (names.length === 0) return undefined
        return { reason: 'privileged', detail: `${containerList(names)} must not set securityContext.privileged=true` }
      },
    },
  ],
}
