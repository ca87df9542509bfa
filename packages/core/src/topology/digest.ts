import { createHash } from 'node:crypto'

/** Returns a hash of a text, to be kept instead of the text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
