import type { AdmissionContext } from '@capstan/kube'
import { expect, test } from 'vitest'
import { clusterResourceSetErrors } from './cluster-resource-set.ts'

// Upstream: core/webhooks/admission/clusterresourceset.go, v1.14, for the text; Go omits empty members of the selector.
test('rejects an empty selector, and prints it without its empty members', () => {
  const resourceSet = { spec: { clusterSelector: { matchLabels: {} }, resources: [] } }
  const errors = clusterResourceSetErrors(resourceSet as never, {} as AdmissionContext<never>)
  expect(errors.map(({ field, text }) => `${field}: ${text}`)).toEqual([
    'spec.clusterSelector: Invalid value: {}: selector must not be empty',
  ])
})
