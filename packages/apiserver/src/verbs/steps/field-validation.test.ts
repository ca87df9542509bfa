import { expect, test } from 'vitest'
import { inBodyOrder } from './field-validation.ts'

test('lists the first hundred unknown fields in the order of the body, and reads the body no further', () => {
  const names = Array.from({ length: 100 }, (_, index) => `field${index}`)
  const body = {
    ...Object.fromEntries(names.map((name) => [name, 1])),
    get last(): number {
      throw new Error('read')
    },
  }
  expect(inBodyOrder(['last', ...names.toReversed()], body)).toEqual(names)
})
