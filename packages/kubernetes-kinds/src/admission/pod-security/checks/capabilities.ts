import { appendAll } from '@capstan/kube'
import { containersOf } from '../../../kinds/pod/defaults.ts'
import type { PodSpec } from '../../../kinds/schemas/types.ts'
import { type Check, containerList, quoted, type Rule, sorted, unlessWindows } from '../check.ts'

const defaultCapabilities =
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT'.split(' ')

/** Containers must not add capabilities beyond the default capabilities of container runtimes. */
export const capabilitiesBaseline: Check = {
  id: 'capabilities_baseline',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const detail = addedBeyond(defaultCapabilities, spec)
        return detail === undefined ? undefined : { reason: 'non-default capabilities', detail }
      },
    },
  ],
}

const restrictCapabilities: Rule = ({ spec }) => {
  const violators = containersOf(spec).flatMap(({ name, securityContext }) =>
    securityContext?.capabilities?.drop?.includes('ALL') ? [] : [name],
  )
  const details = violators.length === 0 ? [] : [`${containerList(violators)} must set securityContext.capabilities.drop=["ALL"]`]
  const added = addedBeyond(['NET_BIND_SERVICE'], spec)
  if (added !== undefined) details.push(added)
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') }
}

/** Containers must drop all capabilities, and may add only NET_BIND_SERVICE. Since version 1.25 of the policy, Windows pods are exempt. */
export const capabilitiesRestricted: Check = {
  id: 'capabilities_restricted',
  level: 'restricted',
  rules: [
    { since: 22, rule: restrictCapabilities },
    { since: 25, rule: unlessWindows(restrictCapabilities) },
  ],
  replaces: capabilitiesBaseline.id,
}

function addedBeyond(allowed: readonly string[], spec: PodSpec): string | undefined {
  const names: string[] = []
  const added: string[] = []
  for (const { name, securityContext } of containersOf(spec)) {
    const forbiddenCapabilities = (securityContext?.capabilities?.add ?? []).filter((capability) => !allowed.includes(capability))
    if (forbiddenCapabilities.length === 0) continue
    names.push(name)
    appendAll(added, forbiddenCapabilities)
  }
  if (names.length === 0) return undefined
  return `${containerList(names)} must not include ${quoted(sorted(added))} in securityContext.capabilities.add`
}
