/** Replaces line breaks and control characters, which can move the cursor of a terminal, with spaces, because messages are not trusted. */
export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim()

/** JSON in one line, with escapes for the control characters that JSON allows in strings but terminals act on. */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
