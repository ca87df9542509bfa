import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addQuantities, compareQuantities, parseQuantity, quantityText } from './quantity.ts'

test.each([
  ['0', '0'],
  ['100m', '100m'],
  ['0.1', '100m'],
  ['1000m', '1'],
  ['1500', '1500'],
  ['12000', '12k'],
  ['1.5Gi', '1536Mi'],
  ['1024Mi', '1Gi'],
  ['1Ki', '1Ki'],
  ['0.5Ki', '512'],
  ['0.1Mi', '104857600m'],
  ['1e3', '1e3'],
  ['1E', '1E'],
  ['1E2', '100'],
  ['-5M', '-5M'],
  ['.5', '500m'],
  ['5.', '5'],
  ['1n', '1n'],
  ['0.0000000001', '1n'],
  ['100Ei', '9223372036854775807'],
])('%s is printed as %s', (text, canonical) => expect(quantityText(parseQuantity(text))).toBe(canonical))

test.each([
  ['', 'quantities must match the regular expression'],
  ['a', 'quantities must match the regular expression'],
  ['1 Gi', 'quantities must match the regular expression'],
  ['.', 'unable to parse numeric part of quantity'],
  ['1mi', "unable to parse quantity's suffix"],
])('%j is not a quantity', (text, message) => expect(() => parseQuantity(text)).toThrow(message))

const amount = fc
  .tuple(fc.integer({ min: -(10 ** 12), max: 10 ** 12 }), fc.constantFrom('', 'm', 'k', 'M', 'Ki', 'Mi', 'Gi', 'e3', 'e-3', 'n'))
  .map(([n, suffix]) => `${n}${suffix}`)

test('quantities round-trip', () => {
  fc.assert(
    fc.property(amount, (text) => {
      const read = parseQuantity(text)
      const reparsed = parseQuantity(quantityText(read))
      expect(compareQuantities(read, reparsed)).toBe(0)
      expect(quantityText(reparsed)).toBe(quantityText(read))
    }),
    { seed: 1 },
  )
})

test('sums do not depend on order, increase with a positive summand, and decrease with a negative summand', () => {
  fc.assert(
    fc.property(amount, amount, (a, b) => {
      const [x, y] = [parseQuantity(a), parseQuantity(b)]
      expect(compareQuantities(addQuantities(x, y), addQuantities(y, x))).toBe(0)
      expect(compareQuantities(addQuantities(x, y), x)).toBe(compareQuantities(y, parseQuantity('0')))
    }),
    { seed: 1 },
  )
})
