/** Parses IP addresses. Upstream: Go's net/netip, without zones. */

/** Returns the value of an IPv4 address; `undefined` for any other text, also with leading zeros. */
export function readIPv4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined
  return parts.reduce((address, part) => (address << 8n) | BigInt(part), 0n)
}

/** Returns the value of an IPv6 address; `undefined` for any other text. */
export function readIPv6(text: string): bigint | undefined {
  // The last 32 bits may be written as an IPv4 address.
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text)
  const last = dotted && readIPv4(dotted[2]!)
  if (dotted && last === undefined) return undefined
  const plain = dotted ? `${dotted[1]}${(last! >> 16n).toString(16)}:${(last! & 0xffffn).toString(16)}` : text
  const sides = plain.split('::')
  if (sides.length > 2) return undefined
  const groups = sides.map((side) => (side === '' ? [] : side.split(':')))
  const [head = [], tail] = groups
  const missing = 8 - head.length - (tail?.length ?? 0)
  if (tail ? missing < 1 : missing !== 0) return undefined
  const allGroups = [...head, ...Array.from({ length: missing }, () => '0'), ...(tail ?? [])]
  if (!allGroups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return allGroups.reduce((address, group) => (address << 16n) | BigInt(`0x${group}`), 0n)
}
