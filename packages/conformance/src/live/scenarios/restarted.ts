/** Scenario that restarts the provider once in each phase of a cluster's lifecycle. */
import { Cluster, Machine } from '@capstan/api'
import { InfraMachinePoolContract } from '@capstan/api/contract'
import type { Bench } from '../bench.ts'
import {
  createCluster,
  createPoolObjects,
  createWorkers,
  isProvisioned,
  untilControlPlane,
  untilGone,
  untilPool,
} from '../objects.ts'
import { readOf } from '../read.ts'

const name = 'restarted'

export async function restarted(bench: Bench): Promise<void> {
  const { restart } = bench
  if (!restart) return
  await createCluster(bench, name)
  await restart()
  await untilControlPlane(bench, name)
  bench.mark('first restart')
  await createWorkers(bench, name, 1)
  await createPoolObjects(bench, name, name)
  await restart()
  const machines = () =>
    bench.recording.objects(Machine).filter(({ metadata }) => metadata.labels?.['conform.capstan.dev/workers'] === name)
  await bench.until('a worker Machine has infrastructure', () => machines().length === 1 && machines().every(isProvisioned))
  await untilPool(bench, name)
  // A pool can be provisioned before its first machine exists. Without this wait, a slow provider would create the machine only after the
  // next restart.
  const ids = () => readOf(bench, 'InfraMachinePool', name, InfraMachinePoolContract.providerIDList)
  if (bench.target.InfraMachinePool) await bench.until(`InfraMachinePool ${name} lists its machine`, () => ids()?.length === 1)
  bench.mark('before restart')
  await restart()
  await bench.quiet()
  bench.mark('after restart')
  await bench.delete(Cluster, name)
  await restart()
  await untilGone(bench, name, bench.targetKinds())
  bench.mark('deleted')
}
