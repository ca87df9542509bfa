/** Parses YAML bodies, and limits what their aliases expand to. */
import { messageOf, readJSON, type StatusError, writeJSON } from '@capstan/kube'
import { maxBodyBytes, TooManyRequests } from '../exchange.ts'
import type { YAMLParser } from './read-yaml.ts'
import { maxDepth, rejectUnstorable } from './storable.ts'
import type { YAMLDocument } from './yaml.ts'

export async function parseYAML(text: string, yaml: YAMLParser, reject: (error: string) => StatusError): Promise<YAMLDocument> {
  let document: YAMLDocument
  try {
    document = await yaml(text)
  } catch (err) {
    if (err instanceof TooManyRequests) throw err
    throw reject(messageOf(err))
  }
  const { value, duplicates } = document
  const hasAliases = text.includes('*')
  const remaining = remainingCharacters(value, maxDepth, hasAliases ? 2 * maxBodyBytes : Infinity)
  if (remaining === 'too deep') throw reject('yaml: exceeded max depth')
  if (remaining === 'too large') throw reject('yaml: document contains excessive aliasing')
  rejectUnstorable(value, text, reject)
  // The occurrences of an alias must not share one object, because each occurrence is defaulted separately.
  return hasAliases ? { value: readJSON(writeJSON(value)), duplicates } : document
}

/** Returns how many of `characters` remain after `value` is written with its aliases expanded, or the limit that it exceeds. */
function remainingCharacters(value: unknown, depth: number, characters: number): number | 'too deep' | 'too large' {
  if (typeof value !== 'object' || value === null) {
    return charactersOrNone(characters - (typeof value === 'string' ? value.length : 4))
  }
  if (depth === 0) return 'too deep'
  // Aliases may multiply also empty lists and objects, which take more time than the two characters of their brackets.
  let remaining: ReturnType<typeof remainingCharacters> = charactersOrNone(characters - 8)
  if (typeof remaining === 'string') return remaining
  for (const [key, part] of Object.entries(value)) {
    remaining = remainingCharacters(part, depth - 1, remaining - key.length)
    if (typeof remaining === 'string') return remaining
  }
  return remaining
}

const charactersOrNone = (characters: number): number | 'too large' => (characters < 0 ? 'too large' : characters)
