import { isInt64, isNumeric, writeJSON } from './json-text.ts'
import { isRecord } from './json.ts'

/** Formats a JSON value as Go's `%v` does, for messages that contain such texts: `map[a:1 b:[x y]]`. */
export function goText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`
  if (isRecord(value)) {
    const members = Object.keys(value).sort()
    return `map[${members.map((key) => `${key}:${goText(value[key])}`).join(' ')}]`
  }
  if (typeof value === 'number') return numberText(value)
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '<nil>' : writeJSON(value)
}

/** Formats a number as Go's `%v` does: safe integers as int64, with all digits; other numbers as floats. */
const numberText = (value: number): string => (Number.isSafeInteger(value) ? String(value) : goFloat(value))

/**
 * Formats a float as Go's `%v` does: in its shortest form, with an exponent if the absolute value is at least 1e+06, or below 1e-04 and
 * not 0.
 */
export function goFloat(value: number | bigint): string {
  const float = Number(value)
  const [mantissa = '', exponent = ''] = float.toExponential().split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return float.toString()
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/**
 * Returns the name of a value's JSON type in errors of Go's decoder. `goType` is the Go type of the field. For an integer type, the name of
 * a number contains the number: `number 1.5`.
 */
export function jsonTypeName(value: unknown, goType = ''): string {
  if (isNumeric(value)) return goType.startsWith('int') ? `number ${value}` : 'number'
  if (typeof value === 'boolean') return 'bool'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Error text for a JSON value other than an object where Go's decoder expects a Kubernetes object. */
export const notAnObjectText = (value: unknown): string =>
  `json: cannot unmarshal ${jsonTypeName(value)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`

/** Returns the Go type of a JSON value that is decoded without a schema, as `%T` prints it. */
export function goTypeName(value: unknown): string {
  if (isNumeric(value)) return isInt64(value) ? 'int64' : 'float64'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (value === null) return '<nil>'
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}'
}

/** Parses an integer as the function `name` of Go's `strconv` does. @throws RangeError with Go's text, which contains `name` */
export function parseGoInteger(text: string, name: 'ParseInt' | 'Atoi' = 'ParseInt', bits: 32 | 64 = 64): number {
  const problem = (reason: string) => new RangeError(`strconv.${name}: parsing ${quotedGo(text)}: ${reason}`)
  if (!/^[+-]?\d+$/.test(text)) throw problem('invalid syntax')
  const value = BigInt(text.replace(/^\+/, ''))
  if (BigInt.asIntN(bits, value) !== value) throw problem('value out of range')
  return Number(value)
}

/** Quotes a text as Go's `%q` does. */
export const quotedGo = (text: string): string => `"${Array.from(text, quotedGoChar).join('')}"`

/** Escapes a character for the quotes of Go's `%q`. Upstream: strconv.Quote, Go 1.26. */
export function quotedGoChar(char: string): string {
  const short = shortForms[char]
  if (short !== undefined) return short
  const code = char.codePointAt(0)!
  // Letters, marks, numbers, punctuation, symbols and the space are printed as they are; all others as escapes.
  if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(char)) return char
  if (code < 0x80) return hex('x', code, 2)
  return code < 0x10000 ? hex('u', code, 4) : hex('U', code, 8)
}

const hex = (kind: string, code: number, digits: number): string => `\\${kind}${code.toString(16).padStart(digits, '0')}`

const shortForms: { readonly [char: string]: string } = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}
