/** CEL functions for IP addresses and CIDR blocks. Upstream: apiserver/pkg/cel/library/ip.go and cidr.go. */
import { readIPv4, readIPv6 } from '../../ip-address.ts'
import type { Library } from '../signature.ts'
import { EvaluationError, Opaque } from '../value.ts'

class IP extends Opaque {
  readonly type = 'net.IP'
  readonly bits: 32 | 128
  readonly address: bigint
  constructor(bits: 32 | 128, address: bigint) {
    super()
    this.bits = bits
    this.address = address
  }
  equals(other: Opaque): boolean {
    return other instanceof IP && other.bits === this.bits && other.address === this.address
  }
}

class CIDR extends Opaque {
  readonly type = 'net.CIDR'
  readonly ip: IP
  readonly length: number
  constructor(ip: IP, length: number) {
    super()
    this.ip = ip
    this.length = length
  }
  equals(other: Opaque): boolean {
    return other instanceof CIDR && other.length === this.length && other.ip.equals(this.ip)
  }
}

function readIP(text: string): IP | undefined {
  const address4 = readIPv4(text)
  if (address4 !== undefined) return new IP(32, address4)
  const address6 = readIPv6(text)
  // IPv4-mapped IPv6 addresses are invalid, as upstream.
  return address6 === undefined || address6 >> 32n === 0xffffn ? undefined : new IP(128, address6)
}

function parseIP(text: string): IP {
  const ip = readIP(text)
  if (!ip)
    throw new EvaluationError(`IP Address ${JSON.stringify(text)} parse error during conversion from string: unable to parse IP`)
  return ip
}

function textOf({ bits, address }: IP): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 0xffn).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => ((address >> BigInt(112 - 16 * index)) & 0xffffn).toString(16))
  // `::` replaces the longest run of at least two zero groups, the first of several runs of the same length.
  let [start, size] = [0, 1]
  for (let from = 0; from < 8; from++) {
    let to = from
    while (to < 8 && groups[to] === '0') to++
    if (to - from > size) [start, size] = [from, to - from]
  }
  if (size < 2) return groups.join(':')
  return `${groups.slice(0, start).join(':')}::${groups.slice(start + size).join(':')}`
}

function readCIDR(text: string): CIDR | undefined {
  const [address = '', length = '', ...extraParts] = text.split('/')
  const ip = readIP(address)
  if (!ip || extraParts.length > 0 || !/^(?:0|[1-9]\d{0,2})$/.test(length) || Number(length) > ip.bits) return undefined
  return new CIDR(ip, Number(length))
}

function parseCIDR(text: string): CIDR {
  const cidr = readCIDR(text)
  if (!cidr)
    throw new EvaluationError(`network address parse error during conversion from string: ${JSON.stringify(text)} is not a CIDR`)
  return cidr
}

const networkOf = ({ bits, address }: IP, length: number): bigint => address >> BigInt(bits - length)
const masked = ({ ip, length }: CIDR): CIDR => {
  const hostBits = BigInt(ip.bits - length)
  return new CIDR(new IP(ip.bits, (ip.address >> hostBits) << hostBits), length)
}
const containsIP = (cidr: CIDR, ip: IP): boolean =>
  cidr.ip.bits === ip.bits && networkOf(cidr.ip, cidr.length) === networkOf(ip, cidr.length)
const containsCIDR = (outer: CIDR, inner: CIDR): boolean => outer.length <= inner.length && containsIP(outer, inner.ip)

/** Reports whether one of the networks contains the address. */
const within = (ip: IP, ...networks: string[]): boolean => networks.some((network) => containsIP(parseCIDR(network), ip))
const isUnspecified = ({ address }: IP) => address === 0n
const isLoopback = (ip: IP) => within(ip, '127.0.0.0/8', '::1/128')
const isLinkLocalUnicast = (ip: IP) => within(ip, '169.254.0.0/16', 'fe80::/10')
const isMulticast = (ip: IP) => within(ip, '224.0.0.0/4', 'ff00::/8')
const isGlobalUnicast = (ip: IP) =>
  !isUnspecified(ip) && !isLoopback(ip) && !isMulticast(ip) && !isLinkLocalUnicast(ip) && !within(ip, '255.255.255.255/32')
const cidrText = ({ ip, length }: CIDR) => `${textOf(ip)}/${length}`

export const net: Library = {
  'ip(string): IP': parseIP,
  'isIP(string): bool': (text: string) => readIP(text) !== undefined,
  'ip.isCanonical(string): bool': (text: string) => textOf(parseIP(text)) === text,
  'string(IP): string': textOf,
  'IP.family(): int': ({ bits }: IP) => (bits === 32 ? 4n : 6n),
  'IP.isUnspecified(): bool': isUnspecified,
  'IP.isLoopback(): bool': isLoopback,
  'IP.isLinkLocalMulticast(): bool': (ip: IP) =>
    within(ip, '224.0.0.0/24') || (ip.bits === 128 && ((ip.address >> 112n) & 0xff0fn) === 0xff02n),
  'IP.isLinkLocalUnicast(): bool': isLinkLocalUnicast,
  'IP.isGlobalUnicast(): bool': isGlobalUnicast,
  'cidr(string): CIDR': parseCIDR,
  'isCIDR(string): bool': (text: string) => readCIDR(text) !== undefined,
  'string(CIDR): string': cidrText,
  'CIDR.containsIP(IP): bool': containsIP,
  'CIDR.containsIP(string): bool': (cidr: CIDR, text: string) => containsIP(cidr, parseIP(text)),
  'CIDR.containsCIDR(CIDR): bool': containsCIDR,
  'CIDR.containsCIDR(string): bool': (cidr: CIDR, text: string) => containsCIDR(cidr, parseCIDR(text)),
  'CIDR.ip(): IP': ({ ip }: CIDR) => ip,
  'CIDR.masked(): CIDR': masked,
  'CIDR.prefixLength(): int': ({ length }: CIDR) => BigInt(length),
}
