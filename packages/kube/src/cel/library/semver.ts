/** Semantic versions. Upstream: apiserver/pkg/cel/library/semverlib.go. */
import { compareText } from '../../compare-text.ts'
import type { Library } from '../signature.ts'
import { EvaluationError, Opaque } from '../value.ts'

class Semver extends Opaque {
  readonly type = 'kubernetes.Semver'
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly pre: readonly string[]
  constructor(numbers: readonly [bigint, bigint, bigint], pre: readonly string[]) {
    super()
    this.numbers = numbers
    this.pre = pre
  }
  equals(other: Opaque): boolean {
    return other instanceof Semver && compare(this, other) === 0
  }
}

const Digits = '0|[1-9]\\d*'
const Form = new RegExp(`^(${Digits})\\.(${Digits})\\.(${Digits})(?:-([0-9A-Za-z.-]+))?(?:\\+([0-9A-Za-z.-]+))?$`)

function read(text: string, normalize = false): Semver | undefined {
  const parts = Form.exec(normalize ? normalizeVersion(text) : text)
  if (!parts) return undefined
  const [, major = '', minor = '', patch = '', pre, build] = parts
  const identifiers = pre?.split('.') ?? []
  if (identifiers.some((identifier) => identifier === '' || /^0\d+$/.test(identifier)) || build?.split('.').includes(''))
    return undefined
  const numbers = [BigInt(major), BigInt(minor), BigInt(patch)] as const
  return numbers.some((number) => number >= 2n ** 63n) ? undefined : new Semver(numbers, identifiers)
}

/** Removes the prefix `v` and leading zeros; pads a version without pre-release and build metadata to three numbers. */
function normalizeVersion(text: string): string {
  const [, numbers = '', suffix = ''] = /^v?([0-9.]*)(.*)$/s.exec(text)!
  const parts = numbers.split('.').map((part) => part.replace(/^0+(?=\d)/, ''))
  while (parts.length < 3 && suffix === '') parts.push('0')
  return parts.join('.') + suffix
}

function parse(text: string, normalize = false): Semver {
  const version = read(text, normalize)
  if (!version)
    throw new EvaluationError(`semver parse error during conversion from string: ${JSON.stringify(text)} is not a version`)
  return version
}

function compare(a: Semver, b: Semver): number {
  for (let index = 0; index < 3; index++) {
    const [left, right] = [a.numbers[index]!, b.numbers[index]!]
    if (left !== right) return left < right ? -1 : 1
  }
  // A version is greater than its pre-releases.
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length)
  for (let index = 0; index < Math.min(a.pre.length, b.pre.length); index++) {
    const order = compareIdentifiers(a.pre[index]!, b.pre[index]!)
    if (order !== 0) return order
  }
  return Math.sign(a.pre.length - b.pre.length)
}

function compareIdentifiers(a: string, b: string): number {
  const [left, right] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (left && right) return BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0
  if (left !== right) return left ? -1 : 1
  return compareText(a, b)
}

export const semver: Library = {
  'semver(string): Semver': (text: string) => parse(text),
  'semver(string, bool): Semver': parse,
  'isSemver(string): bool': (text: string) => read(text) !== undefined,
  'isSemver(string, bool): bool': (text: string, normalize: boolean) => read(text, normalize) !== undefined,
  'Semver.major(): int': ({ numbers }: Semver) => numbers[0],
  'Semver.minor(): int': ({ numbers }: Semver) => numbers[1],
  'Semver.patch(): int': ({ numbers }: Semver) => numbers[2],
  'Semver.compareTo(Semver): int': (a: Semver, b: Semver) => BigInt(compare(a, b)),
  'Semver.isGreaterThan(Semver): bool': (a: Semver, b: Semver) => compare(a, b) > 0,
  'Semver.isLessThan(Semver): bool': (a: Semver, b: Semver) => compare(a, b) < 0,
}
