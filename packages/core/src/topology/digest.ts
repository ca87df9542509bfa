import { createHash } from 'node:crypto'

/** Returns a hash of a text, which in-memory caches keep instead of the text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
