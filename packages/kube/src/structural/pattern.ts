/** Patterns of schemas. They come from users and speak RE2: no input may make one run for long. */
import { RE2JS } from 're2js'

export interface Pattern {
  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean
  /** What is wrong with the pattern itself. It then matches nothing. */
  readonly error?: string
}

export function compilePattern(pattern: string): Pattern {
  let compiled = compiledOf.get(pattern)
  if (!compiled) {
    compiled = compile(pattern)
    if (compiledOf.size >= MaxCompiled) compiledOf.clear()
    if (pattern.length <= MaxKnownLength) compiledOf.set(pattern, compiled)
  }
  return compiled
}

/** Returns what is wrong with a pattern, as Go's regexp says it. */
export const patternProblem = (pattern: string): string | undefined => compile(pattern).error

/** Schemas say the same few things of names, labels and versions over and over, and compiling takes its time. */
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
  // The same few words come again and again: types of conditions, names of keys.
  const known = new Map<string, boolean>()
  return {
    test(text) {
      let matches = known.get(text)
      if (matches === undefined) {
        matches = compiled.test(text)
        if (known.size >= MaxKnown) known.clear()
        if (text.length <= MaxKnownLength) known.set(text, matches)
      }
      return matches
    },
  }
}

const MaxKnown = 64
const MaxKnownLength = 256

/**
 * Patterns that mean the same to JavaScript as to RE2 and cannot backtrack for long: a sequence of characters and sets, of which
 * one may be repeated, and that only where the pattern begins at `^` (searching for `a*b` is quadratic).
 */
const isPlain = (pattern: string): boolean => PlainForm.test(pattern)

const Literal = '[A-Za-z0-9_/:@#%,;=<>!&~\'"` -]|\\\\[.*+?^$()\\[\\]{}|/\\\\]'
const OneOf = '\\[\\^?-?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_/:@#%,.+*=()$ ]|\\\\[.\\-/\\\\])+-?\\]'
const Fixed = `(?:(?:${Literal}|${OneOf})(?:\\{[0-9]{1,3}\\})?)*`
const Repeated = `(?:${Literal}|${OneOf})(?:[*+?]|\\{[0-9]{1,3},[0-9]{0,3}\\})`
const PlainForm = new RegExp(`^(?:${Fixed}|\\^${Fixed}(?:${Repeated}${Fixed})?)\\$?$`)
