/** Label values for names that may not be valid ones. Upstream: util/labels/format. */

const ValidLabelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/
const LongestLabelValue = 63

/** The name itself where a label may hold it, otherwise a short hash of it: `hash_<base64url>_z`. */
export function labelValue(name: string): string {
  if (name.length <= LongestLabelValue && ValidLabelValue.test(name)) return name
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(fnv32a(name))
  return `hash_${bytes.toString('base64url')}_z`
}

/** The 32-bit FNV-1a hash of a text's UTF-8 bytes. */
export function fnv32a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
