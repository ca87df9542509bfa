import { expect, test } from 'vitest'
import { ConfigMap } from './config-map.ts'
import { Secret } from './secret.ts'

const context = { operation: 'CREATE', oldObject: undefined, dryRun: false } as const

test.each(['constructor', 'toString', '__proto__'])('a Secret may have the type %s', (type) => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, type, data: {} } as const
  expect(Secret.validate?.(secret as never, context)).toEqual([])
})

test('the key `constructor` in the data of a ConfigMap is a duplicate only if binaryData has it, too', () => {
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a' },
    data: { constructor: 'x' },
    binaryData: { b: 'eA==' },
  } as const
  expect(ConfigMap.validate?.(configMap as never, context)).toEqual([])
  const duplicate = { ...configMap, binaryData: { constructor: 'eA==' } }
  expect(ConfigMap.validate?.(duplicate as never, context)).toMatchObject([{ field: 'data[constructor]' }])
})
