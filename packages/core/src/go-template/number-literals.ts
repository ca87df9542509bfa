/** Parses numbers in the syntax of Go's literals. Upstream: Go's strconv, ParseInt with base 0 and ParseFloat. */

/** Parses an integer, which may have a sign, one of the prefixes `0x`, `0o`, `0b` and `0`, and underscores. Returns `undefined` for any other text. */
export function parseInteger(text: string): bigint | undefined {
  const [, sign, literal] = /^([+-]?)(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|0[0-7_]*|[1-9][0-9_]*)$/.exec(text) ?? []
  if (literal === undefined || hasMisplacedUnderscore(literal)) return undefined
  const size = BigInt(literal.replaceAll('_', '').replace(/^0(?=[0-7])/, '0o'))
  return sign === '-' ? -size : size
}

/** Parses a decimal or hexadecimal floating-point number, `inf` or `nan`. Returns `undefined` for any other text and for a number that is too large. */
export function parseFloat64(text: string): number | undefined {
  const [, sign, literal = ''] = /^([+-]?)(.*)$/s.exec(text) ?? []
  const size = unsignedFloat(literal.toLowerCase())
  return sign === '-' && size !== undefined ? -size : size
}

function unsignedFloat(literal: string): number | undefined {
  if (literal === 'inf' || literal === 'infinity') return Number.POSITIVE_INFINITY
  if (literal === 'nan') return Number.NaN
  if (hasMisplacedUnderscore(literal)) return undefined
  const digits = literal.replaceAll('_', '')
  const [, whole, fraction = '', exponent] = /^0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?[0-9]+)$/.exec(digits) ?? []
  const isDecimal = /^(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?$/.test(digits)
  if (!isDecimal && (whole === undefined || whole + fraction === '')) return undefined
  const value = isDecimal
    ? Number(digits)
    : Number(BigInt(`0x${whole}${fraction}`)) * 2 ** (Number(exponent) - 4 * fraction.length)
  return Number.isFinite(value) ? value : undefined
}

/** Whether an underscore is not between two digits; the prefix of a base counts as a digit. */
function hasMisplacedUnderscore(literal: string): boolean {
  const prefix = /^0[xob]/i.exec(literal)?.[0] ?? ''
  const digit = prefix.toLowerCase() === '0x' ? '[0-9a-fA-F]' : '[0-9]'
  return new RegExp(`(?<!${digit})_|_(?!${digit})`).test(literal.replace(prefix, '0'))
}
