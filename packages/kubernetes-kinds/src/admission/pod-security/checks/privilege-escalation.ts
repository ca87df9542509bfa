import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList, type Rule, unlessWindows } from '../check.ts'

const requireNoEscalation: Rule = ({ spec }) => {
  const names = containersOf(spec).flatMap(({ name, securityContext }) =>
    securityContext?.allowPrivilegeEscalation === false ? [] : [name],
  )
  if (names.length === 0) return undefined
  const detail = `${containerList(names)} must set securityContext.allowPrivilegeEscalation=false`
  return { reason: 'allowPrivilegeEscalation != false', detail }
}

/**
 * Containers must set allowPrivilegeEscalation=false, so that a process cannot gain more privileges than its parent. Since
 * version 1.25 of the policy, Windows pods are exempt.
 */
export const privilegeEscalation: Check = {
  id: 'allowPrivilegeEscalation',
  level: 'restricted',
  rules: [
    { since: 8, rule: requireNoEscalation },
    { since: 25, rule: unlessWindows(requireNoEscalation) },
  ],
}
