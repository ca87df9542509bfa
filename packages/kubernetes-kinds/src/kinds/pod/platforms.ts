/** Validates fields that depend on the operating system of a pod or on its user namespace. Upstream: pkg/apis/core/validation, v1.36. */
import { appendAll, type FieldError, forbidden, invalid, required } from '@capstan/kube'
import { oneOf, subdomain } from '../checks.ts'
import type { PodSecurityContext, PodSpec, SecurityContext, WindowsSecurityContextOptions } from '../schemas/types.ts'
import { placedContainers } from './placed-containers.ts'

/**
 * Validates that either all or no containers are host processes of Windows, that host processes use the host's network, and that no
 * container contradicts the setting of its pod.
 */
export function hostProcessErrors(field: string, spec: PodSpec): FieldError[] {
  const podValue = spec.securityContext?.windowsOptions?.hostProcess
  const errors: FieldError[] = []
  const containers = placedContainers(field, spec)
  let hostProcesses = 0
  for (const [valuePath, { securityContext }] of containers) {
    const isHostProcess = securityContext?.windowsOptions?.hostProcess
    if (isHostProcess !== undefined && podValue !== undefined && isHostProcess !== podValue) {
      const text = `pod hostProcess value must be identical if both are specified, was ${podValue}`
      errors.push(invalid(`${valuePath}.securityContext.windowsOptions.hostProcess`, isHostProcess, text))
    }
    if (isHostProcess ?? podValue) hostProcesses++
  }
  if (hostProcesses === 0) return errors
  if (hostProcesses < containers.length) {
    const text = 'If pod contains any hostProcess containers then all containers must be HostProcess containers'
    errors.push(invalid(field, '', text))
  }
  if (!spec.hostNetwork) {
    errors.push(invalid(`${field}.hostNetwork`, false, 'hostNetwork must be true if pod contains any hostProcess containers'))
  }
  return errors
}

/**
 * Validates that a pod with its own user namespace neither shares other namespaces of the host nor uses block devices. The
 * field names in errors are upstream's.
 */
export function hostUsersErrors(field: string, spec: PodSpec): FieldError[] {
  if (spec.hostUsers !== false) return []
  const fields = [
    ...(spec.hostNetwork ? [`${field}.hostNetwork`] : []),
    ...(spec.hostPID ? [`${field}.HostPID`] : []),
    ...(spec.hostIPC ? [`${field}.HostIPC`] : []),
    ...placedContainers(field, spec).flatMap(([valuePath, { volumeDevices = [] }]) =>
      volumeDevices.length > 0 ? [`${valuePath}.volumeDevices`] : [],
    ),
  ]
  return fields.map((path) => forbidden(path, 'when `hostUsers` is false'))
}

/** Fields of the pod's security context that Windows does not support. Upstream reports them in three parts, with other fields in between. */
const notForWindows = {
  first: ['appArmorProfile', 'seLinuxOptions'],
  second: ['seccompProfile', 'fsGroup', 'fsGroupChangePolicy', 'sysctls'],
  third: ['runAsUser', 'runAsGroup', 'supplementalGroups', 'supplementalGroupsPolicy', 'seLinuxChangePolicy'],
} as const satisfies { readonly [part: string]: readonly (keyof PodSecurityContext)[] }

const notForWindowsContainers = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const satisfies readonly (keyof SecurityContext)[]

/** Returns errors for fields that do not apply to the operating system of the pod, and for an unknown or empty operating system. */
export function platformErrors(field: string, spec: PodSpec): FieldError[] {
  const { os, securityContext = {} } = spec
  if (!os) return []
  if (!os.name) return [required(`${field}.os.name`)]
  const containers = placedContainers(field, spec)
  if (os.name === 'linux') {
    const owners = [[field, spec] as const, ...containers].filter(([, owner]) => owner.securityContext?.windowsOptions)
    return owners.map(([valuePath]) =>
      forbidden(`${valuePath}.securityContext.windowsOptions`, 'windows options cannot be set for a linux pod'),
    )
  }
  if (os.name !== 'windows') return oneOf(`${field}.os`, os.name, ['linux', 'windows'])
  const podFields = (names: readonly (keyof PodSecurityContext)[]): string[] =>
    names
      .filter((name) => (name === 'sysctls' ? securityContext.sysctls?.length : securityContext[name] !== undefined))
      .map((name) => `${field}.securityContext.${name}`)
  const fields = [
    ...podFields(notForWindows.first),
    ...(spec.hostUsers === undefined ? [] : [`${field}.hostUsers`]),
    ...(spec.hostPID ? [`${field}.hostPID`] : []),
    ...(spec.hostIPC ? [`${field}.hostIPC`] : []),
    ...podFields(notForWindows.second),
    ...(spec.shareProcessNamespace === undefined ? [] : [`${field}.shareProcessNamespace`]),
    ...podFields(notForWindows.third),
    ...containers.flatMap(([valuePath, { securityContext: containerContext = {} }]) =>
      notForWindowsContainers
        .filter((name) => containerContext[name] !== undefined)
        .map((name) => `${valuePath}.securityContext.${name}`),
    ),
  ]
  return fields.map((path) => forbidden(path, 'cannot be set for a windows pod'))
}

export function windowsOptionErrors(field: string, options: WindowsSecurityContextOptions | undefined): FieldError[] {
  if (!options) return []
  const { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName } = options
  const errors: FieldError[] = []
  if (gmsaCredentialSpecName !== undefined)
    appendAll(errors, subdomain(`${field}.gmsaCredentialSpecName`, gmsaCredentialSpecName))
  if (gmsaCredentialSpec === '') {
    errors.push(invalid(`${field}.gmsaCredentialSpec`, '', 'gmsaCredentialSpec cannot be an empty string'))
  } else if (gmsaCredentialSpec !== undefined && bytesIn(gmsaCredentialSpec) > 64 * 1024) {
    errors.push(invalid(`${field}.gmsaCredentialSpec`, gmsaCredentialSpec, 'gmsaCredentialSpec size must be under 64 KiB'))
  }
  if (runAsUserName === undefined) return errors
  return [...errors, ...userNameProblems(runAsUserName).map((text) => invalid(`${field}.runAsUserName`, runAsUserName, text))]
}

/** Returns upstream's texts for the errors of a user name, whose form is `user` or `domain\user`. */
function userNameProblems(name: string): string[] {
  if (name === '') return ['runAsUserName cannot be an empty string']
  if (control.test(name)) return ['runAsUserName cannot contain control characters']
  const parts = name.split('\\')
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash']
  const user = parts.at(-1)!
  const domain = parts.length === 2 ? parts[0]! : undefined
  return [
    ...(domain !== undefined && bytesIn(domain) >= 256 ? ["runAsUserName's Domain length must be under 256 characters"] : []),
    ...(domain !== undefined && !NetBios.test(domain) && !DNS.test(domain)
      ? ["runAsUserName's Domain doesn't match the NetBios nor the DNS format"]
      : []),
    ...(user === '' ? ["runAsUserName's User cannot be empty"] : []),
    ...(bytesIn(user) > 104 ? ["runAsUserName's User length must not be longer than 104 characters"] : []),
    ...(/^[. ]+$/.test(user) ? ["runAsUserName's User cannot contain only periods or spaces"] : []),
    ...(/["/\\:;|=,+*?<>@[\]]/.test(user)
      ? ['runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]']
      : []),
  ]
}

/** ASCII control characters, as in upstream's pattern. */
const control = /(?![\u0080-\u009f])\p{Cc}/u
const NetBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u
const DNS = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

const bytesIn = (text: string): number => new TextEncoder().encode(text).length
