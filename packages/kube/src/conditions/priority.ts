import type { Condition } from '../schema.ts'
import type { ReportedCondition } from './read.ts'

/** Priority of a condition when several are merged. */
export type MergePriority = 'issue' | 'unknown' | 'info'

/** Priorities, the highest first. */
export const MergePriorities = ['issue', 'unknown', 'info'] as const satisfies readonly MergePriority[]

/**
 * The default priority: a condition is an issue when it is False (when True for types in `negative`), unknown when it is neither True nor
 * False, and info otherwise.
 *
 * @example priority: (condition) => (isBeingDeleted(condition) ? 'info' : defaultPriority(['Deleting'])(condition))
 */
export const defaultPriority =
  (negative: readonly string[] = []) =>
  ({ type, status }: ReportedCondition): MergePriority => {
    if (status !== 'True' && status !== 'False') return 'unknown'
    return (status === 'True') === negative.includes(type) ? 'issue' : 'info'
  }

/** Reasons of a merged condition, by the priority that decided it. */
export type MergeReasons<Reason extends string = string> = { readonly [P in MergePriority]: Reason }

/** Default reasons of a merged condition, as upstream. */
export const GenericReasons: MergeReasons = { issue: 'IssuesReported', unknown: 'UnknownReported', info: 'InfoReported' }

/** Returns the highest of several priorities; `info` if there are none. */
export function topPriority(priorities: readonly MergePriority[]): MergePriority {
  return MergePriorities.find((priority) => priorities.includes(priority)) ?? 'info'
}

/** Returns the status of a merged condition. A condition of negative polarity is True when there is an issue. */
export function mergedStatus(top: MergePriority, negativeTarget: boolean): Condition['status'] {
  if (top === 'unknown') return 'Unknown'
  return (top === 'issue') === negativeTarget ? 'True' : 'False'
}

/** Formats the message of a bullet: on the same line, or indented below it when the message has several lines or bullets of its own. */
export function nested(message: string): string {
  if (!message.includes('\n') && !hasBullet(message)) return ` ${message}`
  const lines = message.split('\n')
  if (lines.every(hasBullet)) return `\n${lines.map((line) => `  ${line}`).join('\n')}`
  // Lines without a bullet get one, and lines with a bullet are indented below them.
  return `\n${lines.map((line) => (hasBullet(line) ? `    ${line}` : `  * ${line}`)).join('\n')}`
}

// Upstream: the pattern is not anchored, so an asterisk before white space counts as a bullet at any place.
const hasBullet = (line: string): boolean => /\*\s/.test(line)
