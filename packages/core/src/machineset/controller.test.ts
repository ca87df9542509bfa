import { Cluster } from '@capstan/api'
import { expect, test } from 'vitest'
import { createMachineSetController } from './controller.ts'

const { when: acceptsCluster } = createMachineSetController().watches!.find(({ kind }) => kind === Cluster)!
const clusterWith = (change: object): Cluster => ({ metadata: {}, spec: {}, ...change }) as unknown as Cluster

test.each<[string, object, boolean]>([
  ['accepts a pause', { spec: { paused: true } }, true],
  ['accepts a new topology version', { spec: { topology: { version: 'v1.36.0' } } }, true],
  ['ignores a change of the status', { status: { phase: 'Provisioned' } }, false],
  // As in upstream. A MachineSet is reconciled when it is deleted itself.
  ['ignores the start of the deletion of a Cluster', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, false],
])('the watch of Clusters %s', (_, change, accepted) =>
  expect(acceptsCluster!({ previous: clusterWith({}), object: clusterWith(change) } as never)).toBe(accepted),
)
