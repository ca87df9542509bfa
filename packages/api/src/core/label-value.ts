/** Computes label values from names that may be invalid as label values. Upstream: util/labels/format, v1.14. */
import { labelValueProblems } from '@capstan/kube'

/** Returns the name if it is a valid label value, otherwise a short hash of it: `hash_<base64url>_z`. */
export function labelValue(name: string): string {
  if (labelValueProblems(name).length === 0) return name
  const hash = fnv32a(name)
  const bytes = [24, 16, 8, 0].map((shift) => String.fromCharCode((hash >>> shift) & 0xff)).join('')
  return `hash_${btoa(bytes).replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_')}_z`
}

/** Returns the 32-bit FNV-1a hash of the UTF-8 bytes of a text. */
export function fnv32a(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
