import type { NewCondition } from '@capstan/kube'
import { expect, test } from 'vitest'
import { legacyConditions } from './legacy-status.ts'

// biome-ignore format: a table
test.each<[NewCondition['type'], NewCondition['status'], string, object[]]>([
  ['RefVersionsUpToDate', 'True',    'RefVersionsUpToDate',     [{ type: 'RefVersionsUpToDate', status: 'True' }]],
  ['RefVersionsUpToDate', 'False',   'RefVersionsNotUpToDate',  [{ type: 'RefVersionsUpToDate', status: 'False', severity: 'Warning', reason: 'OutdatedRefVersions', message: 'why' }]],
  ['RefVersionsUpToDate', 'Unknown', 'InternalError',           [{ type: 'RefVersionsUpToDate', status: 'Unknown', reason: 'InternalError', message: 'why' }]],
  ['VariablesReady',      'True',    'VariablesReady',          [{ type: 'VariablesReconciled', status: 'True' }]],
  ['VariablesReady',      'False',   'VariableDiscoveryFailed', [{ type: 'VariablesReconciled', status: 'False', severity: 'Error', reason: 'VariableDiscoveryFailed', message: 'why' }]],
  ['Paused',              'False',   'NotPaused',               []],
])('legacyConditions returns the v1beta1 condition, if there is one, for %s %s with the reason %s', (type, status, reason, expected) => {
  expect(legacyConditions([{ type, status, reason, message: 'why' }])).toEqual(expected)
})
