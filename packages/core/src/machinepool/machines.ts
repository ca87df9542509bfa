/**
 * MachinePool Machines: when the infrastructure provider has an object for each machine of the pool, core creates a Machine for each of
 * these objects. Upstream: reconcileMachines in machinepool_controller_phases.go, v1.14.
 */
import {
  ClusterNameLabel,
  ConditionOrder,
  infrastructureMachineKindOf,
  InfraMachineContract,
  labelValue,
  Machine,
  MachineConditions,
  MachinePool,
  MachinePoolNameLabel,
} from '@capstan/api'
import { commitChanges, type Index, type MapFunction, proceed, requeue } from '@capstan/controller'
import {
  controllerOf,
  controllerReference,
  draft,
  isControlledByUid,
  type Input,
  isDeleting,
  keyOf,
  type Kind,
  messageOf,
  parseApiVersion,
  setConditions,
  CustomResourceDefinition,
} from '@capstan/kube'
import { applyIntent } from '../apply-intent.ts'
import { externalKind } from '../external/contract-version.ts'
import type { External } from '../external/get.ts'
import { type Found, read } from '../external/observed.ts'
import { readContract } from '../external/read-contract.ts'
import { activeInfrastructure } from './infrastructure.ts'
import { type MachinePoolIO, MachinePoolManager, type MachinePoolPhase, type MachinePoolScope } from './scope.ts'

/** Maximum number of Machines that `createMachines` writes in one reconcile: a pool may have 10,000 Machines. */
const MaxWrites = 200

/** Creates a Machine for each infrastructure machine of the pool that is not being deleted, and updates the existing Machines. */
export const createMachines: MachinePoolPhase = async (scope, io) => {
  // Stays true when writeMachines throws.
  scope.createMachinesFailed = true
  const outcome = await writeMachines(scope, io)
  scope.createMachinesFailed = false
  return outcome
}

const writeMachines: MachinePoolPhase = async (scope, io) => {
  const infraPool = activeInfrastructure(scope)
  if (!infraPool || !scope.workload) return proceed()
  const infraMachines = await infraMachinesOf(scope, infraPool, io)
  if (!infraMachines) return proceed()

  const byInfraName = new Map(machinesOf(scope.machinePool, io).map((machine) => [machine.spec.infrastructureRef.name, machine]))
  const errors: unknown[] = []
  let writes = 0
  for (const infraMachine of infraMachines) {
    if (writes >= MaxWrites)
      return requeue(0, `to write the remaining Machines of ${infraMachines.length} infrastructure machines`)
    try {
      const machine = byInfraName.get(infraMachine.object.metadata.name)
      if (await applyMachine(machine, infraMachine, scope, io)) writes++
    } catch (err) {
      errors.push(err)
    }
  }
  const { namespace, name } = scope.machinePool.metadata
  throwFirst(errors, `failed to create machines for MachinePool "${name}" in namespace "${namespace}"`)
  return proceed()
}

/** Maximum number of errors that a phase reports: a pool may have thousands of Machines with the same error. */
const MaxErrors = 10

/** @throws AggregateError with the first `MaxErrors` errors, unless `errors` is empty */
function throwFirst(errors: readonly unknown[], text: string): void {
  if (errors.length === 0) return
  const first = errors.slice(0, MaxErrors)
  const surplus = errors.length - first.length
  const texts = [...first.map(messageOf), ...(surplus > 0 ? [`and ${surplus} more errors`] : [])]
  throw new AggregateError(first, `${text}: ${texts.join('; ')}`)
}

/** Lists the Machines of the pool, except Machines whose controller (owner reference) is another object. */
export const listMachines: MachinePoolPhase = async (scope, io) => {
  scope.machines = machinesOf(scope.machinePool, io).filter(
    (machine) => !controllerOf(machine) || isControlledByUid(machine, scope.machinePool),
  )
  return proceed()
}

/** Sets UpToDate on the Machines: True, because the provider replaces outdated machines; False while a Machine is being deleted. */
export const reportUpToDate: MachinePoolPhase = async ({ machines = [] }, { client, cache, clock, signal }) => {
  const { UpToDate } = MachineConditions
  const errors: unknown[] = []
  for (const machine of machines) {
    const condition = isDeleting(machine) ? UpToDate.false('NotUpToDate', 'Machine is being deleted') : UpToDate.true('UpToDate')
    const { generation } = machine.metadata
    const after = draft(machine)
    const status = (after.status ??= {})
    status.conditions = setConditions(status.conditions, [condition], { now: clock.now(), generation, order: ConditionOrder })
    try {
      await commitChanges(client, Machine, machine, after, { conditions: [UpToDate.type], cache, signal })
    } catch (err) {
      errors.push(err)
    }
  }
  throwFirst(errors, 'failed to set UpToDate on Machines')
  return proceed()
}

const poolText = (namespace: string | undefined, clusterName: string, label: string): string =>
  `${namespace}/${clusterName}/${label}`

/** Machines by the Cluster and MachinePool that their labels name. */
const byPool: Index<Machine> = {
  name: 'Machine by MachinePool',
  kind: Machine,
  values({ metadata: { namespace, labels } }) {
    const cluster = labels?.[ClusterNameLabel]
    const pool = labels?.[MachinePoolNameLabel]
    return cluster === undefined || pool === undefined ? [] : [poolText(namespace, cluster, pool)]
  },
}

const byLabels: Index<MachinePool> = {
  name: 'MachinePool by labels of its Machines',
  kind: MachinePool,
  values: ({ metadata, spec }) => [poolText(metadata.namespace, spec.clusterName, labelValue(metadata.name))],
}

/** Maps a Machine or infrastructure machine to the MachinePool that its labels name. */
export const poolOfLabels: MapFunction = ({ metadata: { namespace, labels } }, cache) => {
  const cluster = labels?.[ClusterNameLabel]
  const pool = labels?.[MachinePoolNameLabel]
  if (cluster === undefined || pool === undefined) return []
  return cache.byIndex(byLabels, poolText(namespace, cluster, pool)).map(keyOf)
}

const machinesOf = ({ metadata, spec }: MachinePool, { cache }: MachinePoolIO): readonly Machine[] =>
  cache.byIndex(byPool, poolText(metadata.namespace, spec.clusterName, labelValue(metadata.name)))

/** Lists the infrastructure machines of the pool; `undefined` when its infrastructure object does not report their kind. */
async function infraMachinesOf(
  scope: MachinePoolScope,
  infraPool: Found,
  io: MachinePoolIO,
): Promise<readonly External[] | undefined> {
  const { machinePool } = scope
  const kindName = readContract(infraPool, infrastructureMachineKindOf)
  if (kindName === undefined) return undefined
  // externalKind reads the CustomResourceDefinition from the cache, which has only watched kinds.
  await io.watch(CustomResourceDefinition as Kind, () => [])
  const { group } = parseApiVersion(infraPool.external.object.apiVersion)
  const infraMachineKind = await externalKind(io.cache, { apiGroup: group, kind: kindName })
  await io.watch(infraMachineKind.kind, poolOfLabels)
  const { metadata, spec } = machinePool
  const labels = { [MachinePoolNameLabel]: labelValue(metadata.name), [ClusterNameLabel]: spec.clusterName }
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  const { items } = await io.cache.list(infraMachineKind.kind, { namespace: metadata.namespace!, labelSelector })
  return items.map((object) => ({ ...infraMachineKind, object }))
}

/**
 * Returns the fields that this controller sets by server-side apply on the Machine of an infrastructure machine. The version is that of the
 * kubelet; it is absent while the Node is unknown.
 */
function machineIntent(
  name: string,
  { object, kind, contract }: External,
  { machinePool, workload }: MachinePoolScope,
): Input<Machine> {
  const { metadata, spec } = machinePool
  const providerID = read({ object, kind, contract }, InfraMachineContract.providerID)
  const node = typeof providerID === 'string' && providerID !== '' ? workload?.nodesByProviderID(providerID)[0] : undefined
  const version = node?.status?.nodeInfo?.kubeletVersion
  return {
    metadata: {
      name,
      namespace: metadata.namespace!,
      labels: {
        ...spec.template.metadata?.labels,
        [MachinePoolNameLabel]: labelValue(metadata.name),
        [ClusterNameLabel]: spec.clusterName,
      },
      annotations: { ...spec.template.metadata?.annotations },
      // The owner is set at creation, so that the Machine controller does not treat the Machine as stand-alone.
      ownerReferences: [controllerReference(machinePool, MachinePool)],
    },
    spec: {
      clusterName: spec.clusterName,
      bootstrap: { dataSecretName: '' },
      infrastructureRef: { apiGroup: kind.group, kind: kind.kind, name: object.metadata.name },
      ...(version ? { version } : {}),
    },
  }
}

/** Creates or updates a Machine. Returns whether it was written. */
async function applyMachine(
  machine: Machine | undefined,
  infraMachine: External,
  scope: MachinePoolScope,
  io: MachinePoolIO,
): Promise<boolean> {
  const { metadata } = infraMachine.object
  // The Machine of this infrastructure machine may have been deleted: a new Machine would refer to infrastructure that is being deleted.
  if (!machine && isDeleting(infraMachine.object)) return false
  const intent = machineIntent(machine?.metadata.name ?? metadata.name, infraMachine, scope)
  return (await applyIntent(io, Machine, machine, intent, MachinePoolManager)) !== machine
}
