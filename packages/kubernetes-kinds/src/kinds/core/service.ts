import { dnsLabelProblems, equal } from '@capstan/kube'
import { kindState } from '../../kind-state.ts'
import type { BuiltinKind } from '../builtin-kind.ts'
import { ageColumn, at, column, field, list, nameColumn, orNone, pairs, text, wide } from '../columns.ts'
import type { Service, ServiceSpec } from '../schemas/types.ts'
import {
  isExternal,
  needsHealthCheck,
  validateService,
  validateServiceStatus,
  validateServiceUpdate,
} from '../service/validate.ts'

export const services: BuiltinKind<Service> = {
  createsOnUpdate: true,
  returnsDeleted: true,
  names: dnsLabelProblems,
  selectableFields: { 'spec.clusterIP': field('spec', 'clusterIP'), 'spec.type': field('spec', 'type') },
  columns: [
    nameColumn,
    column('Type', (o) => text(o, 'spec', 'type')),
    column('Cluster-IP', (o) => orNone(text(o, 'spec', 'clusterIP'))),
    column('External-IP', (o) => externalAddress(o as unknown as Service)),
    column('Port(s)', (o) =>
      orNone(
        list<{ port: number; nodePort?: number; protocol?: string }>(o, 'spec', 'ports')
          .map(({ port, nodePort, protocol = 'TCP' }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol}`)
          .join(','),
      ),
    ),
    ageColumn,
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector'))),
  ],
  default({ spec, status }) {
    spec.sessionAffinity ??= 'None'
    if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
    if (spec.sessionAffinity === 'ClientIP' && spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined) {
      spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: 10800 } }
    }
    spec.type ??= 'ClusterIP'
    for (const port of spec.ports ?? []) port.targetPort ||= port.port
    if (isExternal(spec)) spec.externalTrafficPolicy ??= 'Cluster'
    if (spec.type === 'ExternalName') return
    spec.internalTrafficPolicy ??= 'Cluster'
    if (spec.type !== 'LoadBalancer') return
    spec.allocateLoadBalancerNodePorts ??= true
    for (const ingress of status.loadBalancer.ingress ?? []) if (ingress.ip) ingress.ipMode ??= 'VIP'
  },
  prepare(service, old, { subresource, server }) {
    const { spec } = service
    if (subresource === 'status') return
    if (!old) {
      service.status = { loadBalancer: {} }
      if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP]
    } else {
      dropTypeDependentFields(spec, old.spec)
      if (spec.type !== 'LoadBalancer') service.status = { ...service.status, loadBalancer: {} }
      keepAllocated(spec, old.spec)
      linkAddresses(spec, old.spec)
    }
    kindState(server).serviceAddresses.allocate(service, old)
    if (spec.type === 'ExternalName') delete spec.internalTrafficPolicy
  },
  warnings: (service, _, { subresource }) => (subresource === undefined ? serviceWarnings(service) : []),
  validate(service, old, { subresource }) {
    if (subresource === 'status') return validateServiceStatus(service)
    return old ? validateServiceUpdate(service, old) : validateService(service)
  },
}

/** Upstream: GetWarningsForService, except for warnings about the notation of addresses. */
function serviceWarnings({ metadata, spec }: Service): string[] {
  const hints = 'service.kubernetes.io/topology-aware-hints'
  const { type = '', externalIPs = [], externalName, loadBalancerIP, sessionAffinity, trafficDistribution } = spec
  const isHeadless = type === 'ClusterIP' && spec.clusterIP === 'None'
  const isExternalName = type === 'ExternalName'
  const warnings: readonly (readonly [boolean, string])[] = [
    [
      metadata.annotations?.[hints] !== undefined,
      `annotation ${hints} is deprecated, please use service.kubernetes.io/topology-mode instead`,
    ],
    [isHeadless && Boolean(loadBalancerIP), 'spec.loadBalancerIP is ignored for headless services'],
    [isHeadless && externalIPs.length > 0, 'spec.externalIPs is ignored for headless services'],
    [isHeadless && sessionAffinity !== 'None', 'spec.SessionAffinity is ignored for headless services'],
    [
      !isHeadless && !isExternalName && externalIPs.length > 0,
      'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
    ],
    [isExternalName && externalIPs.length > 0, 'spec.externalIPs is ignored when spec.type is "ExternalName"'],
    [!isExternalName && Boolean(externalName), 'spec.externalName is ignored when spec.type is not "ExternalName"'],
    [trafficDistribution === 'PreferClose', 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
  ]
  return warnings.flatMap(([applies, text]) => (applies ? [text] : []))
}

/** Drops fields that the new type does not have and that the client left unchanged. Upstream: dropTypeDependentFields. */
function dropTypeDependentFields(spec: ServiceSpec, old: ServiceSpec): void {
  const same = (member: keyof ServiceSpec) => equal(spec[member], old[member])
  if (spec.type === 'ExternalName' && old.type !== 'ExternalName') {
    if (same('clusterIP') && same('clusterIPs')) {
      delete spec.clusterIP
      delete spec.clusterIPs
    }
    if (same('ipFamilies')) delete spec.ipFamilies
    if (same('ipFamilyPolicy')) delete spec.ipFamilyPolicy
  }
  const nodePortsOf = ({ ports = [] }: ServiceSpec) => ports.map(({ nodePort }) => nodePort ?? 0)
  if (hasNodePorts(old) && !hasNodePorts(spec) && equal(nodePortsOf(spec), nodePortsOf(old))) {
    for (const port of spec.ports ?? []) delete port.nodePort
  }
  if (needsHealthCheck(old) && !needsHealthCheck(spec) && same('healthCheckNodePort')) delete spec.healthCheckNodePort
  if (old.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    if (same('allocateLoadBalancerNodePorts')) delete spec.allocateLoadBalancerNodePorts
    if (same('loadBalancerClass')) delete spec.loadBalancerClass
  }
  if (isExternal(old) && !isExternal(spec) && same('externalTrafficPolicy')) delete spec.externalTrafficPolicy
}

const hasNodePorts = ({ type }: ServiceSpec): boolean => type === 'NodePort' || type === 'LoadBalancer'

/**
 * Keeps allocated addresses and ports that the client omits. A port keeps its nodePort if its protocol and number are unchanged. Upstream:
 * patchAllocatedValues.
 */
function keepAllocated(spec: ServiceSpec, old: ServiceSpec): void {
  if (spec.type !== 'ExternalName' && old.type !== 'ExternalName') {
    if (!spec.clusterIP && old.clusterIP) spec.clusterIP = old.clusterIP
    if (!spec.clusterIPs?.length && old.clusterIPs && spec.clusterIP === old.clusterIP) spec.clusterIPs = old.clusterIPs
  }
  if (hasNodePorts(spec) && hasNodePorts(old)) {
    const oldNodePorts = new Map((old.ports ?? []).map(({ protocol, port, nodePort }) => [`${protocol} ${port}`, nodePort]))
    const used = new Set((spec.ports ?? []).map(({ nodePort }) => nodePort))
    for (const port of spec.ports ?? []) {
      const nodePort = oldNodePorts.get(`${port.protocol} ${port.port}`)
      if (!port.nodePort && nodePort && !used.has(nodePort)) port.nodePort = nodePort
    }
  }
  if (needsHealthCheck(spec) && needsHealthCheck(old) && old.healthCheckNodePort)
    spec.healthCheckNodePort ??= old.healthCheckNodePort
}

/**
 * Sets clusterIPs for clients that know only clusterIP. If clusterIP is unchanged, restores omitted clusterIPs. If only clusterIP was
 * changed, sets clusterIPs to it; if only clusterIP was removed, removes clusterIPs. Upstream: normalizeClusterIPs.
 */
function linkAddresses(spec: ServiceSpec, old: ServiceSpec): void {
  const isSame = equal(spec.clusterIPs ?? [], old.clusterIPs ?? [])
  if (old.clusterIPs?.length && !spec.clusterIPs?.length && spec.clusterIP === old.clusterIP) spec.clusterIPs = old.clusterIPs
  if (spec.clusterIP === old.clusterIP || !isSame) return
  if (spec.clusterIP) spec.clusterIPs = [spec.clusterIP]
  else delete spec.clusterIPs
}

/** Upstream: getServiceExternalIP. */
function externalAddress({ spec, status }: Service): string {
  const externalIPs = spec.externalIPs ?? []
  switch (spec.type) {
    case 'ExternalName':
      return spec.externalName ?? ''
    case 'LoadBalancer': {
      const addresses = (status.loadBalancer.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname ?? '').filter(Boolean)
      const externalAddresses = [...addresses, ...externalIPs]
      return externalAddresses.length > 0 ? externalAddresses.join(',') : '<pending>'
    }
    case undefined:
    default:
      return externalIPs.length > 0 ? externalIPs.join(',') : '<none>'
  }
}
