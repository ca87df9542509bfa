import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList, quoted, type Rule, sorted, unlessUserNamespace } from '../check.ts'

const requireDefaultMount: Rule = ({ spec }) => {
  const violating = containersOf(spec).flatMap(({ name, securityContext: { procMount = 'Default' } = {} }) =>
    procMount === 'Default' ? [] : [{ name, procMount }],
  )
  if (violating.length === 0) return undefined
  const types = sorted(violating.map(({ procMount }) => procMount))
  const detail = `${containerList(violating.map(({ name }) => name))} must not set securityContext.procMount to ${quoted(types)}`
  return { reason: 'procMount', detail }
}

/** Containers must use the default proc mount. Since 1.35, pods in a user namespace are exempt. */
export const procMount: Check = {
  id: 'procMount',
  level: 'baseline',
  rules: [
    { since: 0, rule: requireDefaultMount },
    { since: 35, rule: unlessUserNamespace(requireDefaultMount) },
  ],
}

/** Containers must use the default proc mount, also in a user namespace. */
export const procMountRestricted: Check = {
  id: 'procMount_restricted',
  level: 'restricted',
  rules: [{ since: 35, rule: requireDefaultMount }],
  replaces: procMount.id,
}
