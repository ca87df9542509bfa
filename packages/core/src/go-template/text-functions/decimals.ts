/** Decimal arithmetic, with which sprig computes on float64: 0.1 + 0.2 is 0.3. Upstream: shopspring/decimal, as sprig v3 uses it. */

/** The number `coefficient` / 10^`scale`. */
export interface Decimal {
  readonly coefficient: bigint
  readonly scale: number
}

/** Digits after the decimal point of a quotient. */
const QuotientScale = 16

/** Makes the shortest decimal that stands for a float64. @throws Error for a NaN and an infinite number */
export function decimalOf(value: number): Decimal {
  if (!Number.isFinite(value))
    throw new Error(`Cannot create a Decimal from ${Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'}`)
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole, fraction = ''] = mantissa.split('.')
  const scale = fraction.length - Number(exponent)
  const coefficient = BigInt(`${whole}${fraction}`)
  return scale < 0 ? { coefficient: coefficient * 10n ** BigInt(-scale), scale: 0 } : { coefficient, scale }
}

/** Returns the nearest float64. */
export const numberOf = ({ coefficient, scale }: Decimal): number => Number(`${coefficient}e-${scale}`)

export const add = (a: Decimal, b: Decimal): Decimal => {
  const scale = Math.max(a.scale, b.scale)
  return { coefficient: coefficientAt(a, scale) + coefficientAt(b, scale), scale }
}

export const subtract = (a: Decimal, b: Decimal): Decimal => add(a, { coefficient: -b.coefficient, scale: b.scale })

/** @throws Error when the product has more than 20,000 digits, which bounds the time of a long calculation */
export function multiply(a: Decimal, b: Decimal): Decimal {
  const product = { coefficient: a.coefficient * b.coefficient, scale: a.scale + b.scale }
  if (product.scale > MaxDigits || magnitude(product.coefficient) >= TooLarge)
    throw new Error(`product has more than ${MaxDigits} digits`)
  return product
}

/** Divides to 16 digits after the decimal point; a half is rounded away from zero. @throws Error when `b` is 0 */
export function divide(a: Decimal, b: Decimal): Decimal {
  if (b.coefficient === 0n) throw new Error('decimal division by 0')
  // a / b = (a.coefficient * 10^b.scale) / (b.coefficient * 10^a.scale)
  const dividend = magnitude(a.coefficient) * 10n ** BigInt(b.scale + QuotientScale)
  const divisor = magnitude(b.coefficient) * 10n ** BigInt(a.scale)
  const quotient = (2n * dividend + divisor) / (2n * divisor)
  const isNegative = a.coefficient < 0n !== b.coefficient < 0n
  return { coefficient: isNegative ? -quotient : quotient, scale: QuotientScale }
}

const MaxDigits = 20_000
const TooLarge = 10n ** BigInt(MaxDigits)

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)

/** Returns the coefficient of the same number at a scale that is not smaller. */
const coefficientAt = (value: Decimal, scale: number): bigint => value.coefficient * 10n ** BigInt(scale - value.scale)
