import { expect, test } from 'vitest'
import type { ScenarioRecord } from '../bench.ts'
import { ownerFirst } from './all-resources.ts'

/** Returns the record of a scenario in which one LocalMachine without an owner existed. */
const recordOf = (spec: object, status: object) => {
  const object = {
    apiVersion: 'infrastructure.capstan.dev/v1alpha1',
    kind: 'LocalMachine',
    metadata: { name: 'm' },
    spec,
    status,
  }
  return {
    target: { InfraMachine: { contractVersion: 'v1beta2', kind: {} } },
    marks: new Map([['waited', { at: 1, order: 1 }]]),
    recording: { histories: () => [{ states: [{ object, at: 1, order: 1 }], deleted: undefined }] },
    stopped: undefined,
  } as unknown as ScenarioRecord
}

test.each([
  ['spec.providerID', 'only this field is set', { providerID: 'x' }, {}, { field: 'spec.providerID', found: 'x', holds: false }],
  [
    'status.initialization.provisioned',
    'it is true',
    {},
    { initialization: { provisioned: true } },
    { field: 'status.initialization.provisioned', holds: false },
  ],
  [
    'status.initialization.provisioned',
    'the object has neither this field nor spec.providerID',
    {},
    {},
    { field: 'status.initialization.provisioned', holds: true },
  ],
] as const)('the evidence for an object without an owner names %s if %s', (_field, _condition, spec, status, expected) => {
  expect(ownerFirst('InfraMachine').run(recordOf(spec, status))).toMatchObject([expected])
})
