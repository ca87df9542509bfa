/**
 * Merges the tolerations of a pod with the tolerations of its RuntimeClass. Upstream: pkg/util/tolerations, which compares each pair. A pod
 * may have 100,000 tolerations, so this module looks them up in groups instead.
 */
import { stableText } from '@capstan/kube'
import type { Toleration } from '../kinds/schemas/types.ts'

/**
 * Drops a toleration if another toleration covers it, that is, tolerates at least the same taints. As upstream, a toleration without an
 * operator counts as covered only by a toleration with the operator Exists. Keeps the first of equal tolerations.
 */
export function mergeTolerations(all: readonly Toleration[]): Toleration[] {
  const texts = all.map((toleration) => stableText(toleration))
  const isCoveredLater: boolean[] = []
  const later = new LongestTolerations()
  for (let index = all.length - 1; index >= 0; index--) {
    isCoveredLater[index] = later.covers(all[index]!, texts[index]!)
    later.add(all[index]!, texts[index]!)
  }
  const merged: Toleration[] = []
  const seenTexts = new Set<string>()
  const earlier = new LongestTolerations()
  for (const [index, toleration] of all.entries()) {
    const text = texts[index]!
    if (isCoveredLater[index] || seenTexts.has(text) || earlier.covers(toleration, text)) continue
    merged.push(toleration)
    seenTexts.add(text)
    earlier.add(toleration, text)
  }
  return merged
}

/** A toleration as canonical JSON, and the longest tolerationSeconds that it covers; `Infinity` without a limit. */
interface TimedToleration {
  readonly text: string
  readonly seconds: number
}

/** The two tolerations with the most seconds of each group. Tolerations of a group match the same keys, effects and values. */
class LongestTolerations {
  /** Two tolerations of each group, because `covers` ignores a toleration that equals its argument. */
  readonly #groups = new Map<string, readonly TimedToleration[]>()

  add(wide: Toleration, text: string): void {
    const { key = '', effect = '', operator = '', value = '', tolerationSeconds } = wide
    const covered = operator === 'Exists' ? anyValue : operator === '' || operator === 'Equal' ? value : undefined
    if (covered === undefined) return
    const group = groupOf(key, effect, covered)
    const seconds = effect === 'NoExecute' ? (tolerationSeconds ?? Infinity) : Infinity
    const otherTolerations = (this.#groups.get(group) ?? []).filter((other) => other.text !== text)
    this.#groups.set(group, [...otherTolerations, { text, seconds }].sort((a, b) => (a.seconds < b.seconds ? 1 : -1)).slice(0, 2))
  }

  /** Reports whether an added toleration covers the given toleration and is not equal to it. */
  covers({ key = '', effect = '', operator, value = '', tolerationSeconds = Infinity }: Toleration, text: string): boolean {
    const groups = [effect, ''].flatMap((groupEffect) => [
      groupOf(key, groupEffect, anyValue),
      groupOf('', groupEffect, anyValue),
      ...(operator === 'Equal' ? [groupOf(key, groupEffect, value)] : []),
    ])
    return groups.some((group) =>
      this.#groups.get(group)?.some((wide) => wide.text !== text && tolerationSeconds <= wide.seconds),
    )
  }
}

const anyValue = Symbol('any value')

const groupOf = (key: string, effect: string, value: string | typeof anyValue): string =>
  JSON.stringify([key, effect, ...(value === anyValue ? [] : [value])])
