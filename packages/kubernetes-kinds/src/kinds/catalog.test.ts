import { expect, test } from 'vitest'
import { zeroValueOf } from './catalog.ts'

test('zeroValueOf returns the zero value of a Go type in JSON form, without fields that Go omits', () => {
  expect(zeroValueOf('io.k8s.api.apps.v1.Deployment')).toMatchObject({
    metadata: {},
    spec: { strategy: {}, template: { metadata: {}, spec: { containers: null } } },
    status: {},
  })
  expect(zeroValueOf('io.k8s.api.core.v1.ConfigMap')).toEqual({ metadata: {} })
})
