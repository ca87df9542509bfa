import type { MachineSpec } from '@capstan/api'
import { expect, test } from 'vitest'
import { rolloutReasons } from './up-to-date.ts'

const spec: MachineSpec = {
  clusterName: 'demo',
  version: 'v1.34.0',
  failureDomain: 'a',
  bootstrap: { configRef: { apiGroup: 'bootstrap.example.com', kind: 'DevConfigTemplate', name: 'b1' } },
  infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachineTemplate', name: 'i1' },
}

test.each([
  ['the same', {}, []],
  ['another version', { version: 'v1.35.0' }, ['Version v1.34.0, v1.35.0 required']],
  [
    'another bootstrap template',
    { bootstrap: { configRef: { ...spec.bootstrap.configRef!, name: 'b2' } } },
    ['DevConfig is not up-to-date'],
  ],
  [
    'a secret instead of a template',
    { bootstrap: { dataSecretName: 's' } },
    ['DevConfig is not up-to-date', 'spec.bootstrap.dataSecretName nil, s required'],
  ],
  [
    'another infrastructure template',
    { infrastructureRef: { ...spec.infrastructureRef, name: 'i2' } },
    ['DevMachine is not up-to-date'],
  ],
  ['another failure domain', { failureDomain: 'b' }, ['Failure domain a, b required']],
  [
    'what goes to Machines in place',
    { minReadySeconds: 10, deletion: { nodeDrainTimeoutSeconds: 5 }, readinessGates: [{ conditionType: 'x' }] },
    [],
  ],
] as const)('%s', (_, change, reasons) => {
  expect(rolloutReasons(spec, { ...spec, ...change } as MachineSpec)).toEqual(reasons)
})
