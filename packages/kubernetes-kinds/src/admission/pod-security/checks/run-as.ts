import { type Check, containerList, type Rule, settings, unlessUserNamespace } from '../check.ts'

const requireNonRoot: Rule = ({ spec }) => {
  const { violators, unset } = settings(
    spec,
    ({ runAsNonRoot }) => runAsNonRoot,
    (value) => value,
  )
  const reason = 'runAsNonRoot != true'
  if (violators.length > 0)
    return { reason, detail: `${violators.join(' and ')} must not set securityContext.runAsNonRoot=false` }
  if (unset.length === 0) return undefined
  return { reason, detail: `pod or ${containerList(unset)} must set securityContext.runAsNonRoot=true` }
}

/**
 * The pod or all its containers must set runAsNonRoot=true, and none of them may set it to false. Since 1.35, pods in a user
 * namespace are exempt.
 */
export const runAsNonRoot: Check = {
  id: 'runAsNonRoot',
  level: 'restricted',
  rules: [
    { since: 0, rule: requireNonRoot },
    { since: 35, rule: unlessUserNamespace(requireNonRoot) },
  ],
}

const requireNonZeroUser: Rule = ({ spec }) => {
  const { violators } = settings(
    spec,
    (context) => context.runAsUser,
    (user) => user !== 0,
  )
  return violators.length === 0
    ? undefined
    : { reason: 'runAsUser=0', detail: `${violators.join(' and ')} must not set runAsUser=0` }
}

/** Since 1.23, runAsUser must not be 0. Since 1.35, pods in a user namespace are exempt. */
export const runAsUser: Check = {
  id: 'runAsUser',
  level: 'restricted',
  rules: [
    { since: 23, rule: requireNonZeroUser },
    { since: 35, rule: unlessUserNamespace(requireNonZeroUser) },
  ],
}
