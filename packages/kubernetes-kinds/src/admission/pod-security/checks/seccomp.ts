import { quotedGo } from '@capstan/kube'
import { containersOf } from '../../../kinds/pod/defaults.ts'
import type { PodSpec } from '../../../kinds/schemas/types.ts'
import { type Check, containerList, type Finding, plural, quoted, type Rule, settings, sorted, unlessWindows } from '../check.ts'

const reason = 'seccompProfile'

/** Checks the annotations that selected profiles before there were fields for profiles. */
const checkAnnotations: Rule = ({ metadata, spec }) => {
  const names = [
    'seccomp.security.alpha.kubernetes.io/pod',
    ...containersOf(spec).map(({ name }) => `container.seccomp.security.alpha.kubernetes.io/${name}`),
  ]
  const violations = names.flatMap((name) => {
    const profile = metadata?.annotations?.[name]
    if (profile === undefined || ['runtime/default', 'docker/default'].includes(profile)) return []
    return profile.startsWith('localhost/') ? [] : [`${name}=${quotedGo(profile)}`]
  })
  if (violations.length === 0) return undefined
  const annotations = sorted(violations)
  return { reason, detail: `forbidden ${plural('annotation', annotations)} ${annotations.join(', ')}` }
}

const profiles = (spec: PodSpec) =>
  settings(
    spec,
    ({ seccompProfile }) => seccompProfile?.type,
    (type) => type === 'RuntimeDefault' || type === 'Localhost',
  )

const invalidProfile = (violators: readonly string[], types: readonly string[]): Finding => ({
  reason,
  detail: `${violators.join(' and ')} must not set securityContext.seccompProfile.type to ${quoted(sorted(types))}`,
})

/** Allows only the seccomp profiles RuntimeDefault and Localhost. A pod without a profile is allowed, too. */
export const seccompBaseline: Check = {
  id: 'seccompProfile_baseline',
  level: 'baseline',
  rules: [
    { since: 0, rule: checkAnnotations },
    {
      since: 19,
      rule({ spec }) {
        const { violators, values } = profiles(spec)
        return violators.length === 0 ? undefined : invalidProfile(violators, values)
      },
    },
  ],
}

const requireProfile: Rule = ({ spec }) => {
  const { violators, values, unset } = profiles(spec)
  if (violators.length > 0) return invalidProfile(violators, values)
  if (unset.length === 0) return undefined
  const detail = `pod or ${containerList(unset)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`
  return { reason, detail }
}

/** Every container must have an allowed seccomp profile, its own or that of the pod. Since 1.25, Windows pods are exempt. */
export const seccompRestricted: Check = {
  id: 'seccompProfile_restricted',
  level: 'restricted',
  rules: [
    { since: 19, rule: requireProfile },
    { since: 25, rule: unlessWindows(requireProfile) },
  ],
  replaces: seccompBaseline.id,
}
