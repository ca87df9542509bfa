/** Scenario with objects of a paused Cluster, and objects with the paused annotation. */
import { Cluster, ClusterNameLabel, Machine, MachinePool, PausedAnnotation } from '@capstan/api'
import { ControlPlaneContract } from '@capstan/api/contract'
import { seconds, type UnknownObject } from '@capstan/kube'
import { type ContractName, list, record } from '../../manifests.ts'
import type { Bench } from '../bench.ts'
import {
  controlPlaneKind,
  createCluster,
  createExample,
  createMachine,
  createPool,
  ownerOf,
  untilControlPlane,
  untilGone,
  untilPool,
} from '../objects.ts'
import { hasReplicas, readOf } from '../read.ts'
import { untilProvisioned } from './waiting.ts'

const name = 'paused'
const annotated = 'annotated'
const unpaused = 'unpaused'
const annotation = { [PausedAnnotation]: '' }

export async function paused(bench: Bench): Promise<void> {
  const { InfraCluster, ControlPlane } = bench.target
  // Like a provider that obeys the pause, a provider that has not started writes nothing. So conform first waits until the provider writes
  // the objects of a Cluster that is not paused.
  await createCluster(bench, unpaused)
  for (const { kind } of [InfraCluster!, ...(ControlPlane ? [ControlPlane] : [])]) {
    await bench.until(`the provider writes ${kind.kind} ${unpaused}`, () => isWritten(bench.recording.object(kind, unpaused)))
  }

  // One Cluster is paused when it is created. Another Cluster is not paused, but its InfraCluster has the annotation from its creation. Core
  // does not set the owner of objects of a paused Cluster, so conform sets it.
  const cluster = await createCluster(bench, name, { paused: true })
  const metadata = { labels: labels(), ownerReferences: [ownerOf(cluster, Cluster)] }
  for (const kind of [InfraCluster!.kind, controlPlaneKind(bench)]) await bench.patch(kind, name, { metadata })
  await createCluster(bench, annotated, { annotations: annotation, withControlPlane: false })
  await bench.until(
    `InfraCluster ${annotated} has its owner`,
    () => bench.recording.object(InfraCluster!.kind, annotated)?.metadata.ownerReferences !== undefined,
  )
  await untilPaused(bench, ['InfraCluster', 'ControlPlane'], [name, annotated])
  bench.mark('InfraCluster paused')

  await bench.patch(Cluster, name, { spec: { paused: false } })
  await bench.patch(InfraCluster!.kind, annotated, { metadata: { annotations: { [PausedAnnotation]: null } } })
  await untilControlPlane(bench, name)
  await bench.until(
    `InfraCluster ${annotated} is provisioned without the annotation`,
    () => bench.recording.object(Cluster, annotated)?.status?.initialization?.infrastructureProvisioned === true,
  )
  bench.mark('InfraCluster unpaused')

  await bench.patch(Cluster, name, { spec: { paused: true } })
  await bench.until('Cluster is paused', () => bench.recording.object(Cluster, name)?.spec.paused === true)
  await createMachineWithOwner(bench, 'by-cluster')
  await createPoolWithOwner(bench, 'by-cluster')
  if (ControlPlane && hasReplicas(bench)) await bench.patch(ControlPlane.kind, name, { spec: { replicas: 3 } })
  await untilPaused(bench, ['InfraMachine', 'InfraMachinePool', 'BootstrapConfig'], ['by-cluster', 'by-cluster-pool'])
  bench.mark('all paused')
  await bench.patch(Cluster, name, { spec: { paused: false } })
  await untilProvisioned(bench, 'by-cluster')
  await untilPool(bench, 'by-cluster')
  if (ControlPlane && hasReplicas(bench)) {
    await bench.until(
      'the control plane has 3 replicas after the pause',
      () => readOf(bench, 'ControlPlane', name, ControlPlaneContract.replicas) === 3,
    )
  }
  bench.mark('all unpaused')

  await createMachineWithOwner(bench, 'by-annotation', annotation)
  await createPoolWithOwner(bench, 'by-annotation', annotation)
  await untilPaused(bench, ['InfraMachine', 'InfraMachinePool', 'BootstrapConfig'], ['by-annotation'])
  bench.mark('annotated objects paused')
  for (const { contract, kind } of Object.values(bench.target)) {
    if (contract === 'InfraCluster' || contract === 'ControlPlane') continue
    await bench.patch(kind, 'by-annotation', { metadata: { annotations: { [PausedAnnotation]: null } } })
  }
  await untilProvisioned(bench, 'by-annotation')
  await untilPool(bench, 'by-annotation')
  bench.mark('annotated objects unpaused')

  await bench.delete(Cluster, name)
  await bench.delete(Cluster, annotated)
  await bench.delete(Cluster, unpaused)
  await untilGone(bench, unpaused)
  await untilGone(bench, name)
  await untilGone(bench, annotated)
}

/**
 * Waits for `limits.quiet`, during which the provider must not reconcile the objects, and then until the objects have the condition Paused:
 * at most 30 seconds, or `limits.wait` if it is shorter.
 */
async function untilPaused(bench: Bench, contracts: readonly ContractName[], names: readonly string[]): Promise<void> {
  await bench.quiet()
  const deadline = bench.now() + Math.min(bench.limits.wait, seconds(30))
  await bench.untilOrDeadline('paused objects have the condition Paused', deadline, () =>
    contracts
      .flatMap((contract) => (bench.target[contract] ? bench.recording.objects(bench.target[contract].kind) : []))
      .filter(({ metadata }) => names.includes(metadata.name))
      .every((object) => pausedStatus(object) === 'True'),
  )
}

/** Returns the status of the condition Paused. */
export const pausedStatus = ({ status }: UnknownObject): unknown =>
  list(record(status).conditions)
    .map(record)
    .find(({ type }) => type === 'Paused')?.status

/** Whether the provider has written the object: core writes neither status nor finalizers of provider objects. */
const isWritten = (object: UnknownObject | undefined): boolean =>
  object?.status !== undefined || (object?.metadata.finalizers ?? []).length > 0

const labels = () => ({ [ClusterNameLabel]: name })

async function createMachineWithOwner(bench: Bench, machineName: string, annotations?: object): Promise<void> {
  const machine = await createMachine(bench, name, machineName)
  const metadata = {
    name: machineName,
    labels: labels(),
    ownerReferences: [ownerOf(machine, Machine)],
    ...(annotations ? { annotations: { ...annotations } } : {}),
  }
  if (bench.target.BootstrapConfig) await createExample(bench, 'BootstrapConfig', { metadata })
  await createExample(bench, 'InfraMachine', { metadata })
}

async function createPoolWithOwner(bench: Bench, poolName: string, annotations?: object): Promise<void> {
  if (!bench.target.InfraMachinePool) return
  const owner = await createPool(bench, name, poolName, 1)
  const metadata = {
    labels: labels(),
    ownerReferences: [ownerOf(owner, MachinePool)],
    ...(annotations ? { annotations: { ...annotations } } : {}),
  }
  if (bench.target.BootstrapConfig) {
    const { ownerReferences } = metadata
    await createExample(bench, 'BootstrapConfig', { metadata: { name: `${poolName}-pool`, labels: labels(), ownerReferences } })
  }
  await createExample(bench, 'InfraMachinePool', { metadata: { ...metadata, name: poolName } })
}
