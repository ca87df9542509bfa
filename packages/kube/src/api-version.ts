/** Parses and orders API versions such as v1, v1beta2 and v2alpha1. */
import { compareText } from './compare-text.ts'

/** Stability level of an API version. Names that are not of the form `v1`, `v1beta1` or `v1alpha1` count as alpha. */
export type Stability = 'alpha' | 'beta' | 'stable'

export const stabilityOf = (version: string): Stability => stabilities[parse(version)?.stability ?? 0]!

const stabilities: readonly Stability[] = ['alpha', 'beta', 'stable']

/**
 * Orders versions with the preferred one first: v2 before v1 before v1beta1 before v1alpha1, other names last.
 * Upstream: k8s.io/apimachinery/pkg/version, CompareKubeAwareVersionStrings.
 */
export function compareApiVersions(a: string, b: string): number {
  const [left, right] = [parse(a), parse(b)]
  if (left && right) return right.stability - left.stability || right.major - left.major || right.minor - left.minor
  if (left) return -1
  if (right) return 1
  return compareText(a, b)
}

function parse(version: string): { major: number; stability: number; minor: number } | undefined {
  const [match, major, stage, minor] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? []
  if (match === undefined) return undefined
  return { major: Number(major), stability: stage === undefined ? 2 : stage === 'beta' ? 1 : 0, minor: Number(minor ?? 0) }
}
