import { ClusterNameLabel } from '@capstan/api'
import type { Kind, KubeObject } from '@capstan/kube'
import { LocalMachine } from '@capstan/local'
import { expect, test } from 'vitest'
import type { Bench } from './bench.ts'
import { createBootstrap, createMachine, createPool } from './objects.ts'

/** Returns a bench that records the created objects, and has no bootstrap provider under test. */
function recordingBench() {
  const created: KubeObject[] = []
  const bench = {
    target: { InfraMachine: { kind: LocalMachine }, InfraMachinePool: { kind: LocalMachine } },
    versions: { kubernetes: 'v1.36.0' },
    recording: { object: () => undefined },
    create: (kind: Kind, object: KubeObject) => void created.push({ ...object, kind: kind.kind }),
    patch: () => undefined,
  }
  return { bench: bench as unknown as Bench, created }
}

test.each([
  ['a Machine', (bench: Bench) => createMachine(bench, 'cluster', 'machine')],
  ['a MachinePool', (bench: Bench) => createPool(bench, 'cluster', 'pool', 1)],
  ['a bootstrap config', (bench: Bench) => createBootstrap(bench, 'cluster', 'machine')],
])('the bootstrap Secret of %s has the label with the name of its Cluster', async (_, create) => {
  const { bench, created } = recordingBench()
  await create(bench)
  const secret = created.find(({ kind }) => kind === 'Secret')
  expect(secret?.metadata.labels).toEqual({ [ClusterNameLabel]: 'cluster' })
})
