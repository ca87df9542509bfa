/**
 * Compares a response with one recorded from a real server, in which values that always differ are placeholders, such as `<uid>`. Only for
 * tests.
 */
import { isRecord, stableText } from '@capstan/kube'
import { parseYAML } from './body/yaml.ts'

/** A recorded response. Members of this interface that are absent are not compared. */
export interface Recorded {
  readonly status: number
  /**
   * Only content-type, warning and retry-after are compared. The actual response must not have a warning or retry-after that is absent here.
   */
  readonly headers?: { readonly [name: string]: string }
  /** The whole body, or values of the body by dotted path. */
  readonly body?: unknown
  /** The body as text, if it is not JSON or is a stream. */
  readonly text?: string
  /** Events of a watch. */
  readonly events?: readonly unknown[]
  /** Names of the items of a list. */
  readonly names?: readonly string[]
  /** Message of a Status. */
  readonly message?: string
}

export interface ActualResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string | readonly string[] }
  readonly text: string
}

/**
 * Returns differences between the recorded and the actual response as texts: those of status and headers or, if there are none, the first
 * differences of the body. `unstable`: compares only status and headers.
 */
export function differences(expected: Recorded, actual: ActualResponse, { unstable = false } = {}): string[] {
  const problems: string[] = []
  if (actual.status !== expected.status)
    problems.push(`status: expected ${expected.status}, got ${actual.status} ${excerpt(actual.text)}`)
  for (const name of ['content-type', 'warning', 'retry-after']) {
    const actualValue = [actual.headers[name] ?? []].flat().join(', ')
    const expectedValue = expected.headers?.[name] ?? (name === 'content-type' || expected.headers === undefined ? undefined : '')
    if (expectedValue !== undefined && actualValue !== expectedValue)
      problems.push(`header ${name}: expected ${JSON.stringify(expectedValue)}, got ${JSON.stringify(actualValue)}`)
  }
  if (problems.length > 0 || unstable) return problems
  if (expected.events) compare('events', expected.events, lines(actual.text), problems)
  else if (expected.body !== undefined) compareBody(expected.body, actual, problems)
  else if (expected.text !== undefined) compareText(expected, actual.text, problems)
  if (expected.names) {
    const items = (json(actual.text) as { items?: { metadata: { name: string } }[] }).items ?? []
    compare(
      'names',
      expected.names,
      items.map(({ metadata }) => metadata.name),
      problems,
    )
  }
  if (expected.message !== undefined)
    compare('message', expected.message, (json(actual.text) as { message?: unknown }).message, problems)
  return problems
}

function compareBody(expected: unknown, actual: ActualResponse, problems: string[]): void {
  const body = json(actual.text)
  if (!isRecord(expected)) return compare('', expected, body, problems)
  for (const [path, value] of Object.entries(expected)) compare(path, value, at(body, path), problems)
  // A recorded object with kind, apiVersion and metadata, and no dotted paths, is complete. Any other object is compared only at its paths.
  const isWhole =
    'kind' in expected &&
    'apiVersion' in expected &&
    'metadata' in expected &&
    !Object.keys(expected).some((path) => path.includes('.'))
  if (!isWhole || !isRecord(body)) return
  for (const member of Object.keys(body))
    if (!(member in expected)) problems.push(`${member}: expected to be absent, got ${excerpt(JSON.stringify(body[member]))}`)
}

function compareText(expected: Recorded, text: string, problems: string[]): void {
  const expectedText = expected.text ?? ''
  if (expected.headers?.['content-type'] === 'application/yaml')
    return compare('', parseYAML(expectedText), parseYAML(text), problems)
  if (!expectedText.startsWith('{')) return compare('text', expectedText.trim(), text.trim(), problems)
  // A long stream is recorded only in part.
  const complete = expectedText.slice(0, expectedText.lastIndexOf('\n'))
  compare('lines', lines(complete), lines(text).slice(0, lines(complete).length), problems)
}

function compare(path: string, expected: unknown, actual: unknown, problems: string[]): void {
  if (problems.length >= 5) return
  const differ = () =>
    problems.push(`${path}: expected ${excerpt(JSON.stringify(expected))}, got ${excerpt(JSON.stringify(actual))}`)
  if (typeof expected === 'string') {
    if (!sameText(path, expected, expected === '<n>' && typeof actual === 'number' ? String(actual) : actual)) differ()
  } else if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return void differ()
    const [sortedExpected, sortedActual] = [sortedIfUnordered(path, expected), sortedIfUnordered(path, actual)]
    if (sortedExpected.length !== sortedActual.length)
      problems.push(
        `${path}: expected ${sortedExpected.length} items, got ${sortedActual.length}: ${excerpt(JSON.stringify(sortedActual))}`,
      )
    else sortedExpected.forEach((item, index) => compare(`${path}[${index}]`, item, sortedActual[index], problems))
  } else if (isRecord(expected)) {
    if (!isRecord(actual)) return void differ()
    for (const key of Object.keys(expected)) compare(`${path}.${key}`, expected[key], actual[key], problems)
    for (const key of Object.keys(actual)) {
      if (!(key in expected) && actual[key] !== undefined)
        problems.push(`${path}.${key}: expected to be absent, got ${excerpt(JSON.stringify(actual[key]))}`)
    }
  } else if (expected !== actual && !(expected === null && actual === undefined)) differ()
}

/** Sorts lists in which the order is not significant: causes, and managedFields entries, which may have the same time. */
function sortedIfUnordered(path: string, list: readonly unknown[]): readonly unknown[] {
  if (path.endsWith('causes')) return byField(list)
  if (path.endsWith('managedFields')) return byManager(list)
  return list
}

const placeholders: { readonly [name: string]: string } = {
  '<uid>': '[0-9a-f-]{36}',
  '<rv>': '\\d+',
  '<n>': '\\d+',
  '<ip>': '\\d+(?:\\.\\d+){3}',
  '<continue>': '\\S+',
  '<time>': '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z',
  '<rand5>': '[a-z0-9]{5}',
  '<server>': '.*',
  '<text>': '.*',
  '<age>': '(?:\\d+[ydhms])+',
}
/** Abbreviations of managers in the recordings: components of a Kubernetes control plane. */
const managers: { readonly [name: string]: string } = { kas: 'kube-apiserver', kcm: 'kube-controller-manager' }

function sameText(path: string, expected: string, actual: unknown): boolean {
  if (expected === actual) return true
  if (typeof actual !== 'string') return false
  if (isCertificate(expected) && isCertificate(actual)) return true
  // Recorded uids are anonymized.
  if (path.endsWith('.uid') && expected === '<uid>') return true
  if (/cells\[\d+\]$/.test(path) && /^\d+s$/.test(expected)) return /^\d+s$/.test(actual)
  if (path.endsWith('message') && sorted(partsOf(expected)).join() === sorted(partsOf(actual)).join()) return true
  const pattern = expected
    .split(/(<[a-z0-9]+>|in scheme "[^"]*")/)
    .map(
      (part) =>
        placeholders[part] ?? (part.startsWith('in scheme') ? 'in scheme "[^"]*"' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')),
    )
  return new RegExp(`^${pattern.join('')}$`, 's').test(actual)
}

const isCertificate = (text: string): boolean => text.startsWith('-----BEGIN CERTIFICATE-----')

/** Splits the errors of a message, whose order is not significant. */
const partsOf = (message: string): string[] => message.replace(/^(.*? is invalid: )\[(.*)\]$/s, '$1, $2').split(', ')

const sorted = (list: readonly unknown[]): unknown[] => [...list].sort((a, b) => (stableText(a) < stableText(b) ? -1 : 1))
const byField = (causes: readonly unknown[]): unknown[] =>
  sorted((causes as { field?: string }[]).map((cause) => ({ field: cause.field, ...cause })))
const byManager = (entries: readonly unknown[]): unknown[] =>
  sorted((entries as { manager: string }[]).map(({ manager, ...entry }) => ({ manager: managers[manager] ?? manager, ...entry })))
const lines = (text: string): unknown[] => text.split('\n').filter(Boolean).map(json)
const excerpt = (text: string | undefined): string =>
  text === undefined ? 'nothing' : text.length > 240 ? `${text.slice(0, 240)}…` : text

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns the member named `path`, otherwise the member at this dotted path. `length` as the last part returns the length of a list. */
export function at(value: unknown, path: string): unknown {
  if (isRecord(value) && Object.hasOwn(value, path)) return value[path]
  return path
    .split('.')
    .reduce<unknown>((parent, member) => (parent as Record<string, unknown> | undefined | null)?.[member], value)
}
