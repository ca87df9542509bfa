/** Validates the sysctls of pods. Upstream: validateSysctls, v1.36, and k8s.io/component-helpers/node/util/sysctl. */
import { duplicate, type FieldError, invalid, required } from '@capstan/kube'
import type { PodSpec } from '../schemas/types.ts'

export function sysctlErrors(field: string, { securityContext, hostNetwork, hostIPC }: PodSpec): FieldError[] {
  const errors: FieldError[] = []
  const seenNames = new Set<string>()
  for (const [index, { name }] of (securityContext?.sysctls ?? []).entries()) {
    const valuePath = `${field}[${index}].name`
    if (!name) errors.push(required(valuePath))
    else if (name.length > 253 || !Sysctl.test(name)) {
      errors.push(invalid(valuePath, name, `must have at most 253 characters and match regex ${SysctlText}`))
    } else if (seenNames.has(name)) errors.push(duplicate(valuePath, name))
    const dotted = dottedName(name)
    if (hostNetwork && dotted.startsWith('net.'))
      errors.push(invalid(valuePath, name, "may not be specified when 'hostNetwork' is true"))
    else if (hostIPC && isOfIPC(dotted)) errors.push(invalid(valuePath, name, "may not be specified when 'hostIPC' is true"))
    seenNames.add(name)
  }
  return errors
}

const Sysctl = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/
const SysctlText = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$'

/** Returns a name with dots as separators: `net/ipv4/conf/eno2.100/rp_filter` becomes `net.ipv4.conf.eno2/100.rp_filter`. */
const dottedName = (name: string): string =>
  /[./]/.exec(name)?.[0] === '/' ? name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/')) : name

/** Reports whether a sysctl belongs to the IPC namespace, which a pod may share with the host. */
const isOfIPC = (name: string): boolean =>
  /^kernel\.(sem|shm|shmall|shmmax|shmmni|shm_rmid_forced|msg|msgmax|msgmnb|msgmni)$/.test(name) || name.startsWith('fs.mqueue.')
