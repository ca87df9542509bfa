/**
 * Parses Kubernetes versions, which are semantic versions with a leading `v`, and compares them with or without their build tags.
 * Upstream: util/version, v1.14.
 */
import { messageOf } from '@capstan/kube'
import { SemVer } from 'semver'

/**
 * Parses a version such as `v1.36.0`. The `v`, minor and patch may be missing.
 *
 * @param problem - start of the error text. The reason follows, with the text of upstream's parser if that parser also rejects the version.
 * @throws TypeError when the text is not a version, or a number in it is too large
 */
export function parseVersion(text: string, problem = `failed to parse version ${text}`): SemVer {
  const version = canonicalForm(text)
  const reason = invalidPart(version)
  if (reason !== undefined) throw new TypeError(`${problem}: ${reason}`)
  try {
    return new SemVer(version)
  } catch (cause) {
    throw new TypeError(`${problem}: ${messageOf(cause)}`, { cause })
  }
}

/** Parses a version as `parseVersion` does; returns `undefined` when `parseVersion` throws. */
export function tryParseVersion(text: string): SemVer | undefined {
  try {
    return parseVersion(text)
  } catch {
    return undefined
  }
}

/**
 * Removes white space around the version, the `v` and leading zeros, and completes one or two numbers without a suffix to three numbers.
 * Upstream: semver.ParseTolerant.
 */
function canonicalForm(text: string): string {
  const [major = '', minor, ...patch] = text.trim().replace(/^v/, '').split('.')
  const parts = [major]
  if (minor !== undefined) parts.push(minor)
  if (patch.length > 0) parts.push(patch.join('.'))
  const isShort = parts.length < 3 && !/[-+]/.test(parts.at(-1)!)
  return [...parts.map(withoutLeadingZeros), ...(isShort ? ['0', '0'] : [])].slice(0, 3).join('.')
}

/** Removes leading zeros from a part of two or more characters. As in upstream, adds one zero if the rest does not begin with a digit. */
function withoutLeadingZeros(part: string): string {
  if (part.length < 2) return part
  const digits = part.replace(/^0+/, '')
  return /^\d/.test(digits) ? digits : `0${digits}`
}

/** The largest number that upstream's parser reads. */
const MaxNumber = 2n ** 64n - 1n

/**
 * Returns the error text of upstream's library for an invalid version; `undefined` when that library accepts the version, or rejects only a
 * pre-release number above `MaxNumber`.
 */
function invalidPart(version: string): string | undefined {
  const [major = '', minor, ...rest] = version.split('.')
  if (minor === undefined || rest.length === 0) return 'Short version cannot contain PreRelease/Build meta data'
  const [beforeBuild, build] = splitAt(rest.join('.'), '+')
  const [patch, preRelease] = splitAt(beforeBuild, '-')
  return (
    invalidNumber('major', major) ??
    invalidNumber('minor', minor) ??
    invalidNumber('patch', patch) ??
    preRelease?.split('.').map(invalidPreRelease).find(Boolean) ??
    build?.split('.').map(invalidBuild).find(Boolean)
  )
}

function invalidNumber(name: string, part: string): string | undefined {
  const quoted = JSON.stringify(part)
  if (/\D/.test(part)) return `Invalid character(s) found in ${name} number ${quoted}`
  if (part === '') return `strconv.ParseUint: parsing ${quoted}: invalid syntax`
  return BigInt(part) > MaxNumber ? `strconv.ParseUint: parsing ${quoted}: value out of range` : undefined
}

function invalidPreRelease(part: string): string | undefined {
  if (part === '') return 'Prerelease is empty'
  if (/^0\d+$/.test(part)) return `Numeric PreRelease version must not contain leading zeroes ${JSON.stringify(part)}`
  if (/^\d+$/.test(part)) return invalidNumber('prerelease', part)
  return isWord(part) ? undefined : `Invalid character(s) found in prerelease ${JSON.stringify(part)}`
}

function invalidBuild(part: string): string | undefined {
  if (part === '') return 'Build meta data is empty'
  return isWord(part) ? undefined : `Invalid character(s) found in build meta data ${JSON.stringify(part)}`
}

const isWord = (part: string): boolean => /^[0-9A-Za-z-]+$/.test(part)

function splitAt(text: string, separator: string): [before: string, after: string | undefined] {
  const index = text.indexOf(separator)
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)]
}

/** Whether the text is `v` followed by an exact semantic version, which fields of the API require. */
export function isKubernetesVersion(text: string): boolean {
  const unprefixed = text.slice(1)
  if (!text.startsWith('v')) return false
  try {
    const { version, build } = new SemVer(unprefixed)
    return unprefixed === [version, ...(build.length > 0 ? [build.join('.')] : [])].join('+')
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

/** Whether two versions are equal, including their build tags. */
export const sameVersion = (a: string, b: string): boolean => compareWithBuild(a, b) === 0

/** Whether `desired` is an upgrade of `current`: a higher version, higher build tags, or build tags that have no order. */
export function isUpgrade(current: string, desired: string): boolean {
  const order = compareWithBuild(desired, current)
  return order === 1 || order === 'differ'
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

/** Whether major, minor and patch of two versions are equal. Ignores suffixes, which distributions add to the version of a release. */
export const isSameRelease = (a: string, b: string): boolean => releaseOf(a) === releaseOf(b)

const releaseOf = (version: string): string => /^v?\d+\.\d+\.\d+/.exec(version)?.[0].replace(/^v/, '') ?? version
