/**
 * Replaces each run of whitespace, control characters and bidirectional controls with one space, and removes them at both
 * ends. Otherwise untrusted messages could move the cursor of a terminal.
 */
export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim()

/**
 * Formats a value as one line of JSON. Escapes bidirectional controls and the control characters U+007F to U+009F, which JSON allows in
 * strings, but terminals interpret.
 */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
