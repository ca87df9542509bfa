import { expect, test } from 'vitest'
import { blankOf } from './catalog.ts'

test('a blank object has the members of the zero value of its Go type', () => {
  expect(blankOf('io.k8s.api.apps.v1.Deployment')).toMatchObject({
    metadata: {},
    spec: { strategy: {}, template: { metadata: {}, spec: { containers: null } } },
    status: {},
  })
  expect(blankOf('io.k8s.api.core.v1.ConfigMap')).toEqual({ metadata: {} })
})
