/** Decodes and quotes text as Go does. When decoded, each byte of invalid UTF-8 becomes the replacement character. */
import { quotedGoChar } from '@capstan/kube'

/** Decodes the content of a JSON string. A lone surrogate becomes the replacement character. */
export function goString(bytes: Uint8Array): string {
  const text = goText(bytes)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string).toWellFormed() : text
}

/** Decodes UTF-8. Each invalid byte becomes the replacement character. */
export function goText(bytes: Uint8Array): string {
  return strictText(bytes) ?? byteByByte(bytes)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8; returns `undefined` for invalid bytes. */
export function strictText(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Replaces each invalid byte; TextDecoder would replace an incomplete character as a whole. */
function byteByByte(bytes: Uint8Array): string {
  let text = ''
  for (let position = 0; position < bytes.length; ) {
    const length = lengthOf(bytes[position]!)
    const char = strictText(bytes.subarray(position, position + length))
    text += char ?? '\ufffd'
    position += char === undefined ? 1 : length
  }
  return text
}

/** Returns the length of a character in bytes, by its first byte; 1 if no character begins with this byte. */
const lengthOf = (first: number): number => (first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1)

/** Quotes bytes as Go's `%q` does, and adds `suffix`, unescaped, before the closing quote. Upstream: strconv.Quote, Go 1.26. */
export function goQuoted(bytes: Uint8Array, suffix = ''): string {
  let text = ''
  for (let position = 0; position < bytes.length; ) {
    const length = lengthOf(bytes[position]!)
    const char = strictText(bytes.subarray(position, position + length))
    text += char === undefined ? `\\x${bytes[position]!.toString(16)}` : quotedGoChar(char)
    position += char === undefined ? 1 : length
  }
  return `"${text}${suffix}"`
}
