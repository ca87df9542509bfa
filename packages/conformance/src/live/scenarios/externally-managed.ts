/** Scenario with an InfraCluster that another system manages. Conform acts as that system. */
import { Cluster, ManagedByAnnotation } from '@capstan/api'
import { InfraClusterContract, writeField } from '@capstan/api/contract'
import type { Bench } from '../bench.ts'
import { createCluster, untilGone } from '../objects.ts'

/** Name of the Cluster and of its InfraCluster. */
export const externalName = 'external'

export async function externallyManaged(bench: Bench): Promise<void> {
  const infraCluster = bench.target.InfraCluster!
  await createCluster(bench, externalName, { annotations: { [ManagedByAnnotation]: 'capstan-conform' } })
  await bench.until(
    'the InfraCluster has its owner',
    () =>
      bench.recording
        .object(infraCluster.kind, externalName)
        ?.metadata.ownerReferences?.some(({ kind }) => kind === Cluster.kind) ?? false,
  )
  await bench.quiet()
  bench.mark('waited')
  const body = {}
  writeField(body, InfraClusterContract.controlPlaneEndpoint, infraCluster.contractVersion, { host: '192.0.2.1', port: 6443 })
  await bench.patch(infraCluster.kind, externalName, body)
  const status = {}
  writeField(status, InfraClusterContract.provisioned, infraCluster.contractVersion, true)
  await bench.patch(infraCluster.kind, externalName, status, 'status')
  await bench.until(
    `Cluster ${externalName} has status.initialization.infrastructureProvisioned`,
    () => bench.recording.object(Cluster, externalName)?.status?.initialization?.infrastructureProvisioned === true,
  )
  bench.mark('provisioned')
  await bench.delete(Cluster, externalName)
  await untilGone(bench, externalName, [infraCluster.kind])
  bench.mark('deleted')
}
