/**
 * Parses Kubernetes versions, which are semantic versions with a leading `v`, and compares them with or without their build tags.
 * Upstream: util/version, v1.14.
 */
import { SemVer } from 'semver'

/** Parses a version such as `v1.36.0`. The `v`, minor and patch may be missing. @throws TypeError that names an invalid version */
export function parseVersion(text: string): SemVer {
  // Upstream: semver.ParseTolerant.
  const [core, rest] = splitCore(text.trim().replace(/^v/, ''))
  const numbers = core.split('.')
  if (numbers.length > 3 || numbers.some((number) => !/^\d+$/.test(number))) throw notAVersion(text)
  if (numbers.length < 3 && rest !== '') throw notAVersion(text)
  while (numbers.length < 3) numbers.push('0')
  return new SemVer(numbers.map((number) => number.replace(/^0+(?=\d)/, '')).join('.') + rest)
}

/** Whether the text is `v` followed by an exact semantic version, which fields of the API require. */
export function isKubernetesVersion(text: string): boolean {
  const core = text.slice(1)
  if (!text.startsWith('v')) return false
  try {
    const { version, build } = new SemVer(core)
    return core === [version, ...(build.length > 0 ? [build.join('.')] : [])].join('+')
  } catch {
    return false
  }
}

/** Returns the text with a leading `v`; an empty text stays empty. */
export const withVersionPrefix = (text: string): string => (text === '' || text.startsWith('v') ? text : `v${text}`)

/** Formats a version for messages: `v` and the canonical form, with build tags. */
export const versionText = ({ version, build }: SemVer): string => `v${version}${build.length === 0 ? '' : `+${build.join('.')}`}`

/** Order of two versions. `differ`: they differ only in build tags that have no order. */
export type VersionOrder = -1 | 0 | 1 | 'differ'

/** Compares versions by semantic versioning, which ignores build tags. */
export const compareVersions = (a: string, b: string): -1 | 0 | 1 => parseVersion(a).compare(parseVersion(b))

/** Compares versions and then their build tags: numbers by value, numbers before words, fewer tags first. Different words have no order. */
export function compareWithBuild(a: string, b: string): VersionOrder {
  const left = parseVersion(a)
  const right = parseVersion(b)
  return left.compare(right) || compareBuilds(left.build, right.build)
}

export const sameVersion = (a: string, b: string): boolean => compareWithBuild(a, b) === 0

/** Whether `desired` is an upgrade of `current`: a higher version, higher build tags, or build tags that have no order. */
export function isUpgrade(current: string, desired: string): boolean {
  const order = compareWithBuild(desired, current)
  return order === 1 || order === 'differ'
}

const notAVersion = (text: string): TypeError => new TypeError(`failed to parse version ${text}: it is not a semantic version`)

function splitCore(text: string): [core: string, rest: string] {
  const end = text.search(/[-+]/)
  return end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end)]
}

function compareBuilds(left: readonly string[], right: readonly string[]): VersionOrder {
  for (const [index, a] of left.entries()) {
    const b = right[index]
    if (b === undefined) return 1
    const order = compareBuildTags(a, b)
    if (order !== 0) return order
  }
  return left.length < right.length ? -1 : 0
}

function compareBuildTags(a: string, b: string): VersionOrder {
  if (a === b) return 0
  const aIsNumber = /^\d+$/.test(a)
  const bIsNumber = /^\d+$/.test(b)
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1
  if (!aIsNumber) return 'differ'
  const difference = BigInt(a) - BigInt(b)
  return difference === 0n ? 0 : difference < 0n ? -1 : 1
}

/** Whether two versions belong to one release. Distributions add their own suffixes to the version of a release. */
export const isSameRelease = (a: string, b: string): boolean => releaseOf(a) === releaseOf(b)

const releaseOf = (version: string): string => /^v?\d+\.\d+\.\d+/.exec(version)?.[0].replace(/^v/, '') ?? version
