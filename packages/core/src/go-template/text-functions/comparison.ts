/** Sprig's functions for defaults, conditions, types and versions. Upstream: sprig v3, defaults.go, reflect.go and semver.go. */
import semver from 'semver'
import { typeName, kindName, goFunction, variadic, GoStruct, isMap } from '../value.ts'
import type { TemplateFunction, Value } from '../value.ts'
import { isEmpty, isNil } from './convert.ts'

export const comparisonFunctions: Readonly<Record<string, TemplateFunction>> = {
  default: variadic(['any'], 'any', (fallback, ...values) => (values.length === 0 || isEmpty(values[0]) ? fallback : values[0])),
  empty: goFunction(['any'], isEmpty),
  coalesce: variadic([], 'any', (...values) => values.find((value) => !isEmpty(value)) ?? null),
  all: variadic([], 'any', (...values) => !values.some(isEmpty)),
  any: variadic([], 'any', (...values) => values.some((value) => !isEmpty(value))),
  ternary: goFunction(['any', 'any', 'bool'], (yes, no, test) => (test ? yes : no)),
  fail: goFunction(['string'], (message) => {
    throw new Error(message)
  }),
  typeOf: goFunction(['any'], typeName),
  kindOf: goFunction(['any'], kindName),
  typeIs: goFunction(['string', 'any'], (name, value) => name === typeName(value)),
  kindIs: goFunction(['string', 'any'], (name, value) => name === kindName(value)),
  typeIsLike: goFunction(['string', 'any'], (name, value) => name === typeName(value) || `*${name}` === typeName(value)),
  deepEqual: goFunction(['any', 'any'], deepEqual),
  semver: goFunction(['string'], (version) => versionStruct(parseVersion(version))),
  semverCompare: goFunction(['string', 'string'], (constraint, version) => satisfies(constraint, parseVersion(version))),
}

export function deepEqual(a: Value, b: Value): boolean {
  if (isNil(a) || isNil(b)) return isNil(a) && isNil(b)
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, index) => deepEqual(item, b[index]))
  if (!isMap(a) || !isMap(b)) return a === b
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && deepEqual(a[key], b[key]))
}

interface Version {
  readonly original: string
  readonly semver: semver.SemVer
}

/** Parses a version; `v`, minor and patch are optional. */
function parseVersion(original: string): Version {
  const [, major, minor, patch, suffix = ''] =
    /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$/.exec(original) ?? []
  const parsed = major === undefined ? null : semver.parse(`${major}.${minor ?? 0}.${patch ?? 0}${suffix}`)
  if (!parsed) throw new Error('invalid semantic version')
  return { original, semver: parsed }
}

function versionStruct({ original, semver: version }: Version): GoStruct {
  const comparison = (resultOf: (order: number) => Value): TemplateFunction =>
    goFunction(['any'], (other) => {
      if (!(other instanceof GoStruct)) throw new Error(`wrong type for value; expected *semver.Version; got ${typeName(other)}`)
      return resultOf(semver.compare(version, other.text))
    })
  const constant = (value: Value): TemplateFunction => goFunction([], () => value)
  const text = version.build.length > 0 ? `${version.version}+${version.build.join('.')}` : version.version
  return new GoStruct({
    typeName: '*semver.Version',
    text,
    methods: [
      ['Major', constant(BigInt(version.major))],
      ['Minor', constant(BigInt(version.minor))],
      ['Patch', constant(BigInt(version.patch))],
      ['Prerelease', constant(version.prerelease.join('.'))],
      ['Metadata', constant(version.build.join('.'))],
      ['Original', constant(original)],
      ['String', constant(text)],
      ['Compare', comparison((order) => BigInt(order))],
      ['Equal', comparison((order) => order === 0)],
      ['LessThan', comparison((order) => order < 0)],
      ['GreaterThan', comparison((order) => order > 0)],
    ],
  })
}

const Constraint =
  /(=>|=<|>=|<=|!=|~>|[=~^<>]?)\s*(v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*]))*(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)/y

/** Evaluates a constraint of Masterminds/semver: `,` or space means and, `||` means or. */
function satisfies(constraint: string, version: Version): boolean {
  const ranges = constraint.split('||').map((range) => {
    const normal = range.replace(/(\S+)\s+-\s+(\S+)/g, '>=$1 <=$2').trim()
    const comparators: (readonly [operator: string, version: string])[] = []
    Constraint.lastIndex = 0
    for (let position = 0; position < normal.length; ) {
      Constraint.lastIndex = position
      const match = Constraint.exec(normal)
      if (!match) throw new Error(`improper constraint: ${constraint}`)
      comparators.push([match[1]!, match[2]!.replace(/^v/, '')])
      position = Constraint.lastIndex
      while (/[\s,]/.test(normal[position] ?? '')) position++
    }
    if (comparators.length === 0) throw new Error(`improper constraint: ${constraint}`)
    return comparators
  })
  return ranges.some((range) => range.every(([operator, required]) => meets(operator, required, version.semver)))
}

function meets(operator: string, required: string, version: semver.SemVer): boolean {
  // A pre-release satisfies a comparator only if that comparator names a pre-release.
  if (version.prerelease.length > 0 && !required.includes('-')) return false
  const options = { includePrerelease: true }
  if (operator === '!=') return !semver.satisfies(version, required, options)
  return semver.satisfies(version, `${OperatorAliases[operator] ?? operator}${required}`, options)
}

const OperatorAliases: Readonly<Record<string, string>> = { '=>': '>=', '=<': '<=', '~>': '~' }
