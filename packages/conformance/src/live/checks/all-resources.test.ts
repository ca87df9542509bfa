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
  ['spec.providerID is set', { providerID: 'x' }, {}, { field: 'spec.providerID', found: 'x', holds: false }],
  [
    'provisioned is true',
    {},
    { initialization: { provisioned: true } },
    { field: 'status.initialization.provisioned', holds: false },
  ],
  ['neither is set', {}, {}, { field: 'status.initialization.provisioned', holds: true }],
] as const)('without an owner, if %s: the evidence names the field', (_, spec, status, expected) => {
  expect(ownerFirst('InfraMachine').run(recordOf(spec, status))).toMatchObject([expected])
})
