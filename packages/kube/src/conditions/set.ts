import { timestamp } from '../clock.ts'
import type { NewCondition } from '../condition.ts'
import type { Condition } from '../schema.ts'
import { shortened } from '../shortened.ts'

export interface SetOptions {
  /**
   * Milliseconds since the Unix epoch: the transition time of new conditions and of those whose status changes. A mirrored condition gets its
   * source's time instead.
   */
  readonly now: number
  /** `metadata.generation` of the object that the conditions were computed for; absent or 0: the conditions get no observedGeneration. */
  readonly generation?: number | undefined
  /** Types in their order. Other types follow alphabetically; `Paused` and `Deleting` are always last. */
  readonly order?: readonly string[]
}

/** Maximum length of a message in the schema of conditions. Texts of extensions, providers and nodes may be longer. */
const LongestMessage = 32768

/**
 * Merges computed conditions into the conditions of an object: each replaces the existing condition of its type; other conditions stay. The
 * transition time changes only with the status. Returns `existing` itself, without sorting it, when it is given and no condition changes, so
 * that the object is not written.
 */
export function setConditions(
  existing: readonly Condition[] | undefined,
  computed: readonly NewCondition[],
  { now, generation, order = [] }: SetOptions,
): Condition[] {
  const merged = [...(existing ?? [])]
  let changed = false
  for (const newCondition of computed) {
    const index = merged.findIndex((condition) => condition.type === newCondition.type)
    const old = merged[index]
    const next: Condition = {
      type: newCondition.type,
      status: newCondition.status,
      ...(generation ? { observedGeneration: generation } : {}),
      lastTransitionTime: old && old.status === newCondition.status ? old.lastTransitionTime : transitionTime(newCondition, now),
      reason: newCondition.reason,
      message: shortened(newCondition.message, LongestMessage),
    }
    if (old && same(old, next)) continue
    changed = true
    if (old) merged[index] = next
    else merged.push(next)
  }
  if (!changed && existing) return existing as Condition[]
  return merged.sort(byOrder(order))
}

/** Returns the transition time of the source of a mirrored condition if it is valid, otherwise `now`. Both in whole seconds. */
function transitionTime({ lastTransitionTime }: NewCondition, now: number): string {
  const sourceTime = lastTransitionTime === undefined ? Number.NaN : Date.parse(lastTransitionTime)
  return timestamp(Number.isNaN(sourceTime) ? now : sourceTime)
}

const same = (a: Condition, b: Condition): boolean =>
  a.status === b.status &&
  a.reason === b.reason &&
  a.message === b.message &&
  a.observedGeneration === b.observedGeneration &&
  a.lastTransitionTime === b.lastTransitionTime

const Last = ['Paused', 'Deleting']

function byOrder(order: readonly string[]): (a: Condition, b: Condition) => number {
  const ranks = new Map<string, number>()
  for (const type of order) if (!Last.includes(type)) ranks.set(type, ranks.size)
  const rankOfOthers = ranks.size
  for (const [index, type] of Last.entries()) ranks.set(type, rankOfOthers + 1 + index)
  const rank = ({ type }: Condition) => ranks.get(type) ?? rankOfOthers
  return (a, b) => rank(a) - rank(b) || (a.type < b.type ? -1 : a.type > b.type ? 1 : 0)
}
