const encoder = new TextEncoder()

/** Returns the length of a text in UTF-8. Encodes only non-ASCII text: encoding 200,000 short values takes long. */
export function byteLength(text: string): number {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) return encoder.encode(text).length
  return text.length
}
