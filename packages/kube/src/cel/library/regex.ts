/** CEL functions that return the matches of a regular expression. Upstream: apiserver/pkg/cel/library/regex.go. */
import { RE2JS } from 're2js'
import type { Library } from '../signature.ts'
import { CelList, EvaluationError } from '../value.ts'

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (err) {
    throw new EvaluationError(`Illegal regex: ${(err as Error).message}`)
  }
}

function findAll(text: string, pattern: string, limit = -1n): string[] {
  const matcher = compile(pattern).matcher(text)
  const matches: string[] = []
  while ((limit < 0n || matches.length < Number(limit)) && matcher.find()) matches.push(matcher.group() ?? '')
  return matches
}

export const regex: Library = {
  'string.find(string): string': (text: string, pattern: string) => findAll(text, pattern, 1n)[0] ?? '',
  'string.findAll(string): list<string>': (text: string, pattern: string) => new CelList(findAll(text, pattern)),
  'string.findAll(string, int): list<string>': (text: string, pattern: string, limit: bigint) =>
    new CelList(findAll(text, pattern, limit)),
}
