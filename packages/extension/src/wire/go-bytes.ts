/** Bytes in Go's JSON: standard base64 with padding; line breaks are ignored. Upstream: encoding/base64, Go 1.26. */
import { WireError } from './wire-error.ts'

/** Encodes bytes as base64. */
export const bytesBase64 = (bytes: readonly number[]): string => Buffer.from(bytes).toString('base64')
/** Decodes base64. Does not validate it; see `checkBase64`. */
export const base64Bytes = (text: string): Uint8Array => Buffer.from(text, 'base64')

/** Whether a text is base64 without line breaks, as encoders write it. */
export const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)

/** Validates base64. @throws WireError with the position at which Go fails */
export function checkBase64(text: string): void {
  if (isBase64(text)) return
  let position = 0
  const skipBreaks = () => {
    while (isBreak(text.charCodeAt(position))) position++
  }
  while (position < text.length) {
    for (let place = 0; place < 4; place++) {
      skipBreaks()
      if (position === text.length && place === 0) return
      if (position === text.length) throw illegal(position - place)
      const code = text.charCodeAt(position++)
      if (isBase64Digit(code)) continue
      if (code !== padding || place < 2) throw illegal(position - 1)
      if (place === 2) {
        skipBreaks()
        if (position === text.length) throw illegal(position)
        if (text.charCodeAt(position) !== padding) throw illegal(position - 1)
        position++
      }
      skipBreaks()
      if (position < text.length) throw illegal(position)
      return
    }
  }
}

const padding = 0x3d

const isBreak = (code: number): boolean => code === 0x0a || code === 0x0d

/** A-Z, a-z, 0-9, + and /. */
const isBase64Digit = (code: number): boolean =>
  (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || (code >= 0x2f && code <= 0x39) || code === 0x2b

const illegal = (position: number): WireError => new WireError(`illegal base64 data at input byte ${position}`, { isJson: true })
