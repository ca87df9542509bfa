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

/** Of `/proc` containers see what runtimes usually show, unless they are in a user namespace. */
export const procMount: Check = {
  id: 'procMount',
  level: 'baseline',
  rules: [
    { since: 0, rule: masked },
    { since: 35, rule: unlessUserNamespace(masked) },
  ],
}

/** Since the baseline makes an exception, this is the rule without it. */
export const procMountRestricted: Check = {
  id: 'procMount_restricted',
  level: 'restricted',
  rules: [{ since: 35, rule: masked }],
  replaces: procMount.id,
}
