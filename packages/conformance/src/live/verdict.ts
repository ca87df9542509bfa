/** Observations of checks, and the verdicts on rules that follow from them. */
import { type KubeObject, keyOf, keyText } from '@capstan/kube'
import type { Level } from '../rule.ts'

/** Verdicts by priority: if checks of a rule have different verdicts, the rule has the first of them in this list. */
export const Verdicts = ['fail', 'warn', 'not testable here', 'pass', 'not applicable'] as const
/** Verdict of a rule. `warn`: a rule of level SHOULD or MAY is violated. */
export type Verdict = (typeof Verdicts)[number]

/** A comparison of an object's state with the requirement of a rule. */
export interface Observation {
  readonly holds: boolean
  /** Kind and key of the object: `LocalMachine conform-life/a`. */
  readonly object: string
  readonly field: string
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  readonly expected: string
  readonly found: string
}

/** Observations, or the reason why there are none. */
export type LiveResult = readonly Observation[] | { readonly notApplicable: string } | { readonly notTestable: string }

/** An observation before object and value are formatted as text. */
export interface ObservationOf {
  readonly object: KubeObject
  readonly field: string
  readonly at: number
  readonly expected: string
  /** The value of the field, which `formatValue` formats. */
  readonly found: unknown
  readonly holds: boolean
}

export const observation = ({ object, found, ...rest }: ObservationOf): Observation => ({
  ...rest,
  object: nameOf(object),
  found: formatValue(found),
})

export const nameOf = (object: KubeObject): string => `${object.kind} ${keyText(keyOf(object))}`

const maxLength = 200

/**
 * Formats a string as it is, `undefined` as `nothing`, and another value as JSON. Shortens a longer text to `maxLength` characters, and then
 * appends its full length.
 */
export function formatValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > maxLength ? `${text.slice(0, maxLength)}… (${text.length} characters)` : text
}

/** Returns the verdict of a result for a rule of this level. An empty list of observations is `not testable here`. */
export function verdictOf(result: LiveResult, level: Level): Verdict {
  if ('notApplicable' in result) return 'not applicable'
  if ('notTestable' in result || result.length === 0) return 'not testable here'
  if (result.every(({ holds }) => holds)) return 'pass'
  return level === 'MUST' ? 'fail' : 'warn'
}
