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
  ['a provider ID', { providerID: 'x' }, {}, { field: 'spec.providerID', found: 'x', holds: false }],
  [
    'the initialized field',
    {},
    { initialization: { provisioned: true } },
    { field: 'status.initialization.provisioned', holds: false },
  ],
  ['neither', {}, {}, { field: 'status.initialization.provisioned', holds: true }],
] as const)('the evidence about an object without an owner that has %s names the field', (_, spec, status, expected) => {
  expect(ownerFirst('InfraMachine').run(recordOf(spec, status))).toMatchObject([expected])
})
