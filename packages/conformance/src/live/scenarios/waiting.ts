/**
 * Scenarios with missing preconditions: an owner that is never set; infrastructure of the Cluster and bootstrap data that are ready
 * later.
 */
import { Cluster, Machine } from '@capstan/api'
import type { Bench } from '../bench.ts'
import {
  bootstrapRef,
  createBootstrap,
  createCluster,
  createExample,
  createMachine,
  isProvisioned,
  untilControlPlane,
  untilGone,
} from '../objects.ts'
import { ContractNames } from '../../manifests.ts'

/** For each kind under test, except control planes, creates an object that has no owner. Then deletes these objects. */
export async function orphans(bench: Bench): Promise<void> {
  for (const contract of ContractNames) {
    const isUnderTest = bench.target[contract] !== undefined
    if (isUnderTest && contract !== 'ControlPlane') await createExample(bench, contract, { metadata: { name: 'orphan' } })
  }
  await bench.quiet()
  bench.mark('waited')
  for (const { kind } of Object.values(bench.target)) await bench.delete(kind, 'orphan')
  bench.mark('deleting')
  await bench.until('objects without an owner are deleted', () =>
    Object.values(bench.target).every(({ kind }) => bench.recording.object(kind, 'orphan') === undefined),
  )
}

/** Creates one Machine before the infrastructure of its Cluster, and another Machine before its bootstrap data. */
export async function late(bench: Bench): Promise<void> {
  const [cluster, machine] = ['late', 'late-machine']
  await createCluster(bench, cluster, { withInfraCluster: false })
  await createMachine(bench, cluster, machine)
  await createExample(bench, 'InfraMachine', { metadata: { name: machine } })
  if (bench.target.BootstrapConfig) await createBootstrap(bench, cluster, machine)
  await bench.until(`InfraMachine ${machine} has its owner`, () => isOwned(bench, machine))
  await bench.quiet()
  bench.mark('waited for infrastructure')

  await createExample(bench, 'InfraCluster', { metadata: { name: cluster } })
  await untilControlPlane(bench, cluster)
  await untilProvisioned(bench, machine)

  const second = 'late-data'
  await createMachine(bench, cluster, second, bootstrapRef(bench, second))
  await createExample(bench, 'InfraMachine', { metadata: { name: second } })
  await bench.until(`InfraMachine ${second} has its owner`, () => isOwned(bench, second))
  await bench.quiet()
  bench.mark('waited for data')
  await createBootstrap(bench, cluster, second)
  await untilProvisioned(bench, second)
  bench.mark('provisioned')
  await bench.delete(Cluster, cluster)
  await untilGone(bench, cluster)
}

const isOwned = (bench: Bench, name: string): boolean =>
  bench.recording
    .object(bench.target.InfraMachine!.kind, name)
    ?.metadata.ownerReferences?.some(({ kind }) => kind === Machine.kind) ?? false

export const untilProvisioned = (bench: Bench, name: string): Promise<void> =>
  bench.until(`Machine ${name} has infrastructure`, () => isProvisioned(bench.recording.object(Machine, name)))
