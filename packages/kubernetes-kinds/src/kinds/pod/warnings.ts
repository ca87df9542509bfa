/** Warnings for valid pods with a probable mistake or a deprecated field. Upstream: pkg/api/pod/warnings.go and pkg/api/node/util.go, v1.36. */
import { parseQuantity } from '@capstan/kube'
import type { Container, ContainerPort, NodeSelectorTerm, PodSpec, PodTemplateSpec } from '../schemas/types.ts'
import { appArmorWarning } from './annotations.ts'
import { placedContainers } from './placed-containers.ts'

const deprecatedLabels: { readonly [label: string]: string } = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods': 'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
}

const deprecatedAnnotations: { readonly [annotation: string]: string } = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
}

const deprecatedVolumes: { readonly [source: string]: string } = {
  photonPersistentDisk: 'photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'gitRepo: deprecated in v1.11, and disabled by default in v1.33+',
  scaleIO: 'scaleIO: deprecated in v1.16, non-functional in v1.22+',
  flocker: 'flocker: deprecated in v1.22, non-functional in v1.25+',
  storageos: 'storageOS: deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'quobyte: deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'glusterfs: deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'cephfs: deprecated in v1.28, non-functional in v1.31+',
  rbd: 'rbd: deprecated in v1.28, non-functional in v1.31+',
}

type HasGeneration = { readonly metadata: { readonly generation?: number } }

/** Returns the warnings for a pod template; none for an update that does not change the generation of its object. */
export const templateWarnings = (
  field: string,
  template: PodTemplateSpec | undefined,
  now: HasGeneration,
  old: HasGeneration | undefined,
): string[] => (!template || (old && now.metadata.generation === old.metadata.generation) ? [] : podWarnings(field, template))

/**
 * Maximum number of warnings of a pod. A response contains fewer, because the texts of its warnings are limited to about 4,096 characters
 * (see warning-headers.ts of apiserver). Without the maximum, n equal ports would cause about n²/2 warnings.
 */
const MaxWarnings = 1000

/**
 * Returns the warnings for a pod or pod template, at most 1,000.
 * @param field path of the template, such as `spec.template`; empty for a pod
 */
export const podWarnings = (field: string, template: Pick<PodTemplateSpec, 'metadata' | 'spec'>): string[] => [
  ...take(warningsOf(field, template), MaxWarnings),
]

function* take<T>(items: Iterable<T>, limit: number): Generator<T> {
  let remaining = limit
  for (const item of items) {
    if (remaining-- <= 0) return
    yield item
  }
}

function* warningsOf(field: string, { metadata, spec }: Pick<PodTemplateSpec, 'metadata' | 'spec'>): Generator<string> {
  const prefix = field === '' ? '' : `${field}.`
  const valuePath = `${prefix}spec`
  for (const label of Object.keys(spec.nodeSelector ?? {})) yield* labelWarning(`${valuePath}.nodeSelector[${label}]`, label)
  yield* affinityWarnings(`${valuePath}.affinity`, spec)
  for (const [index, { topologyKey, labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const constraintPath = `${valuePath}.topologySpreadConstraints[${index}]`
    const text = deprecatedLabels[topologyKey]
    if (text !== undefined) yield `${constraintPath}.topologyKey: ${topologyKey} is ${text}`
    if (!labelSelector) yield `${constraintPath}.labelSelector: a null labelSelector results in matching no pod`
  }
  for (const [annotation, text] of Object.entries(deprecatedAnnotations)) {
    if (metadata.annotations?.[annotation] !== undefined) yield `${prefix}metadata.annotations[${annotation}]: ${text}`
  }
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    for (const [source, text] of Object.entries(deprecatedVolumes)) {
      if (Object.hasOwn(volume, source)) yield `${valuePath}.volumes[${index}].${text}`
    }
  }
  for (const [index, ip] of duplicatesOf((spec.hostAliases ?? []).map(({ ip }) => ip)))
    yield `${valuePath}.hostAliases[${index}].ip: duplicate ip "${ip}"`
  const secrets = (spec.imagePullSecrets ?? []).map(({ name = '' }) => name)
  for (const [index, name] of duplicatesOf(secrets))
    yield `${valuePath}.imagePullSecrets[${index}].name: duplicate name "${name}"`
  for (const [index, name] of secrets.entries()) {
    if (name === '') yield `${valuePath}.imagePullSecrets[${index}].name: invalid empty name ""`
  }
  const { annotations = {} } = metadata
  const seccompWarning = (name: string): string[] =>
    annotations[name] === undefined
      ? []
      : [`${prefix}metadata.annotations[${name}]: non-functional in v1.27+; use the "seccompProfile" field instead`]
  if (!spec.securityContext?.seccompProfile) yield* seccompWarning('seccomp.security.alpha.kubernetes.io/pod')
  const hasAnnotations = Object.keys(annotations).length > 0
  const placed = placedContainers(valuePath, spec)
  for (const [containerPath, container] of placed) {
    if (hasAnnotations && !container.securityContext?.seccompProfile)
      yield* seccompWarning(`container.seccomp.security.alpha.kubernetes.io/${container.name}`)
    // For pods, adoptAppArmorAnnotations returns this warning.
    if (hasAnnotations && field !== '') yield* appArmorWarning(`${prefix}metadata.annotations`, { metadata, spec }, container)
    if (container.resources) yield* fractionWarnings(containerPath, container)
    if (container.env) yield* environmentWarnings(containerPath, container)
  }
  yield* portWarnings(placed)
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    yield `${valuePath}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`
  }
}

const labelWarning = (field: string, label: string): string[] =>
  deprecatedLabels[label] === undefined ? [] : [`${field}: ${deprecatedLabels[label]}`]

function affinityWarnings(valuePath: string, { affinity = {} }: PodSpec): string[] {
  const [required, preferred] = [
    'requiredDuringSchedulingIgnoredDuringExecution',
    'preferredDuringSchedulingIgnoredDuringExecution',
  ] as const
  const { nodeAffinity } = affinity
  const terms: [string, NodeSelectorTerm][] = [
    ...(nodeAffinity?.[required]?.nodeSelectorTerms ?? []).map((term, index): [string, NodeSelectorTerm] => [
      `${valuePath}.nodeAffinity.${required}.nodeSelectorTerms[${index}]`,
      term,
    ]),
    ...(nodeAffinity?.[preferred] ?? []).map(({ preference }, index): [string, NodeSelectorTerm] => [
      `${valuePath}.nodeAffinity.${preferred}[${index}].preference`,
      preference,
    ]),
  ]
  const texts = terms.flatMap(([field, { matchExpressions = [] }]) =>
    matchExpressions.flatMap(({ key }, index) => {
      const text = deprecatedLabels[key]
      return text === undefined ? [] : [`${field}.matchExpressions[${index}].key: ${key} is ${text}`]
    }),
  )
  const nullSelectorText = 'a null labelSelector results in matching no pod'
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    for (const [index, { labelSelector }] of (affinity[kind]?.[required] ?? []).entries()) {
      if (!labelSelector) texts.push(`${valuePath}.${kind}.${required}[${index}].labelSelector: ${nullSelectorText}`)
    }
    for (const [index, { podAffinityTerm }] of (affinity[kind]?.[preferred] ?? []).entries()) {
      if (!podAffinityTerm.labelSelector)
        texts.push(`${valuePath}.${kind}.${preferred}[${index}].podAffinityTerm.labelSelector: ${nullSelectorText}`)
    }
  }
  return texts
}

/** Yields the values that equal an earlier value, with their index. */
function* duplicatesOf(values: readonly string[]): Generator<[index: number, value: string]> {
  const earlierValues = new Set<string>()
  for (const [index, value] of values.entries()) {
    if (earlierValues.has(value)) yield [index, value]
    earlierValues.add(value)
  }
}

type Placed = readonly [field: string, container: Container]

/** Returns warnings about fractional bytes of the resources `names`. They are usually a mistake: `128m` instead of `128M`. */
export function fractionWarnings(
  valuePath: string,
  { resources }: Pick<Container, 'resources'>,
  names = ['memory', 'ephemeral-storage'],
): string[] {
  return names.flatMap((name) =>
    (['limits', 'requests'] as const).flatMap((member) => {
      const amount = resources?.[member]?.[name]
      if (amount === undefined || parseQuantity(String(amount)).nano % 1_000_000_000n === 0n) return []
      return [`${valuePath}.resources.${member}[${name}]: fractional byte value "${amount}" is invalid, must be an integer`]
    }),
  )
}

function environmentWarnings(valuePath: string, { env = [] }: Container): string[] {
  const earlierNames = new Set<string>()
  return env.flatMap(({ name, value = '', valueFrom }, index) => {
    if (!earlierNames.has(name)) {
      earlierNames.add(name)
      return []
    }
    // A value that extends the previous value of the variable is intended.
    const isIntended = !valueFrom && value.includes(`$(${name})`) && value !== `$(${name})`
    return isIntended
      ? []
      : [`${valuePath}.env[${index}]: hides previous definition of "${name}", which may be dropped when using apply`]
  })
}

interface PlacedPort {
  readonly index: number
  readonly field: string
  readonly port: ContainerPort
}

/**
 * Yields warnings about ports that conflict with an earlier port, ports with the name of an earlier port, and host addresses without a host
 * port. The lookup by the keys of `groupsOf` finds only conflicting ports, so that the work is linear in the number of ports and warnings.
 */
function* portWarnings(containers: readonly Placed[]): Generator<string> {
  const earlier = new Map<string, PlacedPort[]>()
  const names = new Map<string, string>()
  const repeatedNames: string[] = []
  let index = 0
  for (const [valuePath, { ports = [] }] of containers) {
    for (const [portIndex, port] of ports.entries()) {
      const field = `${valuePath}.ports[${portIndex}]`
      const placed = { index: index++, field, port }
      if (port.hostIP && !port.hostPort) {
        const { name = '', containerPort, protocol, hostIP } = port
        const text = `{Name:${name} HostPort:0 ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`
        yield `${field}: hostIP set without hostPort: ${text}`
      }
      for (const earlierPort of conflictingPorts(earlier, port))
        yield `${field}: ${conflictKind(port, earlierPort.port)} port definition with ${earlierPort.field}`
      for (const key of groupsOf(port)) {
        const group = earlier.get(key)
        if (!group) earlier.set(key, [placed])
        // A full group needs no further ports: a later port that conflicts with the group causes the maximum number of warnings already.
        else if (group.length < MaxWarnings) group.push(placed)
      }

      const { name } = port
      if (name === undefined) continue
      const first = names.get(name)
      if (first === undefined) names.set(name, field)
      else {
        const text = `services and probes that select ports by name will use ${first}`
        repeatedNames.push(`${field}: duplicate port name "${name}" with ${first}, ${text}`)
      }
    }
  }
  yield* repeatedNames
}

/** Returns the keys under which later ports look up a port: its number and protocol; these and its host port; these and its host address. */
function groupsOf({ containerPort, protocol, hostPort = 0, hostIP = '' }: ContainerPort): string[] {
  const number = `${containerPort}/${protocol}`
  return [number, `${number} ${hostPort}`, `${number} ${hostPort} ${hostIP}`]
}

/**
 * Returns the earlier ports that a port conflicts with, in order. A port without a host port conflicts with all ports of its number and
 * protocol.
 */
function conflictingPorts(earlier: ReadonlyMap<string, readonly PlacedPort[]>, port: ContainerPort): readonly PlacedPort[] {
  const [number, hostPortKey, hostIPKey] = groupsOf(port) as [string, string, string]
  if (!port.hostPort) return earlier.get(number) ?? []
  const keys = [`${number} 0`, ...(port.hostIP ? [`${hostPortKey} `, hostIPKey] : [hostPortKey])]
  return keys.flatMap((key) => earlier.get(key) ?? []).sort((a, b) => a.index - b.index)
}

function conflictKind(port: ContainerPort, earlier: ContainerPort): 'duplicate' | 'overlapping' | 'dangerously ambiguous' {
  const [hostPort, otherPort] = [port.hostPort ?? 0, earlier.hostPort ?? 0]
  if ((port.hostIP ?? '') === (earlier.hostIP ?? '') && hostPort === otherPort) return 'duplicate'
  return hostPort === 0 || otherPort === 0 ? 'overlapping' : 'dangerously ambiguous'
}
