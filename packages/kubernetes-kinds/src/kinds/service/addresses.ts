/** Allocates cluster IPs and node ports of Services. Upstream: pkg/registry/core/service/storage/alloc.go, v1.36. */
import { isIP } from 'node:net'
import { appendAll, type FieldError, invalid, invalidObject, type Random, StatusError, type UnknownObject } from '@capstan/kube'
import type { PendingWrites, Store } from '@capstan/apiserver/kinds'
import { parseBlock } from '../addresses.ts'
import type { Service, ServiceSpec } from '../schemas/types.ts'
import { clusterIPErrors, familyOf, isHeadless, needsHealthCheck } from './validate.ts'

/** A parsed range of IPv4 addresses, such as `10.0.0.0/24`. */
export interface AddressRange {
  readonly text: string
  /** The first address, as a number. */
  readonly base: number
  /** Number of addresses. */
  readonly size: number
}

/** Parses a range. @throws Error when the text is not a range of IPv4 addresses, or its prefix length is not between 8 and 30 */
export function parseRange(text: string): AddressRange {
  const block = parseBlock(text)
  if (block?.family !== 'ipv4' || block.bits < 8 || block.bits > 30) {
    throw new Error(
      `${JSON.stringify(text)} is not a range of IPv4 addresses for Services, with a prefix length from 8 to 30, such as 10.0.0.0/24`,
    )
  }
  const address = toNumber(block.address)
  const size = 2 ** (32 - block.bits)
  return { text, base: address - (address % size), size }
}

/** Returns the address of the Service `kubernetes` in `default`: the first address after the network address. */
export const firstAddress = ({ base }: AddressRange): string => toAddress(base + 1)

const toNumber = (ip: string): number => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
const toAddress = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')

/** Range of ports, both ends included. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

/**
 * Parses `30000-32767`, `30000+2767` or a single port.
 *
 * @throws Error when the text is not a range of ports
 */
export function parsePortRange(text: string): PortRange {
  const [, first = '', sign, end = ''] = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text) ?? []
  const range = { first: Number(first), last: sign === '+' ? Number(first) + Number(end) : Number(end || first) }
  if (range.first < 1 || range.last < range.first || range.last > 65535) {
    throw new Error(`${JSON.stringify(text)} is not a range of ports, such as 30000-32767`)
  }
  return range
}

/** Allocator of the addresses and ports of one server's Services. */
export class ServiceAddresses {
  readonly range: AddressRange
  readonly #ports: PortRange
  readonly #store: Store
  readonly #pending: PendingWrites
  readonly #random: Random

  constructor(range: AddressRange, ports: PortRange, store: Store, pending: PendingWrites, random: Random) {
    this.range = range
    this.#ports = ports
    this.#store = store
    this.#pending = pending
    this.#random = random
  }

  /**
   * Sets the IP families, cluster IP, node ports and health check port that a draft of a Service needs and lacks. Records the draft as a
   * pending write, so that concurrent writes do not use the same addresses and ports.
   *
   * @throws StatusError when the requested IP families, addresses or ports are invalid or not available, or when no address or port is free
   */
  allocate(service: Service, old: Service | undefined): void {
    const { spec } = service
    const errors = initFamilies(spec, old?.spec)
    if (errors.length === 0 && spec.type !== 'ExternalName' && !isHeadless(spec))
      appendAll(errors, this.#allocateAddress(service, old))
    if (errors.length === 0) appendAll(errors, this.#allocatePorts(service, old))
    if (errors.length > 0) throw invalidObject({ group: '', kind: 'Service' }, service.metadata.name ?? '', errors)
    this.#pending.add('services', asObject(service), old && asObject(old))
  }

  #others(service: Service): Service[] {
    const { namespace, name } = service.metadata
    const storedServices = this.#store.list('services') as unknown as readonly Service[]
    const pendingServices = this.#pending.of('services', asObject(service)).map(({ object }) => object as unknown as Service)
    return [...storedServices, ...pendingServices].filter(
      ({ metadata }) => metadata.namespace !== namespace || metadata.name !== name,
    )
  }

  #allocateAddress(service: Service, old: Service | undefined): FieldError[] {
    const { spec } = service
    const requestedIP = spec.clusterIPs?.[0]
    // An existing address stays; validation rejects a different address.
    if (requestedIP !== undefined && old?.spec.type !== 'ExternalName' && old?.spec.clusterIPs?.[0] !== undefined) return []
    const takenIPs = new Set(this.#others(service).flatMap(({ spec: { clusterIPs = [] } }) => clusterIPs))
    const { base, size, text } = this.range
    if (requestedIP !== undefined) {
      const offset = toNumber(requestedIP) - base
      const fail = (problem: string) => [
        invalid('spec.clusterIPs', spec.clusterIPs, `failed to allocate IP ${requestedIP}: ${problem}`),
      ]
      if (isIP(requestedIP) !== 4 || offset <= 0 || offset >= size - 1) {
        return fail(`the provided network does not match the current range`)
      }
      return takenIPs.has(requestedIP) ? fail('provided IP is already allocated') : []
    }
    // Low addresses are allocated last: they are for Services that request an address.
    const last = size - 2
    const lastLowOffset = last <= 16 ? 0 : Math.min(Math.max(16, Math.floor(last / 16)), 256)
    const addressAt = (offset: number) => toAddress(base + offset)
    const ip =
      this.#pick(lastLowOffset + 1, last + 1, addressAt, takenIPs) ?? this.#pick(1, lastLowOffset + 1, addressAt, takenIPs)
    if (ip === undefined) {
      return [invalid('spec.clusterIPs', [''], `failed to allocate a serviceIP: range is full (${text})`)]
    }
    spec.clusterIP = ip
    spec.clusterIPs = [ip]
    return []
  }

  #allocatePorts(service: Service, old: Service | undefined): FieldError[] {
    const { spec } = service
    const needsNodePorts =
      spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false)
    const oldNodePorts = new Set((old?.spec.ports ?? []).map(({ nodePort }) => nodePort))
    const takenPorts = new Set(
      this.#others(service).flatMap(({ spec: { ports = [], healthCheckNodePort } }) => [
        ...ports.map(({ nodePort }) => nodePort ?? 0),
        healthCheckNodePort ?? 0,
      ]),
    )
    const assignedPorts = new Map<number, number>()
    // Requested node ports by port number. Of several with one number, the first counts: the list is reversed, and a Map keeps the last.
    const requested = new Map(
      (spec.ports ?? [])
        .filter(({ nodePort }) => nodePort)
        .toReversed()
        .map((servicePort) => [servicePort.port, servicePort.nodePort]),
    )
    const usedPorts = new Set<number>()
    const errors: FieldError[] = []
    for (const [index, port] of (spec.ports ?? []).entries()) {
      if (port.nodePort) {
        const fail = (problem: string) => errors.push(invalid(`spec.ports[${index}].nodePort`, port.nodePort, problem))
        if (oldNodePorts.has(port.nodePort) || assignedPorts.get(port.port) === port.nodePort) continue
        if (spec.type === 'ClusterIP' || spec.type === 'ExternalName') continue
        const { first, last } = this.#ports
        if (port.nodePort < first || port.nodePort > last) {
          fail(`provided port is not in the valid range. The range of valid ports is ${first}-${last}`)
        } else if (takenPorts.has(port.nodePort) || usedPorts.has(port.nodePort)) fail('provided port is already allocated')
        assignedPorts.set(port.port, port.nodePort)
        usedPorts.add(port.nodePort)
      } else if (needsNodePorts) {
        // Ports with the same number and different protocols share a node port.
        port.nodePort = assignedPorts.get(port.port) ?? requested.get(port.port) ?? this.#pickPort(takenPorts)
        assignedPorts.set(port.port, port.nodePort)
        usedPorts.add(port.nodePort)
        takenPorts.add(port.nodePort)
      }
    }
    if (needsHealthCheck(spec)) spec.healthCheckNodePort ??= this.#pickPort(takenPorts)
    return errors
  }

  #pickPort(taken: ReadonlySet<number>): number {
    const port = this.#pick(this.#ports.first, this.#ports.last + 1, (candidate) => candidate, taken)
    if (port === undefined)
      throw new StatusError('InternalError', 'Internal error occurred: failed to allocate a nodePort: range is full')
    return port
  }

  /** Returns `make(n)` for a random `n` from `low` to `high - 1` whose value is not taken; `undefined` when all values are taken. */
  #pick<T extends string | number>(low: number, high: number, make: (n: number) => T, taken: ReadonlySet<T>): T | undefined {
    const count = high - low
    const start = Math.floor(this.#random.next() * count)
    for (let step = 0; step < count; step++) {
      const value = make(low + ((start + step) % count))
      if (!taken.has(value)) return value
    }
    return undefined
  }
}

const asObject = (service: Service): UnknownObject => service as unknown as UnknownObject

/** Sets the IP families and their policy, as in a cluster with IPv4 only. Returns the errors. Upstream: initIPFamilyFields. */
function initFamilies(spec: ServiceSpec, old: ServiceSpec | undefined): FieldError[] {
  if (spec.type === 'ExternalName') return []
  const isHeadlessWithoutSelector = spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? (isHeadlessWithoutSelector ? 'RequireDualStack' : 'SingleStack')
  const errors = clusterIPErrors(spec)
  if (errors.length > 0) return errors
  const isSingleStack = spec.ipFamilyPolicy === 'SingleStack'
  if (isSingleStack && spec.clusterIPs?.length === 2) {
    const text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"
    errors.push(invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, text))
  }
  if (isSingleStack && spec.ipFamilies?.length === 2) {
    const text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
    errors.push(invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, text))
  }
  for (const [index, ip] of (spec.clusterIPs ?? []).entries()) {
    if (ip === 'None') break
    if (spec.ipFamilies?.[index] !== undefined) continue
    if (familyOf(ip) !== 'IPv4') {
      errors.push(invalid(`spec.clusterIPs[${index}]`, spec.clusterIPs, `${familyOf(ip)} is not configured on this cluster`))
    } else spec.ipFamilies = [...(spec.ipFamilies ?? []), 'IPv4']
  }
  if (errors.length > 0) return errors
  if (isHeadlessWithoutSelector) {
    spec.ipFamilies ??= ['IPv4']
    if (spec.ipFamilies.length < 2 && !isSingleStack)
      spec.ipFamilies = [...spec.ipFamilies, spec.ipFamilies[0] === 'IPv4' ? 'IPv6' : 'IPv4']
    return []
  }
  if (spec.ipFamilyPolicy === 'RequireDualStack') {
    errors.push(invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, 'this cluster is not configured for dual-stack services'))
  }
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    if (family !== 'IPv4') errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'))
  }
  if (errors.length === 0) spec.ipFamilies ??= ['IPv4']
  return errors
}
