/**
 * Formats template values as Go's `%v`, Sprint and Sprintf do, and checks the size of texts. Upstream: Go's fmt package, restricted to
 * template values.
 */
import { quotedGo } from '@capstan/kube'
import { byteLength, GoStruct, isMap, sortedKeys, typeName } from './value.ts'
import type { Value } from './value.ts'

/** Formats a value as `%v` does. */
export function text(value: Value): string {
  if (value === null || value === undefined) return '<nil>'
  if (typeof value === 'string') return value
  if (typeof value === 'number') return floatText(value)
  if (Array.isArray(value)) return `[${value.map(text).join(' ')}]`
  if (value instanceof GoStruct) return value.text
  if (isMap(value))
    return `map[${sortedKeys(value)
      .map((key) => `${key}:${text(value[key])}`)
      .join(' ')}]`
  return String(value)
}

/** Formats values as `fmt.Sprint` does: with a space between two values only if neither is a string. */
export function sprint(values: readonly Value[]): string {
  let out = ''
  for (const [index, value] of values.entries()) {
    const previous = values[index - 1]
    if (index > 0 && typeof previous !== 'string' && typeof value !== 'string') out += ' '
    out += text(value)
  }
  return out
}

/**
 * Formats a float64 in the shortest form that parses to the same value. Writes an exponent for absolute values from 10^`exponentFrom` on,
 * and for those below 1e-4 except 0. The default of `exponentFrom` is that of `%v`.
 */
export function floatText(value: number, exponentFrom = 6): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const exponent = Number(value.toExponential().split('e')[1])
  return exponent < -4 || exponent >= exponentFrom ? exponentText(value.toExponential()) : plainText(value)
}

/** Converts JavaScript's exponent `1e+6` to Go's `1e+06`. */
const exponentText = (text: string): string => text.replace(/e([+-])(\d)$/, 'e$10$2')

/** Formats a number without an exponent. */
function plainText(value: number): string {
  const shortest = String(value)
  const [mantissa = '', exponent] = shortest.split('e')
  if (exponent === undefined) return shortest
  const sign = mantissa.startsWith('-') ? '-' : ''
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const shift = Number(exponent)
  return shift < 0 ? `${sign}0.${'0'.repeat(-shift - 1)}${whole}${fraction}` : `${sign}${whole}${fraction.padEnd(shift, '0')}`
}

/** Quotes a text with backquotes, as Go's `%#q` does, or with double quotes if it has a backquote or a control character other than a tab. */
export const backquoted = (value: string): string =>
  /[`\uFEFF]|[\p{Cc}--[\t\u0080-\u009f]]/v.test(value) ? quotedGo(value) : `\`${value}\``

interface Directive {
  readonly flags: string
  readonly width: number | undefined
  readonly precision: number | undefined
  readonly verb: string
}

const DirectivePattern = /%([-+# 0]*)(\*|\d+)?(?:\.(\*|\d*))?([\s\S]?)/gu
/**
 * Maximum width and precision of a directive; a larger one is reduced to this value, so that the text stays small. For floats, the maximum
 * precision is 100, the limit of JavaScript.
 */
const WidestField = 10_000

/**
 * Formats values as `fmt.Sprintf` does. Mistakes are printed inline, as by Go: `%!d(string=x)`, `%!d(MISSING)`, `%!(EXTRA int=1)`. Rarely used
 * forms are not supported, for example argument indexes (`%[1]d`), `%x` and `%b` of floats, and `% x`.
 */
export function sprintf(format: string, values: readonly Value[]): string {
  let next = 0
  const widthOrPrecision = (specifier: string | undefined): number | undefined => {
    if (specifier === undefined) return undefined
    if (specifier !== '*') return Math.min(Number(specifier), WidestField)
    const value = values[next++]
    return typeof value === 'bigint' ? Math.min(Number(value), WidestField) : undefined
  }
  let out = format.replace(DirectivePattern, (_, flags: string, width?: string, precision?: string, verb = '') => {
    if (verb === '%') return '%'
    const directive: Directive = { flags, width: widthOrPrecision(width), precision: widthOrPrecision(precision), verb }
    if (verb === '') return '%!(NOVERB)'
    if (next >= values.length) return `%!${verb}(MISSING)`
    return formatValue(values[next++], directive)
  })
  if (next < values.length) {
    const extra = values.slice(next).map((value) => (value == null ? '<nil>' : `${typeName(value)}=${text(value)}`))
    out += `%!(EXTRA ${extra.join(', ')})`
  }
  return out
}

function formatValue(value: Value, directive: Directive): string {
  const { verb } = directive
  if (verb === 'T') return pad(typeName(value), directive)
  if (verb === 'v') return pad(directive.flags.includes('#') ? goSyntax(value) : formatDefault(value, directive), directive)
  const member = (item: Value): string => (item == null ? '<nil>' : formatValue(item, directive))
  if (Array.isArray(value)) return `[${value.map(member).join(' ')}]`
  if (value !== undefined && isMap(value)) {
    return `map[${sortedKeys(value)
      .map((key) => `${member(key)}:${member(value[key])}`)
      .join(' ')}]`
  }
  const body = formatByVerb(value instanceof GoStruct ? value.text : value, directive)
  if (body === undefined) return wrongVerb(value, verb)
  return pad(body, directive)
}

const wrongVerb = (value: Value, verb: string): string =>
  value == null ? `%!${verb}(<nil>)` : `%!${verb}(${typeName(value)}=${text(value)})`

const formatDefault = (value: Value, directive: Directive): string => {
  if (typeof value === 'bigint') return withSign(String(value), directive)
  if (typeof value === 'number' && directive.precision !== undefined)
    return formatByVerb(value, { ...directive, verb: 'g' }) ?? ''
  return typeof value === 'number' ? withSign(floatText(value), directive) : text(value)
}

/** Formats a value as Go source, as `%#v` does. */
function goSyntax(value: Value): string {
  if (typeof value === 'string') return quotedGo(value)
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`
  if (value !== undefined && isMap(value)) {
    const members = sortedKeys(value).map((key) => `${quotedGo(key)}:${goSyntax(value[key])}`)
    return `map[string]interface {}{${members.join(', ')}}`
  }
  return value == null ? 'interface {}(nil)' : text(value)
}

const withSign = (digits: string, { flags }: Directive): string => {
  if (digits.startsWith('-') || digits.startsWith('+')) return digits
  return flags.includes('+') ? `+${digits}` : flags.includes(' ') ? ` ${digits}` : digits
}

/** Formats a value for a verb; returns `undefined` when the verb does not fit the value. */
function formatByVerb(value: Value, directive: Directive): string | undefined {
  const { verb, precision, flags } = directive
  if (typeof value === 'string') {
    const truncated = precision === undefined ? value : Array.from(value).slice(0, precision).join('')
    if (verb === 's') return truncated
    if (verb === 'q') return flags.includes('#') ? backquoted(truncated) : quotedGo(truncated)
    if (verb === 'x' || verb === 'X') return withCase(Buffer.from(truncated).toString('hex'), verb)
    return undefined
  }
  if (typeof value === 'boolean') return verb === 't' ? String(value) : undefined
  if (typeof value === 'bigint') {
    const base = { d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 }[verb]
    if (base !== undefined) {
      const prefix = verb === 'O' ? '0o' : flags.includes('#') ? ({ b: '0b', o: '0', x: '0x', X: '0X' }[verb] ?? '') : ''
      const digits = withCase((value < 0n ? -value : value).toString(base), verb).padStart(precision ?? 0, '0')
      return withSign(`${value < 0n ? '-' : ''}${prefix}${digits}`, directive)
    }
    if (verb === 'c' || verb === 'q') return verb === 'c' ? rune(value) : `'${quotedGo(rune(value)).slice(1, -1)}'`
    if (verb === 'U') return `U+${value.toString(16).toUpperCase().padStart(4, '0')}`
    return undefined
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return 'eEfFgG'.includes(verb) ? floatText(value) : undefined
    const digits = Math.min(precision ?? 6, 100)
    if (verb === 'f' || verb === 'F') return withSign(value.toFixed(digits), directive)
    if (verb === 'e' || verb === 'E') return withSign(withCase(exponentText(value.toExponential(digits)), verb), directive)
    if (verb === 'g' || verb === 'G') return withSign(withCase(formatGeneral(value, precision), verb), directive)
  }
  return undefined
}

function formatGeneral(value: number, precision: number | undefined): string {
  if (precision === undefined) return floatText(value)
  const rounded = Number(value.toPrecision(Math.min(Math.max(precision, 1), 100)))
  return floatText(rounded, Math.max(precision, 1))
}

const rune = (code: bigint): string => (code >= 0n && code <= 0x10ffffn ? String.fromCodePoint(Number(code)) : '\ufffd')
const withCase = (digits: string, verb: string): string => (verb === verb.toUpperCase() ? digits.toUpperCase() : digits)

function pad(body: string, { flags, width, verb }: Directive): string {
  if (width === undefined) return body
  const missing = width - Array.from(body).length
  if (missing <= 0) return body
  if (flags.includes('-')) return body + ' '.repeat(missing)
  if (!flags.includes('0') || 'qT'.includes(verb)) return ' '.repeat(missing) + body
  const sign = /^[+-]/.exec(body)?.[0] ?? ''
  return sign + '0'.repeat(missing) + body.slice(sign.length)
}

/** Maximum size, in bytes, of the output of a template and of a text that one of its functions returns. */
export const LargestText = 1024 * 1024

/** Checks the size of a text in bytes. @throws Error when it is larger than `LargestText` */
export function checkSize(bytes: number): void {
  if (bytes > LargestText) throw new Error(`text is larger than ${LargestText} bytes`)
}

/** Returns the text. @throws Error when the text is larger than `LargestText` */
export function limited(text: string): string {
  checkSize(byteLength(text))
  return text
}
