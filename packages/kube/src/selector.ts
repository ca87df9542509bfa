/**
 * Label selectors, in the grammar of `kubectl get -l` and as objects in specs, and field selectors. Upstream:
 * k8s.io/apimachinery/pkg/labels and pkg/fields, v0.36, with their error texts.
 */
import { compareText } from './compare-text.ts'
import { badRequest, type FieldError, forbidden, invalid, required } from './errors.ts'
import { labelKeyProblems, labelValueProblems } from './names.ts'

export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt'

/** One requirement on one label. */
export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  /** Sorted, without duplicates. */
  readonly values: readonly string[]
}

export type Labels = { readonly [key: string]: string }

/** metav1.LabelSelector, as `spec.selector` of many kinds. */
export interface LabelSelector {
  matchLabels?: { [key: string]: string }
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

/** A parsed selector. `text` is its form in a query, for instance `a=b,c in (d,e)`. */
export interface Selector {
  readonly requirements: readonly LabelRequirement[]
  readonly text: string
  matches(labels: Labels | undefined): boolean
}

/** Selects every object. */
export const everything: Selector = { requirements: [], text: '', matches: () => true }
/** Selects no object, as an absent LabelSelector does. Its `text` is empty, which selects all objects in a query. */
export const nothing: Selector = { requirements: [], text: '', matches: () => false }

/**
 * Parses a label selector in the grammar of `kubectl get -l`, such as `a=b,c in (d,e)`.
 *
 * @throws StatusError BadRequest with upstream's text when the selector is malformed
 */
export function parseLabelSelector(text: string): Selector {
  return selectorOf(parse(scan(text)))
}

/**
 * Parses the selector of a spec. An absent selector selects no objects, an empty selector all objects.
 *
 * @throws StatusError BadRequest when a label, an expression or an operator is not valid
 */
export function labelSelector(selector: LabelSelector | undefined): Selector {
  if (!selector) return nothing
  const requirements: LabelRequirement[] = []
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) requirements.push(requirement(key, '=', [value]))
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const isKnown = Object.hasOwn(ExpressionOperators, operator)
    const parsed = ExpressionOperators[operator as keyof typeof ExpressionOperators]
    if (!isKnown) throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`)
    // Upstream prints an empty list of values as null in the error.
    requirements.push(requirement(key, parsed, values, values.length === 0 ? 'null' : undefined))
  }
  return selectorOf(requirements)
}

/** Validation errors of the selector at `path`. Upstream: metav1 validation, ValidateLabelSelector. */
export function labelSelectorErrors(selector: LabelSelector | undefined, path: string): FieldError[] {
  const errors: FieldError[] = []
  const add = (field: string, value: unknown, problems: readonly string[]) => {
    for (const problem of problems) errors.push(invalid(field, value, problem))
  }
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) {
    add(`${path}.matchLabels`, key, labelKeyProblems(key))
    add(`${path}.matchLabels`, value, labelValueProblems(value))
  }
  for (const [index, { key, operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
    const expressionPath = `${path}.matchExpressions[${index}]`
    const takesValues = operator === 'In' || operator === 'NotIn'
    if (!Object.hasOwn(ExpressionOperators, operator))
      add(`${expressionPath}.operator`, operator, ['not a valid selector operator'])
    else if (takesValues && values.length === 0)
      errors.push(required(`${expressionPath}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
    else if (!takesValues && values.length > 0)
      errors.push(forbidden(`${expressionPath}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    add(`${expressionPath}.key`, key, labelKeyProblems(key))
    for (const [valueIndex, value] of values.entries())
      add(`${expressionPath}.values[${valueIndex}]`, value, labelValueProblems(value))
  }
  return errors
}

const ExpressionOperators = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: '!' } as const

function selectorOf(requirements: readonly LabelRequirement[]): Selector {
  if (requirements.length === 0) return everything
  const sorted = [...requirements].sort((a, b) => compareText(a.key, b.key))
  return {
    requirements: sorted,
    text: sorted.map(requirementText).join(','),
    matches: (labels) => sorted.every((requirement) => matchesRequirement(requirement, labels)),
  }
}

function matchesRequirement({ key, operator, values }: LabelRequirement, labels: Labels | undefined): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return value !== undefined && values.includes(value)
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case 'gt':
    case 'lt': {
      const [number, limit] = [integer(value), integer(values[0])]
      if (number === undefined || limit === undefined) return false
      return operator === 'gt' ? number > limit : number < limit
    }
  }
}

function requirementText({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'exists':
      return key
    case '!':
      return `!${key}`
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`
    case 'gt':
    case 'lt':
      return `${key}${operator === 'gt' ? '>' : '<'}${values[0]}`
    case '=':
    case '==':
    case '!=':
      return `${key}${operator}${values[0]}`
  }
}

/**
 * Creates a requirement and validates it with upstream's texts. Errors contain the index of a value in the sorted values; upstream's errors
 * for the selector of a spec contain the index in the spec. `list` is the text of all values in errors.
 */
function requirement(
  key: string,
  operator: LabelOperator,
  unsortedValues: readonly string[],
  list = JSON.stringify(unsortedValues),
): LabelRequirement {
  const values = [...new Set(unsortedValues)].sort(compareText)
  const problems = labelKeyProblems(key).length > 0 ? [invalidText('key', key, labelKeyProblems(key).join('; '))] : []
  if ((operator === 'in' || operator === 'notin') && values.length === 0) {
    problems.push(`values: Invalid value: ${list}: for 'in', 'notin' operators, values set can't be empty`)
  }
  if ((operator === 'exists' || operator === '!') && values.length > 0) {
    problems.push(`values: Invalid value: ${list}: values set must be empty for exists and does not exist`)
  }
  if ((operator === 'gt' || operator === 'lt') && integer(values[0]) === undefined) {
    problems.push(invalidText('values[0]', values[0] ?? '', "for 'Gt', 'Lt' operators, the value must be an integer"))
  }
  for (const [index, value] of values.entries()) {
    const valueProblems = labelValueProblems(value)
    if (valueProblems.length > 0) problems.push(invalidText(`values[${index}][${key}]`, value, valueProblems.join('; ')))
  }
  if (problems.length > 0) throw badRequest(problems.length === 1 ? problems[0]! : `[${problems.join(', ')}]`)
  return { key, operator, values }
}

const invalidText = (path: string, value: string, problem: string): string =>
  `${path}: Invalid value: ${JSON.stringify(value)}: ${problem}`

/** Parses a 64-bit integer as Go's ParseInt does. */
function integer(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined
  const value = BigInt(text.replace(/^\+/, ''))
  return BigInt.asIntN(64, value) === value ? value : undefined
}

// Grammar

type TokenKind = 'identifier' | 'in' | 'notin' | '(' | ')' | ',' | '!' | '=' | '==' | '!=' | '>' | '<' | 'end'
interface Token {
  readonly kind: TokenKind
  readonly text: string
}

function scan(text: string): Token[] {
  const tokens: Token[] = []
  for (const [, symbol, word] of text.matchAll(/(==|!=|[=!(),<>])|([^\s=!(),<>]+)/g)) {
    if (symbol !== undefined) tokens.push({ kind: symbol as TokenKind, text: symbol })
    else tokens.push({ kind: word === 'in' || word === 'notin' ? word : 'identifier', text: word! })
  }
  return tokens
}

function parse(tokens: readonly Token[]): LabelRequirement[] {
  let position = 0
  const End: Token = { kind: 'end', text: '' }
  // Where no operator is expected, `in` and `notin` are ordinary keys or values.
  const asValue = (token: Token): Token =>
    token.kind === 'in' || token.kind === 'notin' ? { kind: 'identifier', text: token.text } : token
  const peek = () => asValue(tokens[position] ?? End)
  const take = () => asValue(tokens[position++] ?? End)

  const parseRequirement = (): LabelRequirement => {
    let token = take()
    const negated = token.kind === '!'
    if (negated) token = take()
    if (token.kind !== 'identifier') throw unparsable(`found '${token.text}', expected: identifier`)
    const key = token.text
    const keyProblems = labelKeyProblems(key)
    if (keyProblems.length > 0) throw unparsable(invalidText('<nil>', key, keyProblems.join('; ')))
    if (negated) return checkRequirement(key, '!', [])
    if (peek().kind === 'end' || peek().kind === ',') return checkRequirement(key, 'exists', [])
    const operator = tokens[position++] ?? End
    const { kind } = operator
    if (kind === 'in' || kind === 'notin') return checkRequirement(key, kind, valueList())
    if (kind === '=' || kind === '==' || kind === '!=') return checkRequirement(key, kind, [exactValue()])
    if (kind === '>' || kind === '<') return checkRequirement(key, kind === '>' ? 'gt' : 'lt', [exactValue()])
    throw unparsable(`found '${operator.text}', expected: in, notin, =, ==, !=, gt, lt`)
  }

  const exactValue = (): string => {
    if (peek().kind === 'end' || peek().kind === ',') return ''
    const token = take()
    if (token.kind !== 'identifier') throw unparsable(`found '${token.text}', expected: identifier`)
    return token.text
  }

  const valueList = (): string[] => {
    const open = take()
    if (open.kind !== '(') throw unparsable(`found '${open.text}' expected: '('`)
    const first = peek()
    if (first.kind === ')') {
      // Upstream: an empty list of values contains the empty value.
      take()
      return ['']
    }
    if (first.kind !== 'identifier' && first.kind !== ',') {
      throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`)
    }
    const values: string[] = []
    for (;;) {
      const token = take()
      if (token.kind === 'identifier') {
        values.push(token.text)
        const next = peek()
        if (next.kind === ')') break
        if (next.kind !== ',') throw unparsable(`found '${next.text}', expected: ',' or ')'`)
      } else if (token.kind === ',') {
        // Upstream: a missing value before, after or between commas is the empty value.
        if (values.length === 0) values.push('')
        if (peek().kind === ')') {
          values.push('')
          break
        }
        if (peek().kind === ',') {
          take()
          values.push('')
        }
      } else throw unparsable(`found '${token.text}', expected: ',', or identifier`)
    }
    take()
    return values
  }

  const requirements: LabelRequirement[] = []
  for (;;) {
    const token = peek()
    if (token.kind === 'end') return requirements
    if (token.kind !== 'identifier' && token.kind !== '!') {
      throw badRequest(`found '${token.text}', expected: !, identifier, or 'end of string'`)
    }
    requirements.push(parseRequirement())
    const separator = take()
    if (separator.kind === 'end') return requirements
    if (separator.kind !== ',') throw badRequest(`found '${separator.text}', expected: ',' or 'end of string'`)
    const next = peek()
    if (next.kind !== 'identifier' && next.kind !== '!') throw badRequest(`found '${next.text}', expected: identifier after ','`)
  }
}

const unparsable = (problem: string) => badRequest(`unable to parse requirement: ${problem}`)

function checkRequirement(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  try {
    return requirement(key, operator, values)
  } catch (err) {
    throw unparsable((err as Error).message)
  }
}

// Field selectors

/** One term of a field selector: the field equals the value, or does not. */
export interface FieldRequirement {
  readonly field: string
  readonly value: string
  readonly equals: boolean
}

/**
 * Parses the terms of a field selector, all of which must match. The caller checks whether the resource supports the fields.
 *
 * @throws StatusError BadRequest with upstream's text
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  const terms = text.match(/(?:\\[\s\S]|[^,\\])+|\\$/g) ?? []
  return terms.sort(compareText).map((term) => {
    const parts = /^([\s\S]*?)(!=|==|=)([\s\S]*)$/.exec(term)
    if (!parts) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    return { field: parts[1]!, value: unescape(parts[3]!), equals: parts[2] !== '!=' }
  })
}

/** Reports whether an object matches all requirements. `read` returns a field of the object, and the empty string for a missing field. */
export const matchesFields = (requirements: readonly FieldRequirement[], read: (field: string) => string): boolean =>
  requirements.every(({ field, value, equals }) => (read(field) === value) === equals)

function unescape(value: string): string {
  let text = ''
  for (let index = 0; index < value.length; index++) {
    const char = value[index]!
    if (char === '\\') {
      const next = value[++index] ?? ''
      if (next === '' || !'\\,='.includes(next)) throw badRequest(`invalid field selector: invalid escape sequence: \\${next}`)
      text += next
    } else if (char === ',' || char === '=') {
      throw badRequest(`invalid field selector: unescaped character in value: ${char.charCodeAt(0)}`)
    } else text += char
  }
  return text
}
