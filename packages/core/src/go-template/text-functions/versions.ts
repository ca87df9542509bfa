/** Sprig's functions on semantic versions. Upstream: sprig v3, semver.go, and Masterminds/semver v3.4. */
import semver from 'semver'
import type { TemplateFunction, Value } from '../value.ts'
import { goFunction, GoStruct, typeName } from '../value.ts'

export const versionFunctions: Readonly<Record<string, TemplateFunction>> = {
  semver: goFunction(['string'], (version) => versionStruct(parseVersion(version))),
  semverCompare: goFunction(['string', 'string'], (constraint, version) => satisfies(constraint, version)),
}

type Numbers = readonly [major: bigint, minor: bigint, patch: bigint]

interface Version {
  readonly numbers: Numbers
  /** The pre-release without its `-`, or an empty text. */
  readonly prerelease: string
  /** The build metadata without its `+`, or an empty text. */
  readonly metadata: string
  /** The text from which the version was parsed. */
  readonly original: string
}

const Identifiers = String.raw`[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*`
const VersionPattern = new RegExp(`^v?([0-9]+)(?:\\.([0-9]+))?(?:\\.([0-9]+))?(?:-(${Identifiers}))?(?:\\+(${Identifiers}))?$`)
const MaxNumber = 2n ** 64n - 1n

/** Parses a version; `v`, minor and patch are optional, and the numbers may begin with zeros. */
function parseVersion(original: string): Version {
  const [matched, major, minor, patch, prerelease = '', metadata = ''] = VersionPattern.exec(original) ?? []
  if (matched === undefined) throw new Error('invalid semantic version')
  return {
    numbers: [versionNumber(major), versionNumber(minor), versionNumber(patch)],
    prerelease: validPrerelease(prerelease),
    metadata,
    original,
  }
}

function versionNumber(digits = '0'): bigint {
  const number = BigInt(digits)
  if (number <= MaxNumber) return number
  throw new Error(`error parsing version segment: strconv.ParseUint: parsing "${digits}": value out of range`)
}

function validPrerelease(prerelease: string): string {
  if (prerelease.split('.').some((identifier) => /^0[0-9]+$/.test(identifier))) throw new Error('version segment starts with 0')
  return prerelease
}

const textOf = ({ numbers, prerelease, metadata }: Omit<Version, 'original'>): string =>
  `${numbers.join('.')}${prerelease && `-${prerelease}`}${metadata && `+${metadata}`}`

/** Orders two versions; build metadata does not matter. */
function compareVersions(a: Version, b: Version): number {
  for (const [index, number] of a.numbers.entries()) {
    if (number !== b.numbers[index]) return number < b.numbers[index]! ? -1 : 1
  }
  return comparePrereleases(a.prerelease, b.prerelease)
}

/** Orders two pre-releases. A version without a pre-release comes after its pre-releases. */
function comparePrereleases(a: string, b: string): number {
  if (a === '' || b === '') return a === b ? 0 : a === '' ? 1 : -1
  const [identifiers, others] = [a.split('.'), b.split('.')]
  for (let index = 0; index < Math.min(identifiers.length, others.length); index++) {
    const order = semver.compareIdentifiers(identifiers[index]!, others[index]!)
    if (order !== 0) return order
  }
  return Math.sign(identifiers.length - others.length)
}

/** A version as a template sees it: a pointer for the result of `semver`, a value for the results of methods such as `IncMajor`. */
function versionStruct(version: Version, structType: 'semver.Version' | '*semver.Version' = '*semver.Version'): GoStruct {
  const { numbers, prerelease, metadata, original } = version
  const [major, minor, patch] = numbers
  const constant = (value: Value): TemplateFunction => goFunction([], () => value)
  const comparison = (resultOf: (order: number) => Value): TemplateFunction =>
    goFunction(['any'], (other) => {
      const otherVersion = other instanceof GoStruct && parseVersion(other.text)
      if (!otherVersion) throw new Error(`wrong type for value; expected *semver.Version; got ${typeName(other)}`)
      return resultOf(compareVersions(version, otherVersion))
    })
  const changed = (change: Partial<Version>): GoStruct => {
    const next = { ...version, ...change }
    return versionStruct({ ...next, original: `${original.startsWith('v') ? 'v' : ''}${textOf(next)}` }, 'semver.Version')
  }
  const increased = (nextNumbers: Numbers): TemplateFunction =>
    goFunction([], () => changed({ numbers: nextNumbers, prerelease: '', metadata: '' }))
  const text = textOf(version)
  const methods: [string, TemplateFunction][] = [
    ['Major', constant(major)],
    ['Minor', constant(minor)],
    ['Patch', constant(patch)],
    ['Prerelease', constant(prerelease)],
    ['Metadata', constant(metadata)],
    ['String', constant(text)],
    ['IncMajor', increased([major + 1n, 0n, 0n])],
    ['IncMinor', increased([major, minor + 1n, 0n])],
    // The patch after a pre-release is the version without the pre-release.
    ['IncPatch', increased([major, minor, prerelease === '' ? patch + 1n : patch])],
    ['SetPrerelease', goFunction(['string'], (next) => changed({ prerelease: validSuffix(next, 'prerelease') }))],
    ['SetMetadata', goFunction(['string'], (next) => changed({ metadata: validSuffix(next, 'metadata') }))],
  ]
  const pointerMethods: [string, TemplateFunction][] = [
    ['Original', constant(original)],
    ['Compare', comparison((order) => BigInt(order))],
    ['Equal', comparison((order) => order === 0)],
    ['LessThan', comparison((order) => order < 0)],
    ['LessThanEqual', comparison((order) => order <= 0)],
    ['GreaterThan', comparison((order) => order > 0)],
    ['GreaterThanEqual', comparison((order) => order >= 0)],
  ]
  return new GoStruct({
    typeName: structType,
    text,
    identity: original,
    methods: structType === 'semver.Version' ? methods : [...methods, ...pointerMethods],
  })
}

function validSuffix(suffix: string, name: 'prerelease' | 'metadata'): string {
  if (suffix !== '' && !new RegExp(`^${Identifiers}$`).test(suffix)) throw new Error(`invalid ${name} string`)
  return name === 'prerelease' ? validPrerelease(suffix) : suffix
}

/** One condition of a constraint, such as `>=1.2`. Missing and wildcard numbers of the version are 0. */
interface Comparator {
  readonly operator: string
  readonly version: Version
  /** How many of the three numbers precede the first missing or wildcard number. */
  readonly known: number
}

const Operator = '=>|=<|>=|<=|!=|~>|[=<>~^]|'
const PartialVersion = String.raw`v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*]))?(?:\.(?:[0-9]+|[xX*]))?(?:-${Identifiers})?(?:\+${Identifiers})?`
const ComparatorText = `(?:${Operator}) ?${PartialVersion}`
const ComparatorList = new RegExp(`^ ?${ComparatorText}(?:(?: ?, ?| )${ComparatorText})* ?$`)
const EachComparator = new RegExp(`(${Operator}) ?(${PartialVersion})`, 'g')
const VersionRange = new RegExp(` ?(${PartialVersion}) - (${PartialVersion}) ?`, 'g')

/** Evaluates a constraint: a comma or space means and, `||` means or. A pre-release satisfies only alternatives that name a pre-release. */
function satisfies(constraint: string, versionText: string): boolean {
  const alternatives = constraint.replace(/\s+/g, ' ').replace(VersionRange, '>= $1, <= $2 ').split('||').map(parseComparators)
  const version = parseVersion(versionText)
  return alternatives.some(
    (comparators) =>
      (version.prerelease === '' || comparators.some((comparator) => comparator.version.prerelease !== '')) &&
      comparators.every((comparator) => meets(comparator, version)),
  )
}

function parseComparators(text: string): Comparator[] {
  if (!ComparatorList.test(text)) throw new Error(`improper constraint: ${text}`)
  return [...text.matchAll(EachComparator)].map(([, operator = '', partial = '']) => {
    const [, numbers = '', suffix = ''] = /^v?([0-9xX*.]+)(.*)$/.exec(partial) ?? []
    const parts = numbers.split('.')
    const wildcard = parts.findIndex((part) => /[xX*]/.test(part))
    const known = wildcard < 0 ? parts.length : wildcard
    const completed = [...parts.slice(0, known), '0', '0', '0'].slice(0, 3).join('.')
    return { operator, version: comparatorVersion(`${completed}${suffix}`), known }
  })
}

function comparatorVersion(text: string): Version {
  try {
    return parseVersion(text)
  } catch (cause) {
    throw new Error('constraint parser error', { cause })
  }
}

function meets({ operator, version: required, known }: Comparator, version: Version): boolean {
  const order = compareVersions(version, required)
  /** Whether the first `count` numbers are equal. */
  const shares = (count: number): boolean =>
    version.numbers.slice(0, count).every((number, index) => number === required.numbers[index])
  const isPartial = known === 1 || known === 2
  switch (operator) {
    case '!=':
      return isPartial
        ? !shares(known) || (known === 2 && comparePrereleases(version.prerelease, required.prerelease) !== 0)
        : order !== 0
    case '>':
      return order > 0 && !(isPartial && shares(known))
    case '<':
      return order < 0
    case '>=':
    case '=>':
      return order >= 0
    case '<=':
    case '=<':
      return order <= 0 || (known < 3 && shares(known === 0 ? 2 : known))
    case '^':
      return order >= 0 && shares(caretNumbers(required, known))
    default:
      return operator.startsWith('~') || known < 3
        ? order >= 0 && (isAny(required, known) || shares(known === 1 ? 1 : 2))
        : order === 0
  }
}

/** Whether a tilde allows every later version: for `~*` and `~0.0.0`. */
const isAny = ({ numbers }: Version, known: number): boolean =>
  (known === 0 || known === 3) && numbers.every((number) => number === 0n)

/** How many numbers must stay the same for `^`: up to the first that is not 0, at least one, at most those that are known. `^*` means `^0.0.0`. */
function caretNumbers({ numbers }: Version, known: number): number {
  const nonZero = numbers.findIndex((number) => number !== 0n)
  return Math.min(nonZero < 0 ? 3 : nonZero + 1, known === 0 ? 3 : known)
}
