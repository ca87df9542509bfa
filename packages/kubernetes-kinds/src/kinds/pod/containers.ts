/** Validates the containers of a pod. Upstream: validateContainers and related functions, v1.36. */
import {
  addError,
  appendAll,
  duplicate,
  eachInPieces,
  type FieldError,
  forbidden,
  invalid,
  keyProblems,
  notSupported,
  required,
  tooLong,
  type Work,
} from '@capstan/kube'
import {
  descendingPath,
  dnsLabel,
  hasBackstep,
  inRange,
  missing,
  oneOf,
  portNameProblems,
  portNumber,
  portNumberOrName,
  problems,
  requiredOneOf,
  subdomain,
} from '../checks.ts'
import { nonNegative } from '../counts.ts'
import type {
  Container,
  ContainerPort,
  EnvFromSource,
  EnvVar,
  PodSpec,
  Probe,
  SecurityContext,
  VolumeMount,
} from '../schemas/types.ts'
import { windowsOptionErrors } from './platforms.ts'
import { resourceRequirements } from './resources.ts'
import { EnvFields, fieldSelector, resourceFieldSelector, type Volumes } from './volumes.ts'

/** Facts about the pod that the validation of its containers needs. */
export interface PodContext {
  readonly spec: PodSpec
  readonly volumes: Volumes
  /** Names in `resourceClaims` of the spec. */
  readonly claims: ReadonlySet<string>
}

export function* validateContainers(field: string, pod: PodContext): Work<FieldError[]> {
  const { spec } = pod
  const containers = spec.containers ?? []
  if (containers.length === 0) return [required(field)]
  const errors: FieldError[] = []
  const names = new Set<string>()
  yield* eachInPieces(containers.entries(), ([index, container]) => {
    const valuePath = `${field}[${index}]`
    appendAll(errors, commonErrors(valuePath, container, pod))
    if (names.has(container.name)) errors.push(duplicate(`${valuePath}.name`, container.name))
    names.add(container.name)
    appendAll(errors, lifecycleAndProbeErrors(valuePath, container, spec), restartPolicyErrors(valuePath, container))
  })
  return [...errors, ...hostPortConflicts(field, containers)]
}

export function* validateInitContainers(field: string, pod: PodContext): Work<FieldError[]> {
  const { spec } = pod
  const errors: FieldError[] = []
  const names = new Set((spec.containers ?? []).map(({ name }) => name))
  yield* eachInPieces((spec.initContainers ?? []).entries(), ([index, container]) => {
    const valuePath = `${field}[${index}]`
    appendAll(errors, commonErrors(valuePath, container, pod), restartPolicyErrors(valuePath, container))
    if (names.has(container.name)) errors.push(duplicate(`${valuePath}.name`, container.name))
    else if (container.name) names.add(container.name)
    appendAll(errors, hostPortConflicts(field, [container]))
    if (container.restartPolicy === 'Always') appendAll(errors, lifecycleAndProbeErrors(valuePath, container, spec))
    else {
      for (const member of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
        if (container[member] === undefined) continue
        errors.push(forbidden(`${valuePath}.${member}`, 'may not be set for init containers without restartPolicy=Always'))
      }
    }
  })
  return errors
}

const NotEphemeral = [
  'ports',
  'resources',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resizePolicy',
] as const

export function* validateEphemeralContainers(field: string, pod: PodContext): Work<FieldError[]> {
  const { spec } = pod
  const errors: FieldError[] = []
  const otherNames = new Set([...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ name }) => name))
  const names = new Set(otherNames)
  yield* eachInPieces((spec.ephemeralContainers ?? []).entries(), ([index, container]) => {
    const valuePath = `${field}[${index}]`
    appendAll(errors, commonErrors(valuePath, container as unknown as Container, pod))
    appendAll(errors, imageWhitespaceErrors(valuePath, container.image))
    if (names.has(container.name)) errors.push(duplicate(`${valuePath}.name`, container.name))
    names.add(container.name)
    const target = container.targetContainerName
    if (target !== undefined && !otherNames.has(target)) errors.push(missing(`${valuePath}.targetContainerName`, target))
    for (const member of NotEphemeral) {
      const value = container[member] as object | undefined
      if (value === undefined || Object.keys(value).length === 0) continue
      errors.push(forbidden(`${valuePath}.${member}`, 'cannot be set for an Ephemeral Container'))
    }
    for (const [mount, { subPath, subPathExpr }] of (container.volumeMounts ?? []).entries()) {
      for (const [member, value] of Object.entries({ subPath, subPathExpr })) {
        if (value === undefined) continue
        errors.push(forbidden(`${valuePath}.volumeMounts[${mount}].${member}`, 'cannot be set for an Ephemeral Container'))
      }
    }
  })
  return errors
}

/**
 * Rejects an image name with leading or trailing whitespace. In pod templates, it applies only to ephemeral containers, which templates may not
 * have anyway.
 */
export const imageWhitespaceErrors = (valuePath: string, image = ''): FieldError[] =>
  image.trim() === image ? [] : [invalid(`${valuePath}.image`, image, 'must not have leading or trailing whitespace')]

function commonErrors(valuePath: string, container: Container, pod: PodContext): FieldError[] {
  const { name, image, terminationMessagePolicy, imagePullPolicy, resources, resizePolicy = [], securityContext } = container
  const hostUsers = pod.spec.hostUsers ?? true
  return [
    ...(name ? dnsLabel(`${valuePath}.name`, name) : [required(`${valuePath}.name`)]),
    ...(image ? [] : [required(`${valuePath}.image`)]),
    ...requiredOneOf(`${valuePath}.terminationMessagePolicy`, terminationMessagePolicy, ['File', 'FallbackToLogsOnError']),
    ...portErrors(`${valuePath}.ports`, container.ports ?? []),
    ...environmentErrors(`${valuePath}.env`, container.env ?? []),
    ...environmentFromErrors(`${valuePath}.envFrom`, container.envFrom ?? []),
    ...mountErrors(`${valuePath}.volumeMounts`, container, pod.volumes),
    ...deviceErrors(`${valuePath}.volumeDevices`, container, pod.volumes),
    ...requiredOneOf(`${valuePath}.imagePullPolicy`, imagePullPolicy, ['Always', 'IfNotPresent', 'Never']),
    ...resourceRequirements(`${valuePath}.resources`, resources ?? {}, pod.claims),
    ...resizePolicyErrors(`${valuePath}.resizePolicy`, resizePolicy, pod.spec.restartPolicy),
    ...(securityContext ? securityContextErrors(`${valuePath}.securityContext`, securityContext, hostUsers) : []),
  ]
}

function portErrors(field: string, ports: readonly ContainerPort[]): FieldError[] {
  const errors: FieldError[] = []
  const names = new Set<string>()
  for (const [index, { name, containerPort, hostPort, protocol }] of ports.entries()) {
    const valuePath = `${field}[${index}]`
    if (name !== undefined) {
      const texts = portNameProblems(name)
      if (texts.length > 0) appendAll(errors, problems(`${valuePath}.name`, name, texts))
      else if (names.has(name)) errors.push(duplicate(`${valuePath}.name`, name))
      names.add(name)
    }
    appendAll(
      errors,
      containerPort ? portNumber(`${valuePath}.containerPort`, containerPort) : [required(`${valuePath}.containerPort`)],
    )
    if (hostPort) appendAll(errors, portNumber(`${valuePath}.hostPort`, hostPort))
    appendAll(errors, requiredOneOf(`${valuePath}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']))
  }
  return errors
}

/** Upstream: AccumulateUniqueHostPorts. */
function hostPortConflicts(field: string, containers: readonly Container[]): FieldError[] {
  const errors: FieldError[] = []
  const takenPorts = new Set<string>()
  for (const [index, container] of containers.entries()) {
    for (const [portIndex, { protocol, hostIP = '', hostPort }] of (container.ports ?? []).entries()) {
      if (!hostPort) continue
      const port = `${protocol}/${hostIP}/${hostPort}`
      if (takenPorts.has(port)) errors.push(duplicate(`${field}[${index}].ports[${portIndex}].hostPort`, port))
      takenPorts.add(port)
    }
  }
  return errors
}

/** Upstream: IsRelaxedEnvVarName. */
function envNameProblems(name: string): string[] {
  if (/^[ -<>-~]+$/.test(name)) return []
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

function environmentErrors(field: string, variables: readonly EnvVar[]): FieldError[] {
  return variables.flatMap((variable, index) => [
    ...(variable.name
      ? problems(`${field}[${index}].name`, variable.name, envNameProblems(variable.name))
      : [required(`${field}[${index}].name`)]),
    ...valueFromErrors(`${field}[${index}].valueFrom`, variable),
  ])
}

function valueFromErrors(valuePath: string, { value, valueFrom: from }: EnvVar): FieldError[] {
  if (!from) return []
  const errors: FieldError[] = []
  if (from.fieldRef) appendAll(errors, fieldSelector(`${valuePath}.fieldRef`, from.fieldRef, EnvFields))
  if (from.resourceFieldRef)
    appendAll(errors, resourceFieldSelector(`${valuePath}.resourceFieldRef`, from.resourceFieldRef, false))
  for (const kind of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const reference = from[kind]
    if (!reference) continue
    appendAll(errors, subdomain(`${valuePath}.${kind}.name`, reference.name ?? ''))
    const key = `${valuePath}.${kind}.key`
    appendAll(errors, reference.key ? problems(key, reference.key, keyProblems(reference.key)) : [required(key)])
  }
  const count = Object.keys(from).length
  if (count === 0) {
    const choices = '`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
    errors.push(invalid(valuePath, '', `must specify one of: ${choices}`))
  } else if (value) errors.push(invalid(valuePath, '', 'may not be specified when `value` is not empty'))
  else if (count > 1) errors.push(invalid(valuePath, '', 'may not have more than one field specified at a time'))
  return errors
}

function environmentFromErrors(field: string, sources: readonly EnvFromSource[]): FieldError[] {
  return sources.flatMap(({ prefix, configMapRef, secretRef }, index) => {
    const valuePath = `${field}[${index}]`
    const errors = prefix ? problems(`${valuePath}.prefix`, prefix, envNameProblems(prefix)) : []
    if (configMapRef && !configMapRef.name) errors.push(required(`${valuePath}.configMapRef.name`))
    if (secretRef && !secretRef.name) errors.push(required(`${valuePath}.secretRef.name`))
    // Upstream reports the path of the list, not of the item.
    if (!configMapRef && !secretRef) errors.push(invalid(field, '', 'must specify one of: `configMapRef` or `secretRef`'))
    if (configMapRef && secretRef) errors.push(invalid(field, '', 'may not have more than one field specified at a time'))
    return errors
  })
}

function mountErrors(field: string, container: Container, volumes: Volumes): FieldError[] {
  const errors: FieldError[] = []
  const paths = new Set<string>()
  const devices = container.volumeDevices ?? []
  const [deviceNames, devicePaths] = [
    new Set(devices.map(({ name }) => name)),
    new Set(devices.map(({ devicePath }) => devicePath)),
  ]
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const valuePath = `${field}[${index}]`
    const { name, mountPath, subPath, subPathExpr } = mount
    if (!name) errors.push(required(`${valuePath}.name`))
    if (!volumes.has(name)) errors.push(missing(`${valuePath}.name`, name))
    if (!mountPath) errors.push(required(`${valuePath}.mountPath`))
    if (paths.has(mountPath)) errors.push(invalid(`${valuePath}.mountPath`, mountPath, 'must be unique'))
    paths.add(mountPath)
    if (deviceNames.has(name)) {
      errors.push(invalid(`${valuePath}.name`, name, 'must not already exist in volumeDevices'))
    }
    if (devicePaths.has(mountPath)) {
      errors.push(invalid(`${valuePath}.mountPath`, mountPath, 'must not already exist as a path in volumeDevices'))
    }
    // In all following errors except `mutually exclusive`, upstream reports the path of the list, not of the mount.
    if (subPath) appendAll(errors, descendingPath(`${field}.subPath`, subPath))
    if (subPathExpr) {
      if (subPath) errors.push(invalid(`${valuePath}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive'))
      appendAll(errors, descendingPath(`${field}.subPathExpr`, subPathExpr))
    }
    appendAll(errors, propagationErrors(field, mount, container.securityContext))
  }
  return errors
}

function propagationErrors(
  field: string,
  { mountPropagation, recursiveReadOnly, readOnly }: VolumeMount,
  context: SecurityContext | undefined,
): FieldError[] {
  const errors: FieldError[] = []
  if (mountPropagation !== undefined) {
    appendAll(errors, oneOf(`${field}.mountPropagation`, mountPropagation, ['Bidirectional', 'HostToContainer', 'None']))
    if (mountPropagation === 'Bidirectional' && context?.privileged !== true) {
      const text = 'Bidirectional mount propagation is available only to privileged containers'
      errors.push(forbidden(`${field}.mountPropagation`, text))
    }
  }
  const valuePath = `${field}.recursiveReadOnly`
  if (recursiveReadOnly === 'Enabled' || recursiveReadOnly === 'IfPossible') {
    if (!readOnly) errors.push(forbidden(valuePath, 'may only be specified when readOnly is true'))
    if (mountPropagation !== undefined && mountPropagation !== 'None') {
      errors.push(forbidden(valuePath, 'may only be specified when mountPropagation is None or not specified'))
    }
  } else if (recursiveReadOnly !== undefined && recursiveReadOnly !== 'Disabled') {
    errors.push(notSupported(valuePath, recursiveReadOnly, ['Disabled', 'Enabled', 'IfPossible']))
  }
  return errors
}

function deviceErrors(field: string, { volumeDevices = [], volumeMounts = [] }: Container, volumes: Volumes): FieldError[] {
  const errors: FieldError[] = []
  const [names, paths] = [new Set<string>(), new Set<string>()]
  const mountNames = new Set(volumeMounts.map(({ name }) => name))
  const mountPaths = new Set(volumeMounts.map(({ mountPath }) => mountPath))
  for (const [index, { name, devicePath }] of volumeDevices.entries()) {
    const valuePath = `${field}[${index}]`
    const volume = volumes.get(name)
    if (!name) errors.push(required(`${valuePath}.name`))
    if (names.has(name)) addError(errors, () => invalid(`${valuePath}.name`, name, 'must be unique'))
    if (volume && !volume.persistentVolumeClaim && !volume.ephemeral) {
      const text = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
      errors.push(invalid(`${valuePath}.name`, name, text))
    }
    if (!volume) addError(errors, () => missing(`${valuePath}.name`, name))
    if (!devicePath) errors.push(required(`${valuePath}.devicePath`))
    if (paths.has(devicePath)) errors.push(invalid(`${valuePath}.devicePath`, devicePath, 'must be unique'))
    if (hasBackstep(devicePath)) errors.push(invalid(`${valuePath}.devicePath`, devicePath, "can not contain backsteps ('..')"))
    else paths.add(devicePath)
    if (mountNames.has(name)) {
      errors.push(invalid(`${valuePath}.name`, name, 'must not already exist in volumeMounts'))
    }
    if (mountPaths.has(devicePath)) {
      errors.push(invalid(`${valuePath}.devicePath`, devicePath, 'must not already exist as a path in volumeMounts'))
    }
    if (name) names.add(name)
  }
  return errors
}

function resizePolicyErrors(
  field: string,
  policies: readonly { resourceName: string; restartPolicy: string }[],
  podRestartPolicy: string | undefined,
): FieldError[] {
  const errors: FieldError[] = []
  const seenResources = new Set<string>()
  for (const { resourceName, restartPolicy: policy } of policies) {
    if (seenResources.has(resourceName)) errors.push(duplicate(field, resourceName))
    seenResources.add(resourceName)
    appendAll(errors, requiredOneOf(field, resourceName, ['cpu', 'memory']))
    appendAll(errors, requiredOneOf(field, policy, ['NotRequired', 'RestartContainer']))
    if (podRestartPolicy === 'Never' && policy !== 'NotRequired') {
      errors.push(invalid(field, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    }
  }
  return errors
}

function restartPolicyErrors(
  valuePath: string,
  { restartPolicy: policy, restartPolicyRules: rules = [] }: Container,
): FieldError[] {
  const errors: FieldError[] = []
  if (policy !== undefined) appendAll(errors, oneOf(`${valuePath}.restartPolicy`, policy, ['Always', 'Never', 'OnFailure']))
  else if (rules.length > 0) {
    errors.push(required(`${valuePath}.restartPolicy`, 'must specify restartPolicy when restart rules are used'))
  }
  for (const [index, { action, exitCodes }] of rules.entries()) {
    const rulePath = `${valuePath}.restartPolicyRules[${index}]`
    appendAll(errors, oneOf(`${rulePath}.action`, action, ['Restart', 'RestartAllContainers']))
    if (exitCodes) appendAll(errors, oneOf(`${rulePath}.exitCodes.operator`, exitCodes.operator, ['In', 'NotIn']))
    else errors.push(required(`${rulePath}.exitCodes`, 'must be specified'))
  }
  return errors
}

function lifecycleAndProbeErrors(
  valuePath: string,
  container: Container,
  { terminationGracePeriodSeconds: grace = 30 }: PodSpec,
): FieldError[] {
  const { lifecycle } = container
  const errors: FieldError[] = []
  for (const moment of ['postStart', 'preStop'] as const) {
    const handler = lifecycle?.[moment]
    if (handler) appendAll(errors, handlerErrors(`${valuePath}.lifecycle.${moment}`, handler, grace))
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    const probe = container[name]
    if (!probe) continue
    const probePath = `${valuePath}.${name}`
    appendAll(errors, probeErrors(probePath, probe, grace))
    if (name === 'readinessProbe') {
      const seconds = probe.terminationGracePeriodSeconds
      if (seconds !== undefined) {
        errors.push(invalid(`${probePath}.terminationGracePeriodSeconds`, seconds, 'must not be set for readinessProbes'))
      }
    } else if (probe.successThreshold !== 1) {
      errors.push(invalid(`${probePath}.successThreshold`, probe.successThreshold, 'must be 1'))
    }
  }
  return errors
}

const ProbeCounts = ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'] as const

function probeErrors(valuePath: string, probe: Probe, grace: number): FieldError[] {
  const errors = [...handlerErrors(valuePath, probe, grace), ...nonNegative(valuePath, probe, ...ProbeCounts)]
  const seconds = probe.terminationGracePeriodSeconds
  if (seconds !== undefined && seconds <= 0) {
    errors.push(invalid(`${valuePath}.terminationGracePeriodSeconds`, seconds, 'must be greater than 0'))
  }
  return errors
}

type Handler = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'> & { sleep?: { seconds: number } }

/** Upstream: validateHandler. Every handler after the first is an error. */
function handlerErrors(valuePath: string, { exec, httpGet, tcpSocket, grpc, sleep }: Handler, grace: number): FieldError[] {
  const checks: [string, (() => FieldError[]) | undefined][] = [
    ['exec', exec && (() => (exec.command?.length ? [] : [required(`${valuePath}.exec.command`)]))],
    ['httpGet', httpGet && (() => httpGetErrors(`${valuePath}.httpGet`, httpGet))],
    ['tcpSocket', tcpSocket && (() => portNumberOrName(`${valuePath}.tcpSocket.port`, tcpSocket.port))],
    ['grpc', grpc && (() => portNumber(`${valuePath}.grpc.port`, grpc.port))],
    ['sleep', sleep && (() => sleepErrors(`${valuePath}.sleep`, sleep.seconds, grace))],
  ]
  const handlers = checks.filter(([, check]) => check)
  if (handlers.length === 0) return [required(valuePath, 'must specify a handler type')]
  return handlers.flatMap(([name, check], index) =>
    index === 0 ? check!() : [forbidden(`${valuePath}.${name}`, 'may not specify more than 1 handler type')],
  )
}

function httpGetErrors(valuePath: string, { path, port, scheme, httpHeaders = [] }: NonNullable<Probe['httpGet']>): FieldError[] {
  return [
    ...(path ? [] : [required(`${valuePath}.path`)]),
    ...portNumberOrName(`${valuePath}.port`, port),
    ...oneOf(`${valuePath}.scheme`, scheme, ['HTTP', 'HTTPS']),
    ...httpHeaders.flatMap(({ name }) =>
      /^[-A-Za-z0-9]+$/.test(name) ? [] : [invalid(`${valuePath}.httpHeaders`, name, HeaderText)],
    ),
  ]
}
const HeaderText =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"

const sleepErrors = (valuePath: string, seconds: number, grace: number): FieldError[] =>
  seconds < 0 || seconds > grace
    ? [invalid(valuePath, seconds, `must be non-negative and less than terminationGracePeriodSeconds (${grace})`)]
    : []

/** Upstream: ValidateSecurityContext. */
function securityContextErrors(valuePath: string, context: SecurityContext, hostUsers: boolean): FieldError[] {
  const {
    runAsUser,
    runAsGroup,
    procMount,
    seccompProfile,
    appArmorProfile,
    allowPrivilegeEscalation,
    privileged,
    capabilities,
  } = context
  const errors = [...userId(`${valuePath}.runAsUser`, runAsUser), ...userId(`${valuePath}.runAsGroup`, runAsGroup)]
  if (procMount !== undefined) {
    appendAll(errors, oneOf(`${valuePath}.procMount`, procMount, ['Default', 'Unmasked']))
    if (hostUsers && procMount === 'Unmasked') {
      errors.push(invalid(`${valuePath}.procMount`, procMount, '`hostUsers` must be false to use `Unmasked`'))
    }
  }
  appendAll(errors, profile(`${valuePath}.seccompProfile`, seccompProfile, 'seccomp', 'seccompProfile'))
  if (allowPrivilegeEscalation === false) {
    if (privileged)
      errors.push(invalid(valuePath, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'))
    if (capabilities?.add?.includes('CAP_SYS_ADMIN')) {
      errors.push(
        invalid(valuePath, context, 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'),
      )
    }
  }
  appendAll(errors, windowsOptionErrors(`${valuePath}.windowsOptions`, context.windowsOptions))
  return [...errors, ...profile(`${valuePath}.appArmorProfile`, appArmorProfile, 'AppArmor', 'appArmorProfile')]
}

export const userId = (field: string, id: number | undefined): FieldError[] =>
  id === undefined ? [] : inRange(field, id, 0, 2147483647)

/** Validates a seccomp or AppArmor profile. @param noun `seccomp` or `AppArmor` @param member name of the field that has the profile */
export function profile(
  valuePath: string,
  value: { type: string; localhostProfile?: string } | undefined,
  noun: string,
  member: string,
): FieldError[] {
  if (!value) return []
  const { type, localhostProfile } = value
  const errors: FieldError[] = []
  const types = ['Localhost', 'RuntimeDefault', 'Unconfined']
  if (!type) errors.push(required(`${valuePath}.type`, `type is required when ${member} is set`))
  else appendAll(errors, oneOf(`${valuePath}.type`, type, types))
  const field = `${valuePath}.localhostProfile`
  if (type === 'Localhost') {
    if (localhostProfile === undefined) errors.push(required(field, `must be set when ${noun} type is Localhost`))
    else
      appendAll(
        errors,
        noun === 'seccomp' ? descendingPath(field, localhostProfile) : appArmorNameErrors(field, localhostProfile),
      )
  } else if (localhostProfile !== undefined) {
    errors.push(invalid(field, noun === 'seccomp' ? value : localhostProfile, `can only be set when ${noun} type is Localhost`))
  }
  return errors
}

function appArmorNameErrors(field: string, name: string): FieldError[] {
  if (name === '') return [required(field, 'must be set when AppArmor type is Localhost')]
  return [
    ...(name.trim() === name ? [] : [invalid(field, name, 'must not be padded with whitespace')]),
    ...(new TextEncoder().encode(name).length > 4095 ? [tooLong(field, 4095)] : []),
  ]
}
