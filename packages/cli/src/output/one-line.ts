/** Replaces line breaks and control characters, which can move the cursor of a terminal, with spaces: messages come from anywhere. */
export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim()
