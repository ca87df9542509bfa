/** Text as Go reads it from bytes: whatever is no UTF-8 is the replacement character, byte by byte. */
import { quotedGoChar } from '@capstan/kube'

/** Decodes the content of a JSON string. A lone surrogate becomes the replacement character. */
export function goString(bytes: Uint8Array): string {
  const text = goText(bytes)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string).toWellFormed() : text
}

export function goText(bytes: Uint8Array): string {
  return strictText(bytes) ?? byteByByte(bytes)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** `undefined` when some of it is no UTF-8. */
export function strictText(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** TextDecoder would replace the beginning of a character as a whole. */
function byteByByte(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const length = lengthOf(bytes[at]!)
    const char = strictText(bytes.subarray(at, at + length))
    text += char ?? '\ufffd'
    at += char === undefined ? 1 : length
  }
  return text
}

/** How many bytes a character has that begins so. */
const lengthOf = (first: number): number => (first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1)

/** Bytes, and `more` after them, in double quotes as Go prints them with `%q`. Upstream: strconv.Quote, Go 1.26. */
export function goQuoted(bytes: Uint8Array, more = ''): string {
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const length = lengthOf(bytes[at]!)
    const char = strictText(bytes.subarray(at, at + length))
    text += char === undefined ? `\\x${bytes[at]!.toString(16)}` : quotedGoChar(char)
    at += char === undefined ? 1 : length
  }
  return `"${text}${more}"`
}
