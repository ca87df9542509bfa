import { compareText } from '../compare-text.ts'
import type { ConditionType, NewCondition } from '../condition.ts'
import { NotYetReported } from './mirror.ts'
import type { MergePriority, MergeReasons } from './priority.ts'
import { GenericReasons, MergePriorities, mergedStatus, nested, topPriority, defaultPriority } from './priority.ts'
import type { ReportedCondition } from './read.ts'
import { getCondition } from './read.ts'

/** An object whose conditions are aggregated. Messages contain its kind and name. */
export interface AggregatedObject {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: { readonly [key: string]: string } }
  readonly status?: unknown
}

export interface AggregateOptions<Reason extends string = string> {
  /** The resulting condition; by default it has the type of its sources. */
  readonly as?: string | ConditionType<string, Reason>
  /** Whether the source condition has negative polarity (False is good). The result then has negative polarity, too. */
  readonly negative?: boolean
  /** Reasons of the result. Default: `GenericReasons`, such as `IssuesReported`. */
  readonly reasons?: MergeReasons<Reason>
  /** Replaces the default priority of conditions. The polarity of the result still depends only on `negative`. */
  readonly priority?: (condition: ReportedCondition) => MergePriority
}

/**
 * Aggregates one condition of many objects. With the default priority: False if it is False for any object, else Unknown if it is Unknown or
 * missing for any, else True; with `negative`, True and False are exchanged. The resulting message lists at most three messages of objects:
 * by kind, then those of control plane Machines first, then by priority and number of objects. Each has at most three names; the other
 * objects are counted. Objects of priority `info` are neither listed nor counted if any object has a higher priority, or if their message
 * is empty.
 *
 * @throws Error without objects: the caller decides what an empty list means
 *
 * @example aggregate(machines, 'Ready', { as: MachineSetConditions.MachinesReady, reasons: { issue: 'NotReady', … } })
 */
export function aggregate<Reason extends string>(
  objects: readonly AggregatedObject[],
  type: string,
  options: AggregateOptions<Reason> = {},
): NewCondition {
  const { as = type, negative = false, reasons = GenericReasons, priority = defaultPriority(negative ? [type] : []) } = options
  if (objects.length === 0) throw new Error(`condition ${type} is aggregated over no objects`)

  const reports = objects.map((object): Report => {
    const condition = getCondition(object, type) ?? {
      type,
      status: 'Unknown',
      reason: NotYetReported,
      message: `Condition ${type} not yet reported`,
    }
    return {
      kind: object.kind,
      name: object.metadata.name,
      first: isControlPlaneMachine(object),
      message: condition.message ?? '',
      since: condition.lastTransitionTime ?? '',
      priority: priority(condition),
    }
  })
  const top = topPriority(reports.map((report) => report.priority))
  const reported = reports.filter((report) => (top === 'info' ? report.message !== '' : report.priority !== 'info'))
  return {
    type: typeof as === 'string' ? as : as.type,
    status: mergedStatus(top, negative),
    reason: reasons[top],
    message: messageOf(reported),
  }
}

/** The report of one object. */
interface Report {
  readonly kind: string
  readonly name: string
  /** Whether the message is listed before others: upstream lists control plane Machines first. */
  readonly first: boolean
  readonly message: string
  readonly since: string
  readonly priority: MergePriority
}

/** Objects of one kind with the same message. */
interface Group {
  readonly message: string
  readonly names: string[]
  first: boolean
  rank: number
}

const MaxMessages = 3
const MaxNames = 3

const RemainderTexts = { issue: 'with other issues', unknown: 'with status unknown', info: 'with additional info' } as const

function messageOf(reports: readonly Report[]): string {
  const firstNames = new Set(reports.filter((report) => report.first).map((report) => report.name))
  const lines: string[] = []
  let remainingMessages = MaxMessages
  for (const [kind, groups] of groupsByKind(reports)) {
    const remainingByRank = new Map<number, number>()
    for (const { message, names, rank } of groups) {
      if (remainingMessages === 0) {
        remainingByRank.set(rank, (remainingByRank.get(rank) ?? 0) + names.length)
        continue
      }
      remainingMessages--
      names.sort((a, b) => Number(firstNames.has(b)) - Number(firstNames.has(a)) || compareText(a, b))
      const unlisted = names.length - MaxNames
      const listed = names.slice(0, MaxNames).join(', ') + (unlisted > 0 ? `, ... (${unlisted} more)` : '')
      lines.push(`* ${kindAfterCount(kind, names.length)} ${listed}:${nested(message)}`)
    }
    for (const [rank, priority] of MergePriorities.entries()) {
      const count = remainingByRank.get(rank)
      if (count !== undefined) lines.push(`And ${count} ${kindAfterCount(kind, count)} ${RemainderTexts[priority]}`)
    }
  }
  return lines.join('\n')
}

/**
 * Groups reports by kind and message, in the order of the aggregated message. All groups with the same message have the highest priority of
 * any object that reports it, also if this object is of another kind.
 */
function groupsByKind(reports: readonly Report[]): [kind: string, groups: Group[]][] {
  const ordered = [...reports].sort((a, b) => rankOf(a) - rankOf(b) || compareText(a.since, b.since))
  const best = new Map<string, { first: boolean; rank: number }>()
  for (const report of ordered) {
    const previous = best.get(report.message) ?? { first: false, rank: MergePriorities.length }
    best.set(report.message, { first: previous.first || report.first, rank: Math.min(previous.rank, rankOf(report)) })
  }
  const kinds = new Map<string, Map<string, Group>>()
  for (const { kind, message, name } of ordered) {
    const groups = kinds.get(kind) ?? new Map<string, Group>()
    kinds.set(kind, groups)
    const group = groups.get(message) ?? { message, names: [], ...best.get(message)! }
    groups.set(message, group)
    group.names.push(name)
  }
  return [...kinds]
    .sort(([a], [b]) => compareText(a, b))
    .map(([kind, groups]) => [
      kind,
      [...groups.values()].sort(
        (a, b) =>
          Number(b.first) - Number(a.first) ||
          a.rank - b.rank ||
          b.names.length - a.names.length ||
          compareText(a.names.join(','), b.names.join(',')),
      ),
    ])
}

const rankOf = ({ priority }: Report): number => MergePriorities.indexOf(priority)

// As upstream, compares only the kind, not its API group.
const isControlPlaneMachine = ({ kind, metadata }: AggregatedObject): boolean =>
  kind === 'Machine' && metadata.labels?.['cluster.x-k8s.io/control-plane'] !== undefined

/** Name of the kind after a count: singular or plural. */
function kindAfterCount(kind: string, count: number): string {
  if (count === 1) return kind
  if (/(s|x|z|ch|sh)$/.test(kind)) return `${kind}es`
  return /[^aeiou]y$/.test(kind) ? `${kind.slice(0, -1)}ies` : `${kind}s`
}
