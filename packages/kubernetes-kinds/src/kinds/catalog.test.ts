import { expect, test } from 'vitest'
import { blankOf } from './catalog.ts'

test('a blank object has the members that Go types have before anything is put into them', () => {
  expect(blankOf('io.k8s.api.apps.v1.Deployment')).toMatchObject({
    metadata: {},
    spec: { strategy: {}, template: { metadata: {}, spec: { containers: null } } },
    status: {},
  })
  expect(blankOf('io.k8s.api.core.v1.ConfigMap')).toEqual({ metadata: {} })
})
