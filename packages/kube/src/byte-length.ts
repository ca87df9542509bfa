const encoder = new TextEncoder()

/** Returns the length of a text in UTF-8 bytes. Does not encode ASCII text, because encoding many short texts is slow. */
export function byteLength(text: string): number {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) return encoder.encode(text).length
  return text.length
}
