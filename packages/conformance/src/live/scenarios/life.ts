/** Scenario with the lifecycle of one cluster: creation, scaling, changes, upgrade and deletion. */
import { Cluster, Machine, MachineControlPlaneLabel, MachineDeployment, MachinePool } from '@capstan/api'
import { ControlPlaneContract, InfraMachinePoolContract } from '@capstan/api/contract'
import { isDeleting, type KubeObject } from '@capstan/kube'
import { list } from '../../manifests.ts'
import type { Bench } from '../bench.ts'
import {
  createCluster,
  createPoolObjects,
  createTemplate,
  createWorkers,
  isProvisioned,
  refOf,
  untilControlPlane,
  untilGone,
} from '../objects.ts'
import { hasReplicas, hasVersion, readOf } from '../read.ts'

const name = 'life'
/** Label that a control plane must copy from its machine template to its Machines. */
export const PropagatedLabel = 'conform.capstan.dev/propagated'

export async function life(bench: Bench): Promise<void> {
  await createCluster(bench, name)
  await untilControlPlane(bench, name)
  bench.mark('initialized')
  await createWorkers(bench, name, 1)
  await untilWorkers(bench, 1)
  if (bench.target.InfraMachinePool) {
    await createPoolObjects(bench, name, name)
    await untilPool(bench, 1)
  }
  await untilControlPlaneReplicas(bench, 1)
  bench.mark('ready')
  await bench.snapshot()
  await readScale(bench)

  await bench.patch(MachineDeployment, name, { spec: { replicas: 2 } })
  await untilWorkers(bench, 2)
  if (bench.target.InfraMachinePool) {
    await bench.patch(MachinePool, name, { spec: { replicas: 2 } })
    await untilPool(bench, 2)
    bench.mark('pool scaled up')
    await bench.patch(MachinePool, name, { spec: { replicas: 1 } })
    await untilPool(bench, 1)
  }
  if (hasReplicas(bench)) {
    await scaleControlPlane(bench, 3)
    bench.mark('control plane scales')
    await untilControlPlaneReplicas(bench, 3)
    await bench.until(
      'the control plane reports 3 replicas',
      () => readOf(bench, 'ControlPlane', name, ControlPlaneContract.replicas) === 3,
    )
  }
  bench.mark('scaled')
  await bench.snapshot()

  await changeMetadata(bench)
  await changeTemplate(bench)
  await upgrade(bench)
  bench.mark('before deletion')
  await bench.delete(Cluster, name)
  bench.mark('deleting')
  await untilGone(bench, name, bench.targetKinds())
}

const workerMachines = (bench: Bench) =>
  bench.recording.objects(Machine).filter(({ metadata }) => metadata.labels?.['conform.capstan.dev/workers'] === name)

const untilWorkers = (bench: Bench, count: number) =>
  bench.until(`${count} worker Machines have infrastructure`, () => {
    const machines = workerMachines(bench)
    return machines.length === count && machines.every((machine) => isProvisioned(machine) && !isDeleting(machine))
  })

/**
 * Waits until the pool has `count` machines. Reads replicas and provider IDs from the InfraMachinePool, because core copies them to the
 * MachinePool only while core is connected to the workload cluster.
 */
const untilPool = (bench: Bench, count: number) =>
  bench.until(`the pool has ${count} provider IDs and replicas`, () => {
    const ids: unknown = readOf(bench, 'InfraMachinePool', name, InfraMachinePoolContract.providerIDList)
    return (
      bench.recording.object(MachinePool, name)?.status?.initialization?.infrastructureProvisioned === true &&
      readOf(bench, 'InfraMachinePool', name, InfraMachinePoolContract.replicas) === count &&
      list(ids).length === count
    )
  })

export const controlPlaneMachines = (bench: Pick<Bench, 'recording'>): Machine[] =>
  bench.recording.objects(Machine).filter(({ metadata }) => metadata.labels?.[MachineControlPlaneLabel] !== undefined)

async function untilControlPlaneReplicas(bench: Bench, count: number): Promise<void> {
  if (!hasReplicas(bench)) return
  await bench.until(`${count} control plane Machines have infrastructure`, () => {
    const machines = controlPlaneMachines(bench)
    return machines.length === count && machines.every((machine) => isProvisioned(machine) && !isDeleting(machine))
  })
}

const scaleControlPlane = (bench: Bench, replicas: number): Promise<KubeObject> =>
  bench.patch(bench.target.ControlPlane!.kind, name, { spec: { replicas } })

/** Reads the scale subresource, as an autoscaler does. */
async function readScale(bench: Bench): Promise<void> {
  const controlPlane = bench.target.ControlPlane
  const object = controlPlane && bench.recording.object(controlPlane.kind, name)
  if (!object || !hasReplicas(bench)) return
  const { group, version, plural } = controlPlane.kind
  await bench.send('scale', object, async () => {
    const scale = (await bench.client.transport.send({
      verb: 'get',
      group,
      version,
      plural,
      namespace: bench.namespace,
      name,
      subresource: 'scale',
    })) as { spec?: { replicas?: number }; status?: { replicas?: number; selector?: string } }
    if (scale.spec?.replicas !== 1)
      throw new Error(`spec.replicas of the scale subresource is ${scale.spec?.replicas ?? 'nothing'}, expected 1`)
    if (!scale.status?.selector) throw new Error('status.selector of the scale subresource is empty')
  })
}

/** Adds a label to `spec.machineTemplate` of the control plane, which must copy the label to the existing Machines. */
async function changeMetadata(bench: Bench): Promise<void> {
  const controlPlane = bench.target.ControlPlane
  if (!controlPlane || !hasReplicas(bench)) return
  bench.mark('metadata changes')
  await bench.patch(controlPlane.kind, name, {
    spec: { machineTemplate: { metadata: { labels: { [PropagatedLabel]: 'yes' } } } },
  })
  const deadline = bench.now() + bench.limits.wait / 2
  await bench.untilOrDeadline('the label of spec.machineTemplate.metadata reaches the Machines', deadline, () =>
    controlPlaneMachines(bench).every(({ metadata }) => metadata.labels?.[PropagatedLabel] === 'yes'),
  )
  bench.mark('metadata changed')
}

/** Changes the infrastructure template of the workers, so that core replaces their Machines. */
async function changeTemplate(bench: Bench): Promise<void> {
  const { template } = bench.target.InfraMachine!
  if (!template) return
  await createTemplate(bench, 'InfraMachine', `${name}-2`)
  const oldUIDs = new Set(workerMachines(bench).map(({ metadata }) => metadata.uid))
  await bench.patch(MachineDeployment, name, {
    spec: { template: { spec: { infrastructureRef: refOf(template.kind, `${name}-2`) } } },
  })
  await bench.until('worker Machines are replaced after a change of the template', () => {
    const machines = workerMachines(bench)
    return (
      machines.length === 2 &&
      machines.every((machine) => !oldUIDs.has(machine.metadata.uid) && isProvisioned(machine) && !isDeleting(machine))
    )
  })
  bench.mark('template changed')
}

/** Upgrades the control plane. */
async function upgrade(bench: Bench): Promise<void> {
  const controlPlane = bench.target.ControlPlane
  if (!controlPlane || !hasVersion(bench)) return
  bench.mark('upgrade begins')
  await bench.patch(controlPlane.kind, name, { spec: { version: bench.versions.upgradeTo } })
  await bench.until(`the control plane reports only version ${bench.versions.upgradeTo}`, () => {
    const versions = readOf(bench, 'ControlPlane', name, ControlPlaneContract.statusVersions)
    const version = readOf(bench, 'ControlPlane', name, ControlPlaneContract.statusVersion)
    const running = versions?.map((entry) => entry.version) ?? [version]
    return running.length === 1 && running[0] === bench.versions.upgradeTo
  })
  if (hasReplicas(bench)) {
    await bench.until('no control plane Machine of the old version is left', () => {
      const machines = controlPlaneMachines(bench)
      return (
        machines.length === 3 &&
        machines.every(
          (machine) => machine.spec.version === bench.versions.upgradeTo && isProvisioned(machine) && !isDeleting(machine),
        )
      )
    })
  }
  bench.mark('upgraded')
  await bench.snapshot()
}
