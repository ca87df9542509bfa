import { type Check, settings } from '../check.ts'

/** Windows containers must not run as processes of the host. */
export const windowsHostProcess: Check = {
  id: 'windowsHostProcess',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const { violators } = settings(
          spec,
          ({ windowsOptions }) => windowsOptions?.hostProcess,
          (value) => !value,
        )
        if (violators.length === 0) return undefined
        return {
          reason: 'hostProcess',
          detail: `${violators.join(' and ')} must not set securityContext.windowsOptions.hostProcess=true`,
        }
      },
    },
  ],
}
