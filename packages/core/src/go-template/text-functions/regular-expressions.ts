/** Sprig's functions on regular expressions, with RE2 syntax: no pattern takes exponential time. Upstream: sprig v3, regex.go. */
import { RE2JS, RE2JSException } from 're2js'
import { backquoted, limited } from '../format.ts'
import { stringOf } from './convert.ts'
import type { TemplateFunction } from '../value.ts'
import { goFunction } from '../value.ts'

const functions: Readonly<Record<string, TemplateFunction>> = {
  regexMatch: goFunction(['string', 'string'], (pattern, value) => RE2JS.compile(pattern).matcher(value).find()),
  regexFind: goFunction(['string', 'string'], (pattern, value) => {
    const matcher = RE2JS.compile(pattern).matcher(value)
    return matcher.find() ? (matcher.group() ?? '') : ''
  }),
  regexFindAll: goFunction(['string', 'string', 'int'], (pattern, value, count) =>
    matches(pattern, value, count).map(({ groups }) => groups[0]!),
  ),
  regexReplaceAll: goFunction(['string', 'string', 'string'], (pattern, value, replacement) =>
    replaceMatches(pattern, value, ({ groups, names }) => expand(replacement, groups, names)),
  ),
  regexReplaceAllLiteral: goFunction(['string', 'string', 'string'], (pattern, value, replacement) =>
    replaceMatches(pattern, value, () => replacement),
  ),
  regexSplit: goFunction(['string', 'string', 'int'], (pattern, value, count) => {
    const matchList = matches(pattern, value, -1n)
    if (count === 0n) return []
    if (value === '') return pattern === '' ? [] : ['']
    const pieces: string[] = []
    let from = 0
    for (const { start, end } of matchList) {
      if (count > 0n && BigInt(pieces.length) === count - 1n) break
      // As in Go, an empty match at the start makes no piece, and no piece begins at an empty match at the end.
      if (end !== 0) pieces.push(value.slice(from, start))
      from = end
      if (start === value.length) return pieces
    }
    return [...pieces, value.slice(from)]
  }),
}

const regexQuoteMeta = goFunction(['string'], (value) => value.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&'))

/**
 * Each function under its name and, if it has a pattern, also with sprig's prefix `must`. For an invalid pattern, `regexMatch` returns false,
 * the other functions without `must` fail with the text of Go's panic, and functions with `must` fail with Go's error.
 */
export const regexFunctions: Readonly<Record<string, TemplateFunction>> = {
  ...Object.fromEntries(
    Object.entries(functions).flatMap(([name, regexFunction]) => {
      const plain: TemplateFunction = {
        ...regexFunction,
        call(pattern, ...otherArguments) {
          try {
            return regexFunction.call(pattern, ...otherArguments)
          } catch (err) {
            if (!(err instanceof RE2JSException)) throw err
            if (name === 'regexMatch') return false
            throw new Error(`regexp: Compile(${backquoted(stringOf(pattern))}): ${err.message}`, {
              cause: err,
            })
          }
        },
      }
      return [[name, plain] as const, [`must${name[0]!.toUpperCase()}${name.slice(1)}`, regexFunction] as const]
    }),
  ),
  regexQuoteMeta,
}

interface Match {
  readonly start: number
  readonly end: number
  readonly groups: readonly (string | undefined)[]
  readonly names: Readonly<Record<string, number>>
}

/** Returns the first `count` matches, all if it is negative. As in Go, an empty match directly after another match does not count. */
function matches(pattern: string, value: string, count: bigint): Match[] {
  const regex = RE2JS.compile(pattern)
  const matcher = regex.matcher(value)
  const matchList: Match[] = []
  while ((count < 0n || BigInt(matchList.length) < count) && matcher.find()) {
    if (matcher.start() === matcher.end() && matcher.start() === matchList.at(-1)?.end) continue
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, index) => matcher.group(index) ?? undefined)
    matchList.push({ start: matcher.start(), end: matcher.end(), groups, names: regex.namedGroups() })
  }
  return matchList
}

function replaceMatches(pattern: string, value: string, replacementOf: (match: Match) => string): string {
  let out = ''
  let from = 0
  for (const match of matches(pattern, value, -1n)) {
    out = limited(out + value.slice(from, match.start) + replacementOf(match))
    from = match.end
  }
  return out + value.slice(from)
}

/** Expands `$1`, `$name`, `${1}` and `$$` as Go's `Regexp.Expand` does: the longest name wins, and unknown groups are empty. */
const expand = (template: string, groups: Match['groups'], names: Match['names']): string =>
  template.replace(
    /\$(?:(\$)|([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)\})/gu,
    (_, dollar?: string, plain?: string, braced?: string) => {
      if (dollar) return '$'
      const name = plain ?? braced ?? ''
      return groups[/^\d+$/.test(name) ? Number(name) : (names[name] ?? -1)] ?? ''
    },
  )
