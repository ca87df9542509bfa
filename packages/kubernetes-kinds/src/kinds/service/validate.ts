/** Validates Services. Upstream: validateService and ValidateServiceUpdate, v1.36. */
import { isIP } from 'node:net'
import {
  addError,
  addInvalid,
  appendAll,
  duplicate,
  eachInPieces,
  equal,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  repeats,
  required,
  type Work,
} from '@capstan/kube'
import {
  dnsLabel,
  inRange,
  ipAddress,
  ipAddressProblems,
  labels,
  oneOf,
  portNumber,
  portNumberOrName,
  qualifiedName,
  requiredOneOf,
  subdomain,
} from '../checks.ts'
import { blockErrors, endpointAddressErrors } from '../addresses.ts'
import type { Service, ServicePort, ServiceSpec } from '../schemas/types.ts'

export function* validateService({ spec }: Service): Work<FieldError[]> {
  const { type = '', ports = [], clusterIPs = [], externalName = '', sessionAffinity, sessionAffinityConfig } = spec
  const errors: FieldError[] = []
  if (ports.length === 0 && !isHeadless(spec) && type !== 'ExternalName') errors.push(required('spec.ports'))
  if ((type === 'LoadBalancer' || type === 'NodePort') && isHeadless(spec)) {
    errors.push(invalid('spec.clusterIPs[0]', clusterIPs[0], `may not be set to 'None' for ${type} services`))
  }
  if (type === 'ExternalName') {
    const text = 'may not be set for ExternalName services'
    if (clusterIPs.length > 0) errors.push(forbidden('spec.clusterIPs', text))
    if (spec.ipFamilies?.length) errors.push(forbidden('spec.ipFamilies', text))
    if (spec.ipFamilyPolicy !== undefined) errors.push(forbidden('spec.ipFamilyPolicy', text))
    const name = externalName.replace(/\.$/, '')
    appendAll(errors, name ? subdomain('spec.externalName', name) : [required('spec.externalName')])
  }
  appendAll(errors, yield* portErrors(ports), labels('spec.selector', spec.selector))
  appendAll(errors, requiredOneOf('spec.sessionAffinity', sessionAffinity, ['ClientIP', 'None']))
  if (sessionAffinity === 'ClientIP') {
    const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds
    if (seconds === undefined) errors.push(required('spec.sessionAffinityConfig', 'when session affinity type is ClientIP'))
    else if (seconds <= 0 || seconds > 86400) {
      const valuePath = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds'
      errors.push(invalid(valuePath, seconds, 'must be greater than 0 and less than 86400'))
    }
  } else if (sessionAffinity === 'None' && sessionAffinityConfig) {
    errors.push(forbidden('spec.sessionAffinityConfig', 'must not be set when session affinity is None'))
  }
  yield
  appendAll(errors, clusterIPErrors(spec))
  yield* eachInPieces((spec.externalIPs ?? []).entries(), ([index, ip]) => {
    appendAll(errors, endpointIP(`spec.externalIPs[${index}]`, ip))
  })
  appendAll(errors, requiredOneOf('spec.type', type, ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']))
  appendAll(errors, portConflicts(type, ports))
  if (spec.loadBalancerSourceRanges?.length) {
    const valuePath = 'spec.LoadBalancerSourceRanges'
    if (type !== 'LoadBalancer') errors.push(forbidden(valuePath, "may only be used when `type` is 'LoadBalancer'"))
    yield* eachInPieces(spec.loadBalancerSourceRanges.entries(), ([index, rangeText]) => {
      const range = rangeText.trim()
      appendAll(errors, blockErrors(`${valuePath}[${index}]`, range, true))
    })
  }
  if (spec.allocateLoadBalancerNodePorts !== undefined && type !== 'LoadBalancer') {
    errors.push(forbidden('spec.allocateLoadBalancerNodePorts', "may only be used when `type` is 'LoadBalancer'"))
  }
  if (spec.loadBalancerClass !== undefined) {
    if (type === 'LoadBalancer') appendAll(errors, qualifiedName('spec.loadBalancerClass', spec.loadBalancerClass))
    else errors.push(forbidden('spec.loadBalancerClass', "may only be used when `type` is 'LoadBalancer'"))
  }
  return [...errors, ...trafficErrors(spec)]
}

export function* validateServiceUpdate(service: Service, old: Service): Work<FieldError[]> {
  const errors: FieldError[] = []
  const [now, before] = [service.spec, old.spec]
  if (now.type !== 'ExternalName' && before.type !== 'ExternalName') {
    appendAll(errors, addressChanges(now, before), familyChanges(now, before))
  }
  if (now.type === 'LoadBalancer' && before.type === 'LoadBalancer' && now.loadBalancerClass !== before.loadBalancerClass) {
    errors.push(invalid('spec.loadBalancerClass', now.loadBalancerClass, 'may not change once set'))
  }
  if (needsHealthCheck(now) && needsHealthCheck(before) && now.healthCheckNodePort !== before.healthCheckNodePort) {
    errors.push(forbidden('spec.healthCheckNodePort', 'field is immutable'))
  }
  return [...errors, ...(yield* validateService(service))]
}

export const isHeadless = ({ clusterIPs }: ServiceSpec): boolean => clusterIPs?.length === 1 && clusterIPs[0] === 'None'

/** Reports whether a Service accepts traffic from outside the cluster. Upstream: ExternallyAccessible. */
export const isExternal = ({ type, externalIPs }: ServiceSpec): boolean =>
  type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && (externalIPs ?? []).length > 0)

export const needsHealthCheck = ({ type, externalTrafficPolicy }: ServiceSpec): boolean =>
  type === 'LoadBalancer' && externalTrafficPolicy === 'Local'

function* portErrors(ports: readonly ServicePort[]): Work<FieldError[]> {
  const names = new Set<string>()
  const errors: FieldError[] = []
  yield* eachInPieces(ports.entries(), ([index, { name, port, protocol, targetPort, appProtocol }]) => {
    const valuePath = `spec.ports[${index}]`
    if (name !== undefined) {
      appendAll(errors, dnsLabel(`${valuePath}.name`, name))
      if (names.has(name)) errors.push(duplicate(`${valuePath}.name`, name))
      names.add(name)
    } else if (ports.length > 1) errors.push(required(`${valuePath}.name`))
    appendAll(errors, portNumber(`${valuePath}.port`, port))
    appendAll(errors, requiredOneOf(`${valuePath}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']))
    appendAll(errors, portNumberOrName(`${valuePath}.targetPort`, targetPort ?? port))
    if (appProtocol !== undefined) appendAll(errors, qualifiedName(`${valuePath}.appProtocol`, appProtocol))
  })
  return errors
}

function portConflicts(type: string, ports: readonly ServicePort[]): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, { nodePort }] of ports.entries()) {
    if (type === 'ClusterIP' && nodePort) {
      errors.push(forbidden(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'"))
    }
  }
  const takenPorts = new Set<string>()
  /** Adds the key; returns false if it was added before. */
  const take = (key: string): boolean => {
    if (takenPorts.has(key)) return false
    takenPorts.add(key)
    return true
  }
  for (const [index, { protocol, nodePort }] of ports.entries()) {
    if (nodePort && !take(`node ${protocol} ${nodePort}`)) errors.push(duplicate(`spec.ports[${index}].nodePort`, nodePort))
  }
  for (const [index, { protocol, port }] of ports.entries()) {
    if (take(`${protocol} ${port}`)) continue
    // Upstream prints its Go struct.
    const badValue = { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 }
    errors.push(duplicate(`spec.ports[${index}]`, badValue))
  }
  return errors
}

const Families = ['IPv4', 'IPv6']
export const familyOf = (ip: string): string => (isIP(ip) === 6 ? 'IPv6' : 'IPv4')

/** Validates the cluster IPs and the IP families of a Service. Upstream: ValidateServiceClusterIPsRelatedFields. */
export function clusterIPErrors({
  type,
  clusterIP,
  clusterIPs = [],
  ipFamilies = [],
  ipFamilyPolicy,
}: ServiceSpec): FieldError[] {
  if (type === 'ExternalName') return []
  const valuePath = 'spec.clusterIPs'
  const errors: FieldError[] = []
  if (clusterIP) {
    if (clusterIPs.length === 0) errors.push(required(valuePath))
    else if (clusterIPs[0] !== clusterIP) errors.push(invalid(valuePath, clusterIPs, 'first value must match `clusterIP`'))
  } else if (clusterIPs.length > 0) errors.push(invalid(valuePath, clusterIPs, 'must be empty when `clusterIP` is not specified'))
  const repeated = repeats(ipFamilies)
  for (const [index, family] of ipFamilies.entries()) {
    const valuePath = () => `spec.ipFamilies[${index}]`
    if (!Families.includes(family)) addError(errors, () => notSupported(valuePath(), family, Families))
    if (repeated[index]) addError(errors, () => duplicate(valuePath(), family))
  }
  if (ipFamilyPolicy !== undefined) {
    appendAll(errors, oneOf('spec.ipFamilyPolicy', ipFamilyPolicy, ['PreferDualStack', 'RequireDualStack', 'SingleStack']))
  }
  const addressErrors: FieldError[] = []
  for (const [index, ip] of clusterIPs.entries()) {
    if (index === 0 && ip === 'None') {
      if (clusterIPs.length > 1) addressErrors.push(invalid(valuePath, clusterIPs, "'None' must be the first and only value"))
    } else addInvalid(addressErrors, `${valuePath}[${index}]`, ip, ipAddressProblems(ip))
  }
  appendAll(errors, addressErrors)
  if (clusterIPs.length > 2) errors.push(invalid(valuePath, clusterIPs, 'may only hold up to 2 values'))
  if (addressErrors.length > 0) return errors
  if (clusterIPs.length > 1 && new Set(clusterIPs.map(familyOf)).size === 1) {
    errors.push(invalid(valuePath, clusterIPs, 'may specify no more than one IP for each IP family'))
  }
  if (clusterIPs[0] === 'None') return errors
  for (const [index, ip] of clusterIPs.entries()) {
    const family = ipFamilies[index]
    if (family === undefined || familyOf(ip) === family) continue
    errors.push(invalid(`${valuePath}[${index}]`, ip, `expected an ${family} value as indicated by \`ipFamilies[${index}]\``))
  }
  return errors
}

function addressChanges(now: ServiceSpec, before: ServiceSpec): FieldError[] {
  if (isHeadless(now) && isHeadless(before)) return []
  const [ips, old] = [now.clusterIPs ?? [], before.clusterIPs ?? []]
  const changed = (index: number) => invalid(`spec.clusterIPs[${index}]`, ips, 'may not change once set')
  if (ips.length === old.length) return old.flatMap((ip, index) => (ip === ips[index] ? [] : [changed(index)]))
  const errors: FieldError[] = []
  if (ips.length === 0) errors.push(invalid('spec.clusterIPs[0]', ips, 'primary clusterIP can not be unset'))
  else if (old.length > 0 && ips[0] !== old[0]) errors.push(changed(0))
  if (ips.length === 1 && old.length > 1 && now.ipFamilyPolicy !== 'SingleStack') {
    const text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
    errors.push(invalid('spec.ipFamilyPolicy', now.ipFamilyPolicy, text))
  }
  return errors
}

function familyChanges(now: ServiceSpec, before: ServiceSpec): FieldError[] {
  if (isHeadless(now) || isHeadless(before)) return []
  const [families, old] = [now.ipFamilies ?? [], before.ipFamilies ?? []]
  if (families.length === old.length) {
    return equal(families, old) ? [] : [invalid('spec.ipFamilies[0]', families, 'may not change once set')]
  }
  const errors: FieldError[] = []
  if (families.length > 0 && old.length > 0 && families[0] !== old[0]) {
    // Upstream's error contains the cluster IPs, not the families.
    errors.push(invalid('spec.ipFamilies[0]', now.clusterIPs, 'may not change once set'))
  }
  if (families.length === 1 && old.length > 1 && now.ipFamilyPolicy !== 'SingleStack') {
    const text = "must be set to 'SingleStack' when releasing the secondary ipFamily"
    errors.push(invalid('spec.ipFamilyPolicy', now.ipFamilyPolicy, text))
  }
  return errors
}

function trafficErrors(spec: ServiceSpec): FieldError[] {
  const { type, externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort, trafficDistribution } = spec
  const errors: FieldError[] = []
  if (isExternal(spec)) {
    appendAll(errors, requiredOneOf('spec.externalTrafficPolicy', externalTrafficPolicy, ['Cluster', 'Local']))
  } else if (externalTrafficPolicy) {
    const text = 'may only be set for externally-accessible services'
    errors.push(invalid('spec.externalTrafficPolicy', externalTrafficPolicy, text))
  }
  if (needsHealthCheck(spec)) {
    appendAll(
      errors,
      healthCheckNodePort
        ? inRange('spec.healthCheckNodePort', healthCheckNodePort, 1, 65535)
        : [required('spec.healthCheckNodePort')],
    )
  } else if (healthCheckNodePort) {
    const text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    errors.push(invalid('spec.healthCheckNodePort', healthCheckNodePort, text))
  }
  if (internalTrafficPolicy !== undefined) {
    appendAll(errors, oneOf('spec.internalTrafficPolicy', internalTrafficPolicy, ['Cluster', 'Local']))
  } else if (type && type !== 'ExternalName') errors.push(required('spec.internalTrafficPolicy'))
  const distributions = ['PreferClose', 'PreferSameZone', 'PreferSameNode']
  if (trafficDistribution !== undefined && !distributions.includes(trafficDistribution)) {
    errors.push(notSupported('spec.trafficDistribution', trafficDistribution, distributions))
  }
  return errors
}

/** Upstream: ValidateLoadBalancerStatus. */
export function validateServiceStatus({ spec, status }: Service): FieldError[] {
  const { ingress = [] } = status.loadBalancer
  const valuePath = 'status.loadBalancer.ingress'
  if (spec.type !== 'LoadBalancer' && ingress.length > 0) {
    return [forbidden(valuePath, "may only be used when `spec.type` is 'LoadBalancer'")]
  }
  return ingress.flatMap(({ ip, ipMode, hostname }, index) => {
    const errors: FieldError[] = []
    if (ip) appendAll(errors, ipAddress(`${valuePath}[${index}].ip`, ip))
    if (ip && ipMode === undefined) {
      errors.push(required(`${valuePath}[${index}].ipMode`, 'must be specified when `ip` is set'))
    } else if (!ip && ipMode !== undefined) {
      errors.push(forbidden(`${valuePath}[${index}].ipMode`, 'may not be specified when `ip` is not set'))
    } else if (ipMode !== undefined) appendAll(errors, oneOf(`${valuePath}[${index}].ipMode`, ipMode, ['Proxy', 'VIP']))
    if (hostname) {
      appendAll(errors, subdomain(`${valuePath}[${index}].hostname`, hostname))
      if (isIP(hostname) !== 0)
        errors.push(invalid(`${valuePath}[${index}].hostname`, hostname, 'must be a DNS name, not an IP address'))
    }
    return errors
  })
}

/**
 * Returns an error for a text that is not an IP address, or for an address that is unspecified, loopback, link-local or link-local
 * multicast. Upstream: ValidateEndpointIP.
 */
export function endpointIP(field: string, ip: string): FieldError[] {
  const errors = ipAddress(field, ip)
  return errors.length > 0 ? errors : endpointAddressErrors(field, ip)
}
