/**
 * Orders API versions as Kubernetes does: GA before beta before alpha, then higher numbers first. What is not a Kubernetes
 * version comes after all that are, by name.
 *
 * @returns negative when `a` is preferred over `b`, so that sorting puts the most preferred first
 */
export function compareApiVersions(a: string, b: string): number {
  const left = parse(a)
  const right = parse(b)
  if (!left || !right) return left ? -1 : right ? 1 : a < b ? -1 : a > b ? 1 : 0
  return right.stability - left.stability || right.major - left.major || right.minor - left.minor
}

const Stability = { alpha: 0, beta: 1 }

function parse(version: string): { stability: number; major: number; minor: number } | undefined {
  const match = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/.exec(version)
  if (!match) return undefined
  const [, major, stability, minor] = match
  return {
    stability: stability === undefined ? 2 : Stability[stability as keyof typeof Stability],
    major: Number(major),
    minor: Number(minor ?? 0),
  }
}
