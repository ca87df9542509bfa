/** Kubernetes versions and their order, build metadata included. Upstream: util/version, internal/util/version, v1.14. */
import { SemVer, parse } from 'semver'

/** How two versions relate: `differ` means that they differ in build metadata only, and nothing says which comes first. */
export type VersionOrder = -1 | 0 | 1 | 'differ'

/** Parses `v1.34.0`, with or without the `v`. @throws Error that names the version */
export function parseVersion(version: string): SemVer {
  const parsed = parse(version.replace(/^v/, ''))
  if (!parsed) throw new Error(`failed to parse version ${version}: it is not a semantic version`)
  return parsed
}

/** The version as messages print it: `v` and the canonical form, build metadata kept. */
export const versionText = ({ version, build }: SemVer): string => `v${version}${build.length === 0 ? '' : `+${build.join('.')}`}`

/** Order by precedence; build metadata does not count. */
export const compareVersions = (a: string, b: string): -1 | 0 | 1 => parseVersion(a).compare(parseVersion(b))

/** Order by precedence, then by build metadata where that has an order. */
export function compareWithBuild(a: string, b: string): VersionOrder {
  const left = parseVersion(a)
  const right = parseVersion(b)
  return left.compare(right) || compareBuilds(left.build, right.build)
}

export const sameVersion = (a: string, b: string): boolean => compareWithBuild(a, b) === 0

const Numeric = /^[0-9]+$/

function compareBuilds(left: readonly string[], right: readonly string[]): VersionOrder {
  if (left.length !== right.length) return 'differ'
  for (const [index, a] of left.entries()) {
    const b = right[index]!
    if (a === b) continue
    const numbers = Number(Numeric.test(a)) + Number(Numeric.test(b))
    if (numbers === 1) return 'differ'
    if (numbers === 2) {
      const order = BigInt(a) - BigInt(b)
      if (order !== 0n) return order < 0n ? -1 : 1
    } else {
      return a < b ? -1 : 1
    }
  }
  return 0
}
