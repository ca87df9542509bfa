/**
 * Validates names, labels and similar texts. Each function named `…Problems` returns error texts, none for a valid text.
 * Upstream: k8s.io/apimachinery/pkg/util/validation and pkg/api/validate/content, v0.36.
 */

import { appendAll } from './lists.ts'

export function labelKeyProblems(key: string): string[] {
  const parts = key.split('/')
  if (parts.length > 2) {
    return [
      `a valid label key ${notOfForm(LabelName, 'MyName', 'my.name', '123-abc')} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  return qualifiedParts(parts)
}

/**
 * Validates a name with an optional domain prefix, such as the name of a finalizer or a condition type. As upstream, the error for a name
 * with several slashes calls it a label key.
 */
export const qualifiedNameProblems = (name: string): string[] => labelKeyProblems(name)

export const labelValueProblems = (value: string): string[] => [
  ...(value.length > 63 ? [tooLongText(63, 'bytes')] : []),
  ...(matches(LabelValue, value) ? [] : [notOfForm(LabelValue, 'MyValue', 'my_value', '12345')]),
]

/** Validates a DNS subdomain, the form of most object names. */
export const subdomainProblems = (value: string, unit: 'bytes' | 'characters' = 'characters'): string[] => [
  ...(value.length > 253 ? [tooLongText(253, unit)] : []),
  ...(matches(Subdomain, value) ? [] : [notOfForm(Subdomain, 'example.com')]),
]

/**
 * Replaces a trailing dash of a `generateName`, and the character before the dash, with `a`, so that the result can be validated as a name.
 * The dash is allowed because a random suffix follows. Upstream: apimachinery's pkg/api/validation, v0.36, which does not validate the
 * character before the dash either.
 */
export const maskTrailingDash = (prefix: string): string =>
  prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix

/** Validates a subdomain whose first label is a wildcard: `*.example.com`. */
export const wildcardSubdomainProblems = (value: string): string[] => [
  ...(value.length > 253 ? [tooLongText(253, 'characters')] : []),
  ...(matches(WildcardSubdomain, value) ? [] : [notOfForm(WildcardSubdomain, '*.example.com')]),
]

/** Validates that the name can be a segment of a URL path. Upstream: path.ValidatePathSegmentName. */
export function pathSegmentProblems(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`]
  return ['/', '%'].filter((character) => name.includes(character)).map((character) => `may not contain '${character}'`)
}

/** Validates a DNS label, the form of namespace names. */
export const dnsLabelProblems = (value: string): string[] => [
  ...(value.length > 63 ? [tooLongText(63, 'characters')] : []),
  ...(matches(DNSLabel, value)
    ? []
    : matches(Subdomain, value)
      ? ['must not contain dots']
      : [notOfForm(DNSLabel, 'my-name', '123-abc')]),
]

/** Validates an RFC 1035 label, the form of the plural names and versions of resources, and of kinds converted to lower case. */
export const dns1035LabelProblems = (value: string): string[] => [
  ...(value.length > 63 ? [tooLongText(63, 'characters')] : []),
  ...(matches(DNS1035Label, value) ? [] : [notOfForm(DNS1035Label, 'my-name', 'abc-123')]),
]

interface Form {
  readonly rule: string
  readonly pattern: string
  readonly test: RegExp
  /** Cache of error texts by the first example in them, because a list of a million names may cause as many errors. */
  readonly texts: Map<string, string>
}

const form = (pattern: string, rule: string): Form => ({ rule, pattern, test: new RegExp(`^(?:${pattern})$`), texts: new Map() })
const matches = ({ test }: Form, value: string): boolean => test.test(value)

const LabelName = form(
  '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]',
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
)
const LabelValue = form(
  '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?',
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
)
const Subdomain = form(
  '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*',
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
)
const WildcardSubdomain = form(
  '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*',
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
)
const DNSLabel = form(
  '[a-z0-9]([-a-z0-9]*[a-z0-9])?',
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
)
const DNS1035Label = form(
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
)

function qualifiedParts(parts: readonly string[]): string[] {
  const problems: string[] = []
  const [prefix, name] = parts.length === 2 ? [parts[0]!, parts[1]!] : [undefined, parts[0] ?? '']
  if (prefix === '') problems.push('prefix part must be non-empty')
  else if (prefix !== undefined)
    appendAll(
      problems,
      subdomainProblems(prefix, 'bytes').map((problem) => `prefix part ${problem}`),
    )
  if (name === '') problems.push('name part must be non-empty')
  else if (name.length > 63) problems.push(`name part ${tooLongText(63, 'bytes')}`)
  if (!matches(LabelName, name)) problems.push(`name part ${notOfForm(LabelName, 'MyName', 'my.name', '123-abc')}`)
  return problems
}

// Upstream's texts give the same limits in bytes in some functions, and in characters in others.
const tooLongText = (max: number, unit: 'bytes' | 'characters'): string => `must be no more than ${max} ${unit}`

function notOfForm({ rule, pattern, texts }: Form, ...examples: readonly [string, ...string[]]): string {
  const cachedText = texts.get(examples[0])
  if (cachedText !== undefined) return cachedText
  const listed = examples.map((example) => `'${example}'`).join(',  or ')
  const text = `${rule} (e.g. ${listed}, regex used for validation is '${pattern}')`
  texts.set(examples[0], text)
  return text
}

/** Lists the first `limit` names: `a, b, c, ... (2 more)`. */
export const shortList = (names: readonly string[], limit: number): string =>
  names.slice(0, limit).join(', ') + (names.length > limit ? `, ... (${names.length - limit} more)` : '')
