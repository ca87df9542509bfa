import type { Condition } from '../schema.ts'
import type { ReportedCondition } from './read.ts'

/** How much a condition matters when several become one. */
export type MergePriority = 'issue' | 'unknown' | 'info'

/** Priorities in the order of the message. */
export const MergePriorities = ['issue', 'unknown', 'info'] as const satisfies readonly MergePriority[]

/**
 * The usual priority: what is not as it should be is an issue. Conditions in `negative` are well when False.
 *
 * @example priority: (condition) => (isBeingDeleted(condition) ? 'info' : usualPriority(['Deleting'])(condition))
 */
export const usualPriority =
  (negative: readonly string[] = []) =>
  ({ type, status }: ReportedCondition): MergePriority => {
    if (status !== 'True' && status !== 'False') return 'unknown'
    return (status === 'True') === negative.includes(type) ? 'issue' : 'info'
  }

/** Reasons of a merged condition, by the priority that decided it. */
export type MergeReasons<Reason extends string = string> = { readonly [P in MergePriority]: Reason }

/** Upstream: used when a merge names no reasons of its own. */
export const GenericReasons: MergeReasons = { issue: 'IssuesReported', unknown: 'UnknownReported', info: 'InfoReported' }

/** The most pressing of several priorities. */
export function topPriority(priorities: readonly MergePriority[]): MergePriority {
  return MergePriorities.find((priority) => priorities.includes(priority)) ?? 'info'
}

/** The status of a merged condition. One of negative polarity is True when there is an issue. */
export function mergedStatus(top: MergePriority, negativeTarget: boolean): Condition['status'] {
  if (top === 'unknown') return 'Unknown'
  return (top === 'issue') === negativeTarget ? 'True' : 'False'
}

/**
 * A message behind its bullet: on the same line, or, when it has several lines or bullets of its own, indented below it.
 */
export function nested(message: string): string {
  if (!message.includes('\n') && !hasBullet(message)) return ` ${message}`
  const lines = message.split('\n')
  const mixed = lines.some((line) => !hasBullet(line))
  return `\n${lines.map((line) => (!mixed ? '  ' : hasBullet(line) ? '    ' : '  * ') + line).join('\n')}`
}

// Upstream: the pattern is not anchored, so an asterisk before a blank counts as a bullet wherever it stands.
const hasBullet = (line: string): boolean => /\*\s/.test(line)
