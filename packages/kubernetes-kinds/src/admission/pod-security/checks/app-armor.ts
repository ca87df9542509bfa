import { quotedGo } from '@capstan/kube'
import { type Check, plural, quoted, settings, sorted } from '../check.ts'

/** Prefix of the annotations that selected profiles before there were fields for them. */
const prefix = 'container.apparmor.security.beta.kubernetes.io/'
const isAllowed = (profile: string): boolean =>
  profile === '' || profile === 'runtime/default' || profile.startsWith('localhost/')

/** Pods and containers may select only the AppArmor profile of the container runtime, or a profile that is loaded on the host. */
export const appArmor: Check = {
  id: 'appArmorProfile',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ metadata, spec }) {
        const types = ['RuntimeDefault', 'Localhost']
        const { violators, values } = settings(
          spec,
          ({ appArmorProfile }) => appArmorProfile?.type,
          (type) => types.includes(type),
        )
        const annotations = Object.entries(metadata?.annotations ?? {})
          .filter(([name, profile]) => name.startsWith(prefix) && !isAllowed(profile))
          .map(([name, profile]) => `${name}=${quotedGo(profile)}`)
          .sort()
        const allSetters = annotations.length === 0 ? violators : [...violators, plural('annotation', annotations)]
        if (allSetters.length === 0) return undefined
        const profiles = [...sorted(values), ...annotations]
        return {
          reason: plural('forbidden AppArmor profile', profiles),
          detail: `${allSetters.join(' and ')} must not set AppArmor profile type to ${quoted(profiles)}`,
        }
      },
    },
  ],
}
