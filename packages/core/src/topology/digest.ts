import { createHash } from 'node:crypto'

/** Short hash of a text, which memories keep instead of the text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
