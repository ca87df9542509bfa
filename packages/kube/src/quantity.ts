/** Resource quantities such as `500m`, `1.5Gi` and `1e3`. Upstream: k8s.io/apimachinery/pkg/api/resource, v0.36. */

export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent'

/** An amount in billionths, the smallest unit that Kubernetes keeps. */
export interface Quantity {
  readonly nano: bigint
  /** Notation of the canonical text. */
  readonly format: QuantityFormat
}

/**
 * Parses a quantity.
 *
 * @throws Error with upstream's text when the text is not a quantity, is longer than `MaxQuantityLength`, or has an exponent beyond 300
 */
export function parseQuantity(text: string): Quantity {
  const parts = text.length > MaxQuantityLength ? null : /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/.exec(text)
  if (!parts || text === '') throw new Error(`quantities must match the regular expression '${Pattern}'`)
  const [, sign, whole = '', fraction = '', suffix = ''] = parts
  if (whole === '' && fraction === '') throw new Error('unable to parse numeric part of quantity')
  const unit = unitOf(suffix)
  if (!unit) throw new Error("unable to parse quantity's suffix")

  let nano = toBillionths(BigInt(whole + fraction), unit, fraction.length)
  let { format } = unit
  if (format === 'BinarySI') {
    if (nano > MaxBinary) nano = MaxBinary
    // Amounts below one have no binary suffix.
    if (nano > 0n && nano < NanosPerUnit) format = 'DecimalSI'
  }
  return { nano: sign === '-' ? -nano : nano, format }
}

/** Returns the canonical text: an integer with the largest suffix that is possible without a fraction. */
export function quantityText({ nano, format }: Quantity): string {
  if (nano === 0n) return '0'
  const small = nano > -1024n * NanosPerUnit && nano < 1024n * NanosPerUnit
  if (format === 'BinarySI' && !small && nano % NanosPerUnit === 0n) {
    let [amount, power] = [nano / NanosPerUnit, 0]
    while (amount % 1024n === 0n && power < BinarySuffixes.length - 1) {
      amount /= 1024n
      power++
    }
    return `${amount}${BinarySuffixes[power]}`
  }
  let [amount, exponent] = [nano, -9]
  const largest = format === 'DecimalExponent' ? Number.POSITIVE_INFINITY : 18
  while (amount % 1000n === 0n && exponent < largest) {
    amount /= 1000n
    exponent += 3
  }
  if (format === 'DecimalExponent') return exponent === 0 ? `${amount}` : `${amount}e${exponent}`
  return `${amount}${DecimalSuffixes[exponent / 3 + 3]}`
}

/** Returns a negative number, zero or a positive number, as a is less than, equal to or more than b. */
export const compareQuantities = (a: Quantity, b: Quantity): number => (a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0)

/** Returns the sum, in the format of `a`, or of `b` if `a` is zero. */
export const addQuantities = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano + b.nano,
  format: a.nano === 0n ? b.format : a.format,
})

const NanosPerUnit = 1_000_000_000n
const MaxBinary = (2n ** 63n - 1n) * NanosPerUnit
/**
 * Maximum length of a quantity in characters, because the time of exact arithmetic grows with the square of the length. Upstream has no
 * limit.
 */
const MaxQuantityLength = 1000
const Pattern = '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
const DecimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const BinarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

interface Unit {
  readonly format: QuantityFormat
  readonly base: 2n | 10n
  readonly exponent: number
}

function unitOf(suffix: string): Unit | undefined {
  const decimal = DecimalSuffixes.indexOf(suffix)
  if (decimal >= 0) return { format: 'DecimalSI', base: 10n, exponent: (decimal - 3) * 3 }
  const binary = BinarySuffixes.indexOf(suffix)
  if (binary > 0) return { format: 'BinarySI', base: 2n, exponent: binary * 10 }
  const exponent = /^[eE]([+-]?\d+)$/.exec(suffix)
  // Numbers with another exponent are too small or too large to be useful. Upstream has no such limit.
  if (!exponent || Math.abs(Number(exponent[1])) > 300) return undefined
  return { format: 'DecimalExponent', base: 10n, exponent: Number(exponent[1]) }
}

/**
 * Returns an amount in billionths. `digits` is its number without the decimal point; the last `decimals` digits are after the point. The
 * result is rounded up, so that a positive amount never becomes zero.
 */
function toBillionths(digits: bigint, { base, exponent }: Unit, decimals: number): bigint {
  const numerator = digits * NanosPerUnit * (exponent > 0 ? base ** BigInt(exponent) : 1n)
  const denominator = 10n ** BigInt(decimals) * (exponent < 0 ? base ** BigInt(-exponent) : 1n)
  return (numerator + denominator - 1n) / denominator
}
