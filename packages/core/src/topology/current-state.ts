/** What there is of a topology right now. */
import type { Cluster } from '@capstan/api'
import {
  ClusterNameLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyOwnedLabel,
  clonedKind,
  ControlPlaneContract,
  Machine,
  MachineDeployment,
  readField,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { CustomResourceDefinition, isDeleting, keyOf, keyText, type KubeObject, labelSelector, orAbsent } from '@capstan/kube'
import { type ExternalKind, externalKind } from '../external/contract-version.ts'
import { type ContractRef, contractRefOf, type External } from '../external/get.ts'
import type { Blueprint } from './blueprint.ts'
import { concernedClusters, isOfOtherVersion } from './indexes.ts'

export interface CurrentState {
  readonly infrastructureCluster: External | undefined
  readonly controlPlane: CurrentControlPlane | undefined
  /** By the name in the topology. */
  readonly machineDeployments: ReadonlyMap<string, CurrentMachineDeployment>
}

export interface CurrentControlPlane extends External {
  readonly machineTemplate: External | undefined
}

export interface CurrentMachineDeployment {
  readonly object: MachineDeployment
  /** Absent while the MachineDeployment is being deleted: its templates may be gone already. */
  readonly bootstrap: External | undefined
  readonly infrastructure: External | undefined
  /** Some of its Machines are not of its version. */
  readonly upgrading: boolean
}

/** @throws Error when an object that the Cluster refers to is gone, or is not of a topology */
export async function observeCurrentState(
  cluster: Cluster,
  blueprint: Blueprint,
  context: ReconcileContext,
): Promise<CurrentState> {
  try {
    return {
      infrastructureCluster: await observeInfrastructureCluster(cluster, blueprint, context),
      controlPlane: await observeControlPlane(cluster, blueprint, context),
      machineDeployments: await observeMachineDeployments(cluster, blueprint, context),
    }
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err)
    throw new Error(`error reading current state of the Cluster topology: ${reason}`, { cause: err })
  }
}

async function observeInfrastructureCluster(cluster: Cluster, blueprint: Blueprint, context: ReconcileContext) {
  const ref = cluster.spec.infrastructureRef
  if (!ref) return undefined
  return owned(await observe(ref, clonedOf(blueprint.infrastructureCluster), cluster, context), cluster)
}

async function observeControlPlane(cluster: Cluster, { controlPlane }: Blueprint, context: ReconcileContext) {
  const ref = cluster.spec.controlPlaneRef
  if (!ref) return undefined
  const object = owned(await observe(ref, clonedOf(controlPlane.template), cluster, context), cluster)
  if (!controlPlane.machineTemplate) return { ...object, machineTemplate: undefined }
  const machineRef = readField(object.object, ControlPlaneContract.machineInfrastructureRef, object.contract)
  if (!machineRef) return { ...object, machineTemplate: undefined }
  const of = 'apiGroup' in machineRef ? machineRef : contractRefOf(machineRef)
  return { ...object, machineTemplate: owned(await observe(of, controlPlane.machineTemplate, cluster, context), cluster) }
}

async function observeMachineDeployments(cluster: Cluster, blueprint: Blueprint, context: ReconcileContext) {
  const { name, namespace } = cluster.metadata
  const selector = `${ClusterNameLabel}=${name},${ClusterTopologyOwnedLabel}=`
  const { items } = await context.cache.list(MachineDeployment, { namespace: namespace!, labelSelector: selector })
  const found = new Map<string, CurrentMachineDeployment>()
  for (const object of items) {
    const topologyName = object.metadata.labels?.[ClusterTopologyMachineDeploymentNameLabel]
    if (!topologyName) {
      throw new Error(
        `failed to find label ${ClusterTopologyMachineDeploymentNameLabel} in MachineDeployment ${keyText(keyOf(object))}`,
      )
    }
    const other = found.get(topologyName)
    if (other) {
      const label = `${ClusterTopologyMachineDeploymentNameLabel}: ${topologyName}`
      throw new Error(
        `duplicate MachineDeployment ${keyText(keyOf(object))} found for label ${label} (beside ${other.object.metadata.name})`,
      )
    }
    found.set(topologyName, await observeMachineDeployment(object, topologyName, cluster, blueprint, context))
  }
  return found
}

async function observeMachineDeployment(
  object: MachineDeployment,
  topologyName: string,
  cluster: Cluster,
  { topology, machineDeployments }: Blueprint,
  context: ReconcileContext,
): Promise<CurrentMachineDeployment> {
  const upgrading = await isUpgradingMachines(object, context)
  if (isDeleting(object)) return { object, bootstrap: undefined, infrastructure: undefined, upgrading }
  const className = topology.workers?.machineDeployments?.find((one) => one.name === topologyName)?.class
  const of = className === undefined ? undefined : machineDeployments.get(className)
  const { bootstrap, infrastructureRef } = object.spec.template.spec
  if (!bootstrap.configRef) throw new Error(`${describe(object)} has no spec.template.spec.bootstrap.configRef`)
  return {
    object,
    bootstrap: owned(await observe(bootstrap.configRef, of?.bootstrap, cluster, context), cluster),
    infrastructure: owned(await observe(infrastructureRef, of?.infrastructure, cluster, context), cluster),
    upgrading,
  }
}

async function isUpgradingMachines({ metadata, spec }: MachineDeployment, { cache }: ReconcileContext): Promise<boolean> {
  const { version } = spec.template.spec
  if (version === undefined) return false
  const { items } = await cache.list(Machine, {
    namespace: metadata.namespace!,
    labelSelector: labelSelector(spec.selector).text,
  })
  return items.some((machine) => isOfOtherVersion(machine, version))
}

const clonedOf = (template: External): ExternalKind => ({ contract: template.contract, kind: clonedKind(template.kind) })

/** Reads an object in the version that the class uses for its kind, else in the one that its CustomResourceDefinition prefers. */
async function observe(
  ref: ContractRef,
  ofClass: ExternalKind | undefined,
  cluster: Cluster,
  context: ReconcileContext,
): Promise<External> {
  const { cache, client, signal } = context
  await context.watch(CustomResourceDefinition, () => [])
  const matches = ofClass?.kind.group === ref.apiGroup && ofClass.kind.kind === ref.kind
  const of = matches ? { contract: ofClass.contract, kind: ofClass.kind } : await externalKind(cache, ref)
  await context.watch(of.kind, concernedClusters)
  const key = { namespace: cluster.metadata.namespace!, name: ref.name }
  const object = cache.peek(of.kind, key) ?? (await orAbsent(client.get(of.kind, key, { signal })))
  if (!object) throw new Error(`failed to read ${ref.kind} ${keyText(key)}: ${ref.kind}.${ref.apiGroup} "${ref.name}" not found`)
  return { ...of, object }
}

function owned(external: External, cluster: Cluster): External {
  if (external.object.metadata.labels?.[ClusterTopologyOwnedLabel] !== undefined) return external
  throw new Error(`${describe(external.object)} referenced from Cluster ${keyText(keyOf(cluster))} is not topology owned`)
}

const describe = (object: KubeObject): string => `${object.kind} ${keyText(keyOf(object))}`
