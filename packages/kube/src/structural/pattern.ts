/** Regular expressions of schemas, in RE2 syntax. Patterns are untrusted input, so no pattern may run for long on any text. */
import { RE2JS } from 're2js'

export interface Pattern {
  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean
  /** Syntax error of the pattern, which then matches no text. */
  readonly error?: string
}

/** Compiles a pattern, and caches the result unless the pattern is long. */
export function compilePattern(pattern: string): Pattern {
  let compiled = compiledOf.get(pattern)
  if (!compiled) {
    compiled = compile(pattern)
    if (compiledOf.size >= MaxCompiled) compiledOf.clear()
    if (pattern.length <= MaxCachedLength) compiledOf.set(pattern, compiled)
  }
  return compiled
}

/** Returns the syntax error of a pattern, with the text of Go's regexp; undefined for a valid pattern. */
export const patternProblem = (pattern: string): string | undefined => compile(pattern).error

/** Cache of compiled patterns: schemas often contain the same patterns, and compiling is slow. */
const compiledOf = new Map<string, Pattern>()
const MaxCompiled = 256

function compile(pattern: string): Pattern {
  let compiled: RE2JS
  try {
    compiled = RE2JS.compile(pattern)
  } catch (err) {
    return { test: () => false, error: (err as Error).message }
  }
  if (isPlain(pattern)) {
    const native = new RegExp(pattern, 'u')
    return { test: (text) => native.test(text) }
  }
  // Cache of results: the same texts, such as condition types and keys, are matched often.
  const results = new Map<string, boolean>()
  return {
    test(text) {
      let matches = results.get(text)
      if (matches === undefined) {
        matches = compiled.test(text)
        if (results.size >= MaxResults) results.clear()
        if (text.length <= MaxCachedLength) results.set(text, matches)
      }
      return matches
    },
  }
}

/** Maximum number of cached results of one pattern. */
const MaxResults = 64
/** Maximum length of cached patterns, and of texts whose results are cached. */
const MaxCachedLength = 256

/**
 * Reports whether a pattern means the same in JavaScript and RE2 and cannot backtrack for long. Such a pattern is a sequence of characters
 * and character classes, which may have fixed counts such as `{3}`. If the pattern begins with `^`, one of them may instead have a variable
 * count such as `*` or `{1,5}`. Without `^`, a variable count is not allowed, because searching for `a*b` takes quadratic time. The pattern
 * may end with `$`.
 */
const isPlain = (pattern: string): boolean => PlainForm.test(pattern)

const Literal = '[A-Za-z0-9_/:@#%,;=<>!&~\'"` -]|\\\\[.*+?^$()\\[\\]{}|/\\\\]'
const CharacterClass = '\\[\\^?-?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_/:@#%,.+*=()$ ]|\\\\[.\\-/\\\\])+-?\\]'
const Fixed = `(?:(?:${Literal}|${CharacterClass})(?:\\{[0-9]{1,3}\\})?)*`
const Repeated = `(?:${Literal}|${CharacterClass})(?:[*+?]|\\{[0-9]{1,3},[0-9]{0,3}\\})`
const PlainForm = new RegExp(`^(?:${Fixed}|\\^${Fixed}(?:${Repeated}${Fixed})?)\\$?$`)
