/** CEL functions for resource quantities such as `1.5Gi`. Upstream: apiserver/pkg/cel/library/quantity.go. */
import { compareQuantities, parseQuantity, type Quantity } from '../../quantity.ts'
import type { Library } from '../signature.ts'
import { EvaluationError, Opaque } from '../value.ts'

class QuantityValue extends Opaque {
  readonly type = 'kubernetes.Quantity'
  readonly quantity: Quantity
  constructor(quantity: Quantity) {
    super()
    this.quantity = quantity
  }
  equals(other: Opaque): boolean {
    return other instanceof QuantityValue && compareQuantities(this.quantity, other.quantity) === 0
  }
}

function parse(text: string): QuantityValue {
  try {
    return new QuantityValue(parseQuantity(text))
  } catch (err) {
    throw new EvaluationError((err as Error).message)
  }
}

function isQuantity(text: string): boolean {
  try {
    parseQuantity(text)
    return true
  } catch {
    return false
  }
}

const NanosPerUnit = 1_000_000_000n
/** Reports whether the quantity is an integer of at most 64 bits. */
const isInteger = ({ quantity: { nano } }: QuantityValue): boolean =>
  nano % NanosPerUnit === 0n && BigInt.asIntN(64, nano / NanosPerUnit) === nano / NanosPerUnit

function asInteger(value: QuantityValue): bigint {
  if (!isInteger(value)) throw new EvaluationError('cannot convert value to integer')
  return value.quantity.nano / NanosPerUnit
}

const addNano = ({ quantity }: QuantityValue, nano: bigint) => new QuantityValue({ ...quantity, nano: quantity.nano + nano })
const order = (a: QuantityValue, b: QuantityValue): number => compareQuantities(a.quantity, b.quantity)

export const quantity: Library = {
  'quantity(string): Quantity': parse,
  'isQuantity(string): bool': isQuantity,
  'sign(Quantity): int': ({ quantity: { nano } }: QuantityValue) => (nano > 0n ? 1n : nano < 0n ? -1n : 0n),
  'Quantity.isInteger(): bool': isInteger,
  'Quantity.asInteger(): int': asInteger,
  'Quantity.asApproximateFloat(): double': ({ quantity: { nano } }: QuantityValue) => Number(nano) / 1e9,
  'Quantity.add(Quantity): Quantity': (a: QuantityValue, b: QuantityValue) => addNano(a, b.quantity.nano),
  'Quantity.add(int): Quantity': (a: QuantityValue, b: bigint) => addNano(a, b * NanosPerUnit),
  'Quantity.sub(Quantity): Quantity': (a: QuantityValue, b: QuantityValue) => addNano(a, -b.quantity.nano),
  'Quantity.sub(int): Quantity': (a: QuantityValue, b: bigint) => addNano(a, -b * NanosPerUnit),
  'Quantity.isGreaterThan(Quantity): bool': (a: QuantityValue, b: QuantityValue) => order(a, b) > 0,
  'Quantity.isLessThan(Quantity): bool': (a: QuantityValue, b: QuantityValue) => order(a, b) < 0,
  'Quantity.compareTo(Quantity): int': (a: QuantityValue, b: QuantityValue) => BigInt(Math.sign(order(a, b))),
}
