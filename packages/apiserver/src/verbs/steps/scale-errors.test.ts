import { expect, test } from 'vitest'
import type { ResourceInfo } from '../../registry/resource-info.ts'
import { scaleErrors } from './scale-errors.ts'

const info = {
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
} as ResourceInfo

test.each<[string, object, string[]]>([
  ['absent values are valid', {}, []],
  ['whole numbers and a string are valid', { spec: { replicas: 3 }, status: { replicas: 0, selector: 'a=b' } }, []],
  [
    'a negative number is invalid',
    { spec: { replicas: -1 } },
    ['.spec.replicas: Invalid value: -1: should be a non-negative integer'],
  ],
  [
    'a number beyond 32 bits is invalid',
    { spec: { replicas: 2 ** 31 } },
    ['.spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647'],
  ],
  [
    'a fraction is invalid',
    { spec: { replicas: 1.5 } },
    ['.spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1.5 is of the type float64, expected int64'],
  ],
  [
    'a path through a scalar is invalid',
    { status: 'x' },
    [
      '.status.replicas: Invalid value: 0: .status.replicas accessor error: x is of the type string, expected map[string]interface{}',
      '.status.selector: Invalid value: "": .status.selector accessor error: x is of the type string, expected map[string]interface{}',
    ],
  ],
])('%s', (_, object, texts) => {
  expect(scaleErrors(info, undefined, object as never).map(({ field, text }) => `${field}: ${text}`)).toEqual(texts)
})

test('a status update is not validated for fields that it cannot change', () => {
  expect(scaleErrors(info, 'status', { spec: { replicas: -1 } } as never)).toEqual([])
})
