/** IP addresses and CIDR blocks. Upstream: apimachinery's pkg/util/validation and pkg/apis/core/validation, v1.36. */
import { BlockList, isIP, isIPv4 } from 'node:net'
import { type FieldError, invalid } from '@capstan/kube'

/** Validates an IP address; returns error texts. */
export function addressProblems(address: string): string[] {
  if (isIP(address) !== 0 && !address.includes('%')) return []
  // Leading zeros in an IPv4 address, which older servers accepted, have their own error text.
  const stripped = address.replaceAll(/(^|\.)0+(?=\d)/g, '$1')
  return isIPv4(stripped) ? ['must not have leading 0s'] : ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']
}

export const addressErrors = (path: string, address: string): FieldError[] =>
  addressProblems(address).map((text) => invalid(path, address, text))

/** Returns the errors of an address of an endpoint, which must not be unspecified, loopback or link-local. */
export function endpointAddressErrors(path: string, address: string): FieldError[] {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  if (/^[0.:]*$/.test(address)) return [invalid(path, address, `may not be unspecified (${address})`)]
  const range = ranges.find(({ list }) => list.check(address, family))
  return range ? [invalid(path, address, range.text)] : []
}

const rangeOf = (text: string, ...subnets: readonly (readonly [string, number])[]) => {
  const list = new BlockList()
  for (const [address, bits] of subnets) list.addSubnet(address, bits, isIPv4(address) ? 'ipv4' : 'ipv6')
  return { list, text: `may not be in the ${text}` }
}

const ranges = [
  rangeOf('loopback range (127.0.0.0/8, ::1/128)', ['127.0.0.0', 8], ['::1', 128]),
  rangeOf('link-local range (169.254.0.0/16, fe80::/10)', ['169.254.0.0', 16], ['fe80::', 10]),
  // Upstream's text names ff02::/10. Its check covers ff02::/16 and, unlike this list, the same scope with other flags (ff12::/16).
  rangeOf('link-local multicast range (224.0.0.0/24, ff02::/10)', ['224.0.0.0', 24], ['ff02::', 16]),
]

/** A CIDR block. */
export interface Block {
  readonly address: string
  /** Length of the prefix. */
  readonly bits: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Parses a CIDR block; returns `undefined` if the address or the length of the prefix is invalid. */
export function parseBlock(text: string): Block | undefined {
  const [address = '', bits = '', ...extraParts] = text.split('/')
  const kind = isIP(address)
  if (kind === 0 || address.includes('%') || extraParts.length > 0 || !/^\d{1,3}$/.test(bits)) return undefined
  if (Number(bits) > (kind === 4 ? 32 : 128)) return undefined
  return { address, bits: Number(bits), family: kind === 4 ? 'ipv4' : 'ipv6' }
}

/** Reports whether the block contains the address. */
export function contains({ address, bits, family }: Block, candidate: string): boolean {
  if ((isIPv4(candidate) ? 'ipv4' : 'ipv6') !== family) return false
  const list = new BlockList()
  list.addSubnet(address, bits, family)
  return list.check(candidate, family)
}

/** Returns the bits of an address as a number. */
export function bitsOf(address: string): bigint {
  if (isIPv4(address)) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail] = address.split('::')
  const groups = (text: string): string[] =>
    text === '' ? [] : text.split(':').flatMap((group) => (group.includes('.') ? halves(group) : [group]))
  const [left, right] = [groups(head), groups(tail ?? '')]
  const filled = [
    ...left,
    ...Array.from({ length: tail === undefined ? 0 : 8 - left.length - right.length }, () => '0'),
    ...right,
  ]
  return filled.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n)
}

/** Converts an IPv4 address at the end of an IPv6 address to two groups of the IPv6 address. */
function halves(address: string): string[] {
  const bits = bitsOf(address)
  return [(bits >> 16n).toString(16), (bits & 0xffffn).toString(16)]
}

/** Validates a CIDR block. `withHostBits` accepts bits beyond the prefix, as older fields do. */
export function blockErrors(path: string, text: string, withHostBits: boolean): FieldError[] {
  const block = parseBlock(text)
  if (!block) return [invalid(path, text, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
  const width = block.family === 'ipv4' ? 32 : 128
  const hostBits = bitsOf(block.address) & ((1n << BigInt(width - block.bits)) - 1n)
  return withHostBits || hostBits === 0n ? [] : [invalid(path, text, 'must not have bits set beyond the prefix length')]
}
