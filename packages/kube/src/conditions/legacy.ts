/**
 * Conditions of v1beta1, which v1beta2 objects contain in `status.deprecated.v1beta1`. Unlike those of v1beta2, they may have a severity and
 * lack a reason, and have no observedGeneration. Upstream: util/conditions/deprecated/v1beta1, v1.14.
 */
import { smallest } from '../lists.ts'
import { timestamp } from '../clock.ts'
import { timeProblem } from '../go-time.ts'
import { isRecord } from '../json.ts'
import type { UnknownObject } from '../object.ts'
import { shortened } from '../shortened.ts'

export interface LegacyCondition {
  readonly type: string
  readonly status: string
  /** Severity of a condition that is False. Absent for other statuses, and for a condition mirrored from contract v1beta2. */
  readonly severity?: string
  readonly lastTransitionTime: string
  readonly reason?: string
  readonly message?: string
}

export type Severity = 'Error' | 'Warning' | 'Info'

/** A legacy condition computed by a reconcile. Only a mirrored condition has a time. */
export type NewLegacyCondition = Omit<LegacyCondition, 'lastTransitionTime'> & { readonly lastTransitionTime?: string }

export const legacyTrue = (type: string): NewLegacyCondition => ({ type, status: 'True' })

export const legacyFalse = (type: string, reason: string, severity: Severity, message = ''): NewLegacyCondition => ({
  type,
  status: 'False',
  severity,
  reason,
  message,
})

export const legacyUnknown = (type: string, reason: string, message = ''): NewLegacyCondition => ({
  type,
  status: 'Unknown',
  reason,
  message,
})

/** Type of the condition that summarizes the other conditions. */
const Ready = 'Ready'

/** Length limits in the schema of legacy conditions. */
const MaxLength = { reason: 256, message: 10240 } as const

/**
 * Merges computed legacy conditions into the conditions of an object: each replaces the existing condition of its type; other conditions
 * stay. Ready is first, the other types follow alphabetically. The transition time changes with status, reason, severity or message.
 * Returns `existing` itself when nothing changes, so that the object is not written.
 */
export function setLegacyConditions(
  existing: readonly LegacyCondition[] | undefined,
  computed: readonly NewLegacyCondition[],
  now: number,
): LegacyCondition[] {
  const merged = [...(existing ?? [])]
  let changed = false
  for (const { type, status, severity, reason, message, lastTransitionTime } of computed) {
    const index = merged.findIndex((condition) => condition.type === type)
    const old = merged[index]
    const state = {
      type,
      status,
      // Empty fields are omitted, because the schema requires at least one character.
      ...(severity ? { severity } : {}),
      ...(reason ? { reason: shortened(reason, MaxLength.reason, '') } : {}),
      ...(message ? { message: shortened(message, MaxLength.message) } : {}),
    }
    if (old && sameState(old, state)) continue
    changed = true
    // Upstream: a mirrored condition keeps the time of its source only when it is added.
    const sourceTime = old || lastTransitionTime === undefined ? Number.NaN : Date.parse(lastTransitionTime)
    const next = { ...state, lastTransitionTime: timestamp(Number.isNaN(sourceTime) ? now : sourceTime) }
    if (old) merged[index] = next
    else merged.push(next)
  }
  if (!changed && existing) return existing as LegacyCondition[]
  return merged.sort(byType)
}

const sameState = (a: NewLegacyCondition, b: NewLegacyCondition): boolean =>
  a.status === b.status && a.severity === b.severity && a.reason === b.reason && a.message === b.message

const byType = (a: { readonly type: string }, b: { readonly type: string }): number => {
  if (a.type === b.type) return 0
  if (a.type === Ready || b.type === Ready) return a.type === Ready ? -1 : 1
  return a.type < b.type ? -1 : 1
}

/** An object whose shape may be known only at run time. */
type WithStatus = UnknownObject | { readonly status?: unknown }

/** Returns the legacy conditions of a v1beta2 object; none when one of them cannot be decoded. */
export function legacyConditionsOf({ status }: WithStatus): readonly LegacyCondition[] {
  const deprecated = isRecord(status) ? status.deprecated : undefined
  const legacy = isRecord(deprecated) ? deprecated.v1beta1 : undefined
  return isRecord(legacy) ? listOf(legacy.conditions) : []
}

/**
 * Mirrors Ready of a provider's object, of any contract version, as a legacy condition of this type; returns the fallback while Ready is
 * not reported. Upstream: conditions of contract v1beta2 are mirrored as they are, so without a severity.
 */
export function mirrorProviderReady({ status }: WithStatus, type: string, fallback: NewLegacyCondition): NewLegacyCondition {
  return readyAs(isRecord(status) ? listOf(status.conditions) : [], type) ?? fallback
}

/**
 * Mirrors the legacy Ready of an object of Cluster API's own kinds as a legacy condition of this type; returns the fallback while the
 * object has no legacy Ready.
 */
export const mirrorLegacyReady = (source: WithStatus, type: string, fallback: NewLegacyCondition): NewLegacyCondition =>
  readyAs(legacyConditionsOf(source), type) ?? fallback

function readyAs(conditions: readonly LegacyCondition[], type: string): NewLegacyCondition | undefined {
  const ready = conditions.find((condition) => condition.type === Ready)
  return ready && { ...ready, type }
}

/**
 * Reads a list of conditions, without entries that lack type or status. Null fields count as absent. A list with an entry that cannot be
 * decoded counts as empty, because upstream's decoder rejects the whole list.
 * Upstream: GetV1Beta1Conditions in util/conditions/deprecated/v1beta1.
 */
function listOf(value: unknown): readonly LegacyCondition[] {
  return Array.isArray(value) && value.every(isDecodable) ? value.filter(isRecord).map(withoutNull).filter(isCondition) : []
}

/** Reports whether Go can decode the value as a condition. Every field may be absent or null. */
function isDecodable(value: unknown): boolean {
  if (value === null) return true
  if (!isRecord(value)) return false
  const { type, status, severity, reason, message, lastTransitionTime } = value
  const isText = (text: unknown) => text === undefined || text === null || typeof text === 'string'
  if (![type, status, severity, reason, message, lastTransitionTime].every(isText)) return false
  return typeof lastTransitionTime !== 'string' || timeProblem(lastTransitionTime, false) === undefined
}

const withoutNull = (entry: object): Partial<LegacyCondition> =>
  Object.fromEntries(Object.entries(entry).filter(([, field]) => field !== null))

const isCondition = (entry: Partial<LegacyCondition>): entry is LegacyCondition =>
  entry.type !== undefined && entry.status !== undefined

export interface LegacySummaryOptions {
  /** Types to summarize if reported. The first type whose condition has the worst rank (`rankOf`) gives reason and message. */
  readonly of: readonly string[]
  /**
   * Types to count as steps while no other type in `of` is reported: the message is then `1 of 2 completed`. A summary that is True has no
   * message.
   */
  readonly steps?: readonly string[]
}

/** Summarizes the conditions of an object in its legacy Ready condition; `undefined` while no type of `of` is reported. */
export function legacySummary(
  conditions: readonly NewLegacyCondition[],
  { of, steps }: LegacySummaryOptions,
): NewLegacyCondition | undefined {
  const reported = conditions.filter(({ type }) => of.includes(type))
  const countsSteps = steps !== undefined && reported.every(({ type }) => steps.includes(type))
  return merge(Ready, reported.sort(byType), { order: of, ...(countsSteps ? { total: steps.length } : {}) })
}

interface Named {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly status?: unknown
}

/**
 * Aggregates the legacy Ready of several objects into one legacy condition; `undefined` while no object has a legacy Ready. If the result
 * is not True, its message counts the Ready objects, and its reason names the object from which the reason comes.
 */
export function legacyAggregate(objects: readonly Named[], type: string): NewLegacyCondition | undefined {
  const reported: NewLegacyCondition[] = []
  for (const { kind, metadata, status } of objects.toSorted(byName)) {
    const ready = readyAs(legacyConditionsOf({ status }), Ready)
    const { reason = '' } = ready ?? {}
    if (ready) reported.push({ ...ready, reason: reason.includes('@') ? reason : `${reason} @ ${kind}/${metadata.name}` })
  }
  return merge(type, reported, { order: [], total: objects.length })
}

const byName = (a: Named, b: Named): number =>
  a.metadata.name < b.metadata.name ? -1 : a.metadata.name > b.metadata.name ? 1 : 0

/**
 * Merges conditions: the worst condition gives status, severity and reason, and without `total` the message. With `total`, the message
 * counts True conditions. A result that is True has neither reason nor message.
 */
function merge(
  type: string,
  conditions: readonly NewLegacyCondition[],
  { order, total }: { order: readonly string[]; total?: number },
): NewLegacyCondition | undefined {
  const rank = smallest(conditions.map(rankOf))
  const worst = conditions.filter((condition) => rankOf(condition) === rank)
  const [first] = order.flatMap((type) => worst.filter((condition) => condition.type === type)).concat(worst)
  if (!first) return undefined
  const { status, severity, reason = '' } = first
  if (status === 'True') return { type, status }
  const isTrue = (condition: NewLegacyCondition) => condition.status === 'True' && !condition.severity
  const message = total === undefined ? (first.message ?? '') : `${conditions.filter(isTrue).length} of ${total} completed`
  return status === 'False'
    ? { type, status, ...(severity ? { severity } : {}), reason, message }
    : { type, status: 'Unknown', reason, message }
}

/**
 * Returns the rank of a condition; the worst condition has the lowest rank. Upstream: True is worse than Unknown, and False without
 * severity, as in contract v1beta2, is last.
 */
function rankOf({ status, severity = '' }: NewLegacyCondition): number {
  if (status === 'True') return 3
  if (status === 'Unknown') return 4
  const rank = ['Error', 'Warning', 'Info'].indexOf(severity)
  return status === 'False' && rank >= 0 ? rank : 99
}
