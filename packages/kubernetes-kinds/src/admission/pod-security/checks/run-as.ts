import { type Check, containerList, type Rule, settings, unlessUserNamespace } from '../check.ts'

const requireNonRoot: Rule = ({ spec }) => {
  const { setters, unset } = settings(
    spec,
    ({ runAsNonRoot }) => runAsNonRoot,
    (value) => value,
  )
  const reason = 'runAsNonRoot != true'
  if (setters.length > 0) return { reason, detail: `${setters.join(' and ')} must not set securityContext.runAsNonRoot=false` }
  if (unset.length === 0) return undefined
  return { reason, detail: `pod or ${containerList(unset)} must set securityContext.runAsNonRoot=true` }
}

/** Containers must set runAsNonRoot, unless they are in a user namespace. */
export const runAsNonRoot: Check = {
  id: 'runAsNonRoot',
  level: 'restricted',
  rules: [
    { since: 0, rule: requireNonRoot },
    { since: 35, rule: unlessUserNamespace(requireNonRoot) },
  ],
}

const isNotZero: Rule = ({ spec }) => {
  const { setters } = settings(
    spec,
    (context) => context.runAsUser,
    (user) => user !== 0,
  )
  return setters.length === 0 ? undefined : { reason: 'runAsUser=0', detail: `${setters.join(' and ')} must not set runAsUser=0` }
}

/** runAsUser must not be 0, except in a user namespace. */
export const runAsUser: Check = {
  id: 'runAsUser',
  level: 'restricted',
  rules: [
    { since: 23, rule: isNotZero },
    { since: 35, rule: unlessUserNamespace(isNotZero) },
  ],
}
