import { containersOf } from '../../../kinds/pod/defaults.ts'
import { type Check, containerList, quoted, type Rule, sorted, unlessUserNamespace } from '../check.ts'

const masked: Rule = ({ spec }) => {
  const showing = containersOf(spec).flatMap(({ name, securityContext: { procMount = 'Default' } = {} }) =>
    procMount === 'Default' ? [] : [{ name, procMount }],
  )
  if (showing.length === 0) return undefined
  const types = sorted(showing.map(({ procMount }) => procMount))
  const detail = `${containerList(showing.map(({ name }) => name))} must not set securityContext.procMount to ${quoted(types)}`
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

/** The same rule without the exception for user namespaces, which the baseline makes. */
export const procMountRestricted: Check = {
  id: 'procMount_restricted',
  level: 'restricted',
  rules: [{ since: 35, rule: masked }],
  replaces: procMount.id,
}
