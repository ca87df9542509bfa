import { createHash } from 'node:crypto'

/** Returns the SHA-256 hash of a text, in base64url. Callers keep and compare it instead of the text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
