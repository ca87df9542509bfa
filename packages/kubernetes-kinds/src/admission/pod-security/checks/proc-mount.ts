import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList, quoted, type Rule, sorted, unlessUserNamespace } from '../check.ts'

const masked: Rule = ({ spec }) => {
  const violating = containersOf(spec).flatMap(({ name, securityContext: { procMount = 'Default' } = {} }) =>
    procMount === 'Default' ? [] : [{ name, procMount }],
  )
  if (violating.length === 0) return undefined
  const types = sorted(violating.map(({ procMount }) => procMount))
  const detail = `${containerList(violating.map(({ name }) => name))} must not set securityContext.procMount to ${quoted(types)}`
  return { reason: 'procMount', detail }
}

/** Containers must use the default proc mount, unless they are in a user namespace. */
export const procMount: Check = {
  id: 'procMount',
  level: 'baseline',
  rules: [
    { since: 0, rule: masked },
    { since: 35, rule: unlessUserNamespace(masked) },
  ],
}

/** The same rule, but containers in a user namespace must comply as well. */
export const procMountRestricted: Check = {
  id: 'procMount_restricted',
  level: 'restricted',
  rules: [{ since: 35, rule: masked }],
  replaces: procMount.id,
}
