/** Scenario that deletes one Cluster in each phase of the creation of a Cluster. After a deletion, no object of the Cluster may remain. */
import { Cluster, Machine } from '@capstan/api'
import type { Bench } from '../bench.ts'
import {
  bootstrapRef,
  createCluster,
  createExample,
  createMachine,
  createPoolObjects,
  createWorkers,
  isProvisioned,
  untilControlPlane,
  untilGone,
  untilPool,
} from '../objects.ts'

export async function deletion(bench: Bench): Promise<void> {
  for (const [name, phase] of Object.entries(phases)) {
    await phase(bench, name)
    await bench.delete(Cluster, name)
    await untilGone(bench, name, bench.targetKinds())
    bench.mark(`${name} deleted`)
  }
}

/** Functions that create a Cluster and wait for the phase in which it is deleted, by the name of the Cluster. */
const phases: Readonly<Record<string, (bench: Bench, name: string) => Promise<void>>> = {
  async created(bench, name) {
    await createCluster(bench, name)
  },
  async 'waits-for-infrastructure'(bench, name) {
    await createCluster(bench, name, { withInfraCluster: false })
    await createMachine(bench, name, name)
    await createExample(bench, 'InfraMachine', { metadata: { name } })
    if (bench.target.BootstrapConfig) await createExample(bench, 'BootstrapConfig', { metadata: { name } })
    await createPoolObjects(bench, name, name)
    await untilOwned(bench, name)
    // Created just before the deletion of the Cluster, so that this phase also deletes an InfraCluster.
    await createExample(bench, 'InfraCluster', { metadata: { name } })
  },
  async 'waits-for-bootstrap-data'(bench, name) {
    await createCluster(bench, name)
    await createMachine(bench, name, name, bootstrapRef(bench, name))
    await createExample(bench, 'InfraMachine', { metadata: { name } })
    await untilOwned(bench, name)
    await bench.until(
      `Cluster ${name} has status.initialization.infrastructureProvisioned`,
      () => bench.recording.object(Cluster, name)?.status?.initialization?.infrastructureProvisioned === true,
    )
  },
  async provisioned(bench, name) {
    await createCluster(bench, name)
    await untilControlPlane(bench, name)
    await createWorkers(bench, name, 1)
    await createPoolObjects(bench, name, name)
    await untilPool(bench, name)
    await bench.until('a worker Machine has infrastructure', () =>
      bench.recording
        .objects(Machine)
        .some((machine) => machine.metadata.labels?.['conform.capstan.dev/workers'] === name && isProvisioned(machine)),
    )
  },
}

/** Names of the phases in which Clusters are deleted. */
export const deletionPhases: readonly string[] = Object.keys(phases)

const untilOwned = (bench: Bench, name: string): Promise<void> =>
  bench.until(`InfraMachine ${name} has its owner`, () => {
    const { ownerReferences } = bench.recording.object(bench.target.InfraMachine!.kind, name)?.metadata ?? {}
    return ownerReferences?.some(({ kind }) => kind === Machine.kind) ?? false
  })
