/** What is not wrong with a pod, but probably not meant. Upstream: pkg/api/pod/warnings.go and pkg/api/node/util.go, v1.36. */
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

type Changed = { readonly metadata: { readonly generation?: number } }

/** Of an object that pods are made from: they are given again when it changes. */
export const templateWarnings = (
  field: string,
  template: PodTemplateSpec | undefined,
  now: Changed,
  old: Changed | undefined,
): string[] => (!template || (old && now.metadata.generation === old.metadata.generation) ? [] : podWarnings(field, template))

/** @param field of the template, such as `spec.template`; empty for a pod */
export function podWarnings(field: string, { metadata, spec }: Pick<PodTemplateSpec, 'metadata' | 'spec'>): string[] {
  const below = field === '' ? '' : `${field}.`
  const at = `${below}spec`
  const texts = Object.keys(spec.nodeSelector ?? {}).flatMap((label) => labelWarning(`${at}.nodeSelector[${label}]`, label))
  texts.push(...affinityWarnings(`${at}.affinity`, spec))
  for (const [index, { topologyKey, labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const here = `${at}.topologySpreadConstraints[${index}]`
    const text = deprecatedLabels[topologyKey]
    if (text !== undefined) texts.push(`${here}.topologyKey: ${topologyKey} is ${text}`)
    if (!labelSelector) texts.push(`${here}.labelSelector: a null labelSelector results in matching no pod`)
  }
  for (const [annotation, text] of Object.entries(deprecatedAnnotations)) {
    if (metadata.annotations?.[annotation] !== undefined) texts.push(`${below}metadata.annotations[${annotation}]: ${text}`)
  }
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    for (const [source, text] of Object.entries(deprecatedVolumes)) {
      if (Object.hasOwn(volume, source)) texts.push(`${at}.volumes[${index}].${text}`)
    }
  }
  texts.push(
    ...repeated(
      (spec.hostAliases ?? []).map(({ ip }) => ip),
      (index, ip) => `${at}.hostAliases[${index}].ip: duplicate ip "${ip}"`,
    ),
  )
  const secrets = (spec.imagePullSecrets ?? []).map(({ name = '' }) => name)
  texts.push(...repeated(secrets, (index, name) => `${at}.imagePullSecrets[${index}].name: duplicate name "${name}"`))
  for (const [index, name] of secrets.entries()) {
    if (name === '') texts.push(`${at}.imagePullSecrets[${index}].name: invalid empty name ""`)
  }
  const { annotations = {} } = metadata
  const noSeccomp = (name: string): void => {
    if (annotations[name] === undefined) return
    texts.push(`${below}metadata.annotations[${name}]: non-functional in v1.27+; use the "seccompProfile" field instead`)
  }
  if (!spec.securityContext?.seccompProfile) noSeccomp('seccomp.security.alpha.kubernetes.io/pod')
  const placed = placedContainers(at, spec)
  for (const [here, container] of placed) {
    if (!container.securityContext?.seccompProfile) noSeccomp(`container.seccomp.security.alpha.kubernetes.io/${container.name}`)
    // Of its own a pod is told when the annotations are put into the fields.
    if (field !== '') texts.push(...appArmorWarning(`${below}metadata.annotations`, { metadata, spec }, container))
    texts.push(...fractionWarnings(here, container), ...environmentWarnings(here, container))
  }
  texts.push(...portWarnings(placed))
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    texts.push(`${at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`)
  }
  return texts
}

const labelWarning = (field: string, label: string): string[] =>
  deprecatedLabels[label] === undefined ? [] : [`${field}: ${deprecatedLabels[label]}`]

function affinityWarnings(at: string, { affinity = {} }: PodSpec): string[] {
  const [must, should] = [
    'requiredDuringSchedulingIgnoredDuringExecution',
    'preferredDuringSchedulingIgnoredDuringExecution',
  ] as const
  const { nodeAffinity } = affinity
  const terms: [string, NodeSelectorTerm][] = [
    ...(nodeAffinity?.[must]?.nodeSelectorTerms ?? []).map((term, index): [string, NodeSelectorTerm] => [
      `${at}.nodeAffinity.${must}.nodeSelectorTerms[${index}]`,
      term,
    ]),
    ...(nodeAffinity?.[should] ?? []).map(({ preference }, index): [string, NodeSelectorTerm] => [
      `${at}.nodeAffinity.${should}[${index}].preference`,
      preference,
    ]),
  ]
  const texts = terms.flatMap(([field, { matchExpressions = [] }]) =>
    matchExpressions.flatMap(({ key }, index) => {
      const text = deprecatedLabels[key]
      return text === undefined ? [] : [`${field}.matchExpressions[${index}].key: ${key} is ${text}`]
    }),
  )
  const nothing = 'a null labelSelector results in matching no pod'
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    for (const [index, { labelSelector }] of (affinity[kind]?.[must] ?? []).entries()) {
      if (!labelSelector) texts.push(`${at}.${kind}.${must}[${index}].labelSelector: ${nothing}`)
    }
    for (const [index, { podAffinityTerm }] of (affinity[kind]?.[should] ?? []).entries()) {
      if (!podAffinityTerm.labelSelector)
        texts.push(`${at}.${kind}.${should}[${index}].podAffinityTerm.labelSelector: ${nothing}`)
    }
  }
  return texts
}

function repeated(values: readonly string[], text: (index: number, value: string) => string): string[] {
  return values.flatMap((value, index) => (values.indexOf(value) < index ? [text(index, value)] : []))
}

type Placed = readonly [field: string, container: Container]

/** As of who writes `128m`, and means megabytes. */
export function fractionWarnings(
  at: string,
  { resources }: Pick<Container, 'resources'>,
  names = ['memory', 'ephemeral-storage'],
): string[] {
  return names.flatMap((name) =>
    (['limits', 'requests'] as const).flatMap((member) => {
      const amount = resources?.[member]?.[name]
      if (amount === undefined || parseQuantity(String(amount)).nano % 1_000_000_000n === 0n) return []
      return [`${at}.resources.${member}[${name}]: fractional byte value "${amount}" is invalid, must be an integer`]
    }),
  )
}

function environmentWarnings(at: string, { env = [] }: Container): string[] {
  return env.flatMap(({ name, value = '', valueFrom }, index) => {
    if (env.findIndex((other) => other.name === name) === index) return []
    // What builds upon the value before is meant.
    const isMeant = !valueFrom && value.includes(`$(${name})`) && value !== `$(${name})`
    return isMeant ? [] : [`${at}.env[${index}]: hides previous definition of "${name}", which may be dropped when using apply`]
  })
}

function portWarnings(containers: readonly Placed[]): string[] {
  const texts: string[] = []
  const all: [field: string, port: ContainerPort][] = containers.flatMap(([at, { ports = [] }]) =>
    ports.map((port, index): [string, ContainerPort] => [`${at}.ports[${index}]`, port]),
  )
  for (const [index, [field, port]] of all.entries()) {
    if (port.hostIP && !port.hostPort) {
      const { name = '', containerPort, protocol, hostIP } = port
      const text = `{Name:${name} HostPort:0 ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`
      texts.push(`${field}: hostIP set without hostPort: ${text}`)
    }
    for (const [other, earlier] of all.slice(0, index)) {
      if (earlier.containerPort !== port.containerPort || earlier.protocol !== port.protocol) continue
      const [hostPort, otherPort] = [port.hostPort ?? 0, earlier.hostPort ?? 0]
      if (port.hostIP === earlier.hostIP && hostPort === otherPort)
        texts.push(`${field}: duplicate port definition with ${other}`)
      else if (hostPort === 0 || otherPort === 0) texts.push(`${field}: overlapping port definition with ${other}`)
      else if (hostPort === otherPort && !port.hostIP !== !earlier.hostIP) {
        texts.push(`${field}: dangerously ambiguous port definition with ${other}`)
      }
    }
  }
  const names = new Map<string, string>()
  for (const [field, { name }] of all) {
    if (name === undefined) continue
    const other = names.get(name)
    if (other === undefined) names.set(name, field)
    else {
      const text = `services and probes that select ports by name will use ${other}`
      texts.push(`${field}: duplicate port name "${name}" with ${other}, ${text}`)
    }
  }
  return texts
}
