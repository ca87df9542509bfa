/** Parses YAML bodies, and limits the expansion of their aliases. */
import { MaxObjects, messageOf, readJSON, type StatusError, writeJSON } from '@capstan/kube'
import { tooManyObjects } from '../errors.ts'
import { maxBodyBytes, TooManyRequests } from '../exchange.ts'
import type { YAMLParser } from './read-yaml.ts'
import { maxDepth, rejectUnstorable } from './storable.ts'
import type { YAMLDocument } from './yaml.ts'

/**
 * Parses a YAML body with `yaml`, and expands its aliases. `reject` creates a StatusError from an error text.
 *
 * @throws StatusError when the body cannot be parsed, or its value is too large or cannot be stored
 * @throws TooManyRequests when `yaml` throws it
 */
export async function parseYAML(text: string, yaml: YAMLParser, reject: (error: string) => StatusError): Promise<YAMLDocument> {
  let document: YAMLDocument
  try {
    document = await yaml(text)
  } catch (err) {
    if (err instanceof TooManyRequests) throw err
    throw reject(messageOf(err))
  }
  const { value, duplicates } = document
  // An asterisk begins each alias, and can also be part of other text.
  const mayHaveAliases = text.includes('*')
  const problem = expansionProblem(value, mayHaveAliases)
  if (problem !== undefined) throw typeof problem === 'string' ? reject(problem) : problem
  rejectUnstorable(value, text, reject)
  // The occurrences of an alias must not share one object, because each occurrence is defaulted separately.
  return mayHaveAliases ? { value: readJSON(writeJSON(value)), duplicates } : document
}

const tooManyAliases = 'yaml: document contains excessive aliasing'

/**
 * Returns why a value cannot be written with its aliases expanded: it is nested too deeply, has too many characters or objects, or too
 * many of its nodes come from aliases.
 */
function expansionProblem(value: unknown, mayHaveAliases: boolean): string | StatusError | undefined {
  let charactersLeft = mayHaveAliases ? 2 * maxBodyBytes : Infinity
  let [nodes, nodesOfAliases, objects] = [0, 0, 0]
  const visited = new Set<object>()
  const visit = (part: unknown, depth: number, isAlias: boolean): string | undefined => {
    nodes++
    if (isAlias) nodesOfAliases++
    if (nodesOfAliases > 100 && nodes > 1000 && nodesOfAliases / nodes > allowedRatio(nodes)) return tooManyAliases
    if (typeof part !== 'object' || part === null) charactersLeft -= typeof part === 'string' ? part.length : 4
    else {
      objects++
      if (depth === 0) return 'yaml: exceeded max depth'
      const isRepeated = isAlias || visited.has(part)
      if (mayHaveAliases) visited.add(part)
      for (const key in part) {
        charactersLeft -= key.length
        const problem = visit((part as Record<string, unknown>)[key], depth - 1, isRepeated)
        if (problem !== undefined) return problem
      }
    }
    return charactersLeft < 0 ? tooManyAliases : undefined
  }
  const problem = visit(value, maxDepth, false)
  return problem === undefined && objects > MaxObjects ? tooManyObjects() : problem
}

/**
 * Returns the largest allowed share of nodes that come from aliases: 99% of up to 400,000 nodes, 10% of 4,000,000 nodes or more, and a
 * linearly falling share between these numbers. Upstream: allowedAliasRatio of go-yaml.
 */
function allowedRatio(nodes: number): number {
  if (nodes <= 400_000) return 0.99
  return nodes >= 4_000_000 ? 0.1 : 0.99 - 0.89 * ((nodes - 400_000) / 3_600_000)
}
