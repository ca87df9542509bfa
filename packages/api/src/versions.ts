/** Kubernetes versions: semantic versions with a leading `v`, compared with or without their build tags. Upstream: util/version, v1.14. */
import { SemVer } from 'semver'

/** `v1.36.0` as people and API servers write it; minor and patch may be missing. @throws TypeError that names it when it is no version */
export function parseVersion(text: string): SemVer {
  // Upstream: semver.ParseTolerant.
  const [core, rest] = splitCore(text.trim().replace(/^v/, ''))
  const numbers = core.split('.')
  if (numbers.length > 3 || numbers.some((number) => !/^\d+$/.test(number))) throw notAVersion(text)
  if (numbers.length < 3 && rest !== '') throw notAVersion(text)
  while (numbers.length < 3) numbers.push('0')
  return new SemVer(numbers.map((number) => number.replace(/^0+(?=\d)/, '')).join('.') + rest)
}

/** Whether the text is `v` and a semantic version to the letter, as fields of the API demand. */
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

/** The text with a leading `v`; an empty text stays empty. */
export const withVersionPrefix = (text: string): string => (text === '' || text.startsWith('v') ? text : `v${text}`)

/** The version as messages print it: `v` and the canonical form, build tags kept. */
export const versionText = ({ version, build }: SemVer): string => `v${version}${build.length === 0 ? '' : `+${build.join('.')}`}`

/** How one version stands to another: `differ` means that they differ in build tags only, and nothing says which comes first. */
export type VersionOrder = -1 | 0 | 1 | 'differ'

/** Compares as semantic versioning says: build tags do not count. */
export const compareVersions = (a: string, b: string): -1 | 0 | 1 => parseVersion(a).compare(parseVersion(b))

/** Compares build tags too, when all else is equal: numbers by value, numbers below words; different words have no order. */
export function compareWithBuild(a: string, b: string): VersionOrder {
  const left = parseVersion(a)
  const right = parseVersion(b)
  return left.compare(right) || compareBuilds(left.build, right.build)
}

export const sameVersion = (a: string, b: string): boolean => compareWithBuild(a, b) === 0

/** True when going from `current` to `desired` is an upgrade: it is higher, or another build. */
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

/** Whether two versions are of one release: distributions add their own suffixes to what they build from it. */
export const isSameRelease = (a: string, b: string): boolean => releaseOf(a) === releaseOf(b)

const releaseOf = (version: string): string => /^v?\d+\.\d+\.\d+/.exec(version)?.[0].replace(/^v/, '') ?? version
