import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList, type Rule, unlessWindows } from '../check.ts'

const ruledOut: Rule = ({ spec }) => {
  const others = containersOf(spec).filter(({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
  if (others.length === 0) return undefined
  const names = containerList(others.map(({ name }) => name))
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${names} must set securityContext.allowPrivilegeEscalation=false`,
  }
}

/** Processes get no more rights than those that started them. */
export const privilegeEscalation: Check = {
  id: 'allowPrivilegeEscalation',
  level: 'restricted',
  rules: [
    { since: 8, rule: ruledOut },
    { since: 25, rule: unlessWindows(ruledOut) },
  ],
}
