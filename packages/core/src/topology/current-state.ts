/** Reads the existing objects of a topology. */
import type { Cluster, MachineHealthCheck } from '@capstan/api'
import {
  ClusterNameLabel,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyMachinePoolNameLabel,
  ClusterTopologyOwnedLabel,
  clonedKind,
  ControlPlaneContract,
  Machine,
  MachineDeployment,
  MachinePool,
  readField,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import {
  CustomResourceDefinition,
  isDeleting,
  keyOf,
  keyText,
  type Kind,
  type KubeObject,
  labelSelector,
  orAbsent,
  type Reader,
  withErrorContext,
} from '@capstan/kube'
import { type ExternalKind, externalKind } from '../external/contract-version.ts'
import { type ContractRef, contractRefOf, type External } from '../external/get.ts'
import { type Blueprint, cannotRetrieve } from './blueprint.ts'
import { observeHealthCheck } from './desired-state/health-checks.ts'
import { concernedClusters } from './concerned-clusters.ts'

export interface CurrentState {
  readonly infrastructureCluster: External | undefined
  readonly controlPlane: CurrentControlPlane | undefined
  /** By the name in the topology. */
  readonly machineDeployments: ReadonlyMap<string, CurrentMachineDeployment>
  /** By the name in the topology. */
  readonly machinePools: ReadonlyMap<string, CurrentMachinePool>
}

export interface CurrentControlPlane extends External {
  /** Absent when the class does not run the control plane on Machines. */
  readonly machineTemplate: External | undefined
  readonly healthCheck: MachineHealthCheck | undefined
}

export interface CurrentMachineDeployment {
  readonly object: MachineDeployment
  /** Absent, like `infrastructure`, while the MachineDeployment is being deleted: its templates may be gone already. */
  readonly bootstrap: External | undefined
  readonly infrastructure: External | undefined
  readonly healthCheck: MachineHealthCheck | undefined
  /** Whether some of its Machines, or their kubelets, have another version than the MachineDeployment. */
  readonly upgrading: boolean
}

export interface CurrentMachinePool {
  readonly object: MachinePool
  /** Absent, like `infrastructure`, while the MachinePool is being deleted: its bootstrap config and infrastructure may be gone already. */
  readonly bootstrap: External | undefined
  readonly infrastructure: External | undefined
  /** Whether some of its Nodes have another version than the MachinePool. */
  readonly upgrading: boolean
}

/**
 * Reads the existing objects of the Cluster's topology.
 * @throws Error when an object cannot be read, or the objects are inconsistent, for example when a referenced object does not belong to a
 * topology
 */
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
      machinePools: await observeMachinePools(cluster, blueprint, context),
    }
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err)
    throw new Error(`error reading current state of the Cluster topology: ${reason}`, { cause: err })
  }
}

async function observeInfrastructureCluster(cluster: Cluster, blueprint: Blueprint, context: ReconcileContext) {
  const ref = cluster.spec.infrastructureRef
  if (!ref) return undefined
  return observeOwned(ref, kindOfClone(blueprint.infrastructureCluster), ofCluster(ref, cluster), context)
}

async function observeControlPlane(cluster: Cluster, { controlPlane }: Blueprint, context: ReconcileContext) {
  const ref = cluster.spec.controlPlaneRef
  if (!ref) return undefined
  const object = await observeOwned(ref, kindOfClone(controlPlane.template), ofCluster(ref, cluster), context)
  const healthCheck = observeHealthCheck(object.object, context)
  if (!controlPlane.machineTemplate) return { ...object, machineTemplate: undefined, healthCheck }
  const machineRef = readField(object.object, ControlPlaneContract.machineInfrastructureRef, object.contract)
  const from = describe(object.object)
  if (!machineRef) {
    const field = ControlPlaneContract.machineInfrastructureRef.paths[object.contract]
    const missing = `failed to get ${field}.${object.contract === 'v1beta1' ? 'apiVersion' : 'apiGroup'} from ${object.object.kind}`
    throw new Error(`failed to get InfrastructureMachineTemplate reference for ${from}: ${missing}`)
  }
  const templateRef = 'apiGroup' in machineRef ? machineRef : contractRefOf(machineRef)
  const problem = `failed to get InfrastructureMachineTemplate for ${from}`
  const reference = { namespace: cluster.metadata.namespace!, from, problem }
  const machineTemplate = await observeOwned(templateRef, controlPlane.machineTemplate, reference, context)
  return { ...object, machineTemplate, healthCheck }
}

async function observeMachineDeployments(cluster: Cluster, blueprint: Blueprint, context: ReconcileContext) {
  const label = ClusterTopologyMachineDeploymentNameLabel
  const machineDeployments = new Map<string, CurrentMachineDeployment>()
  for (const [name, object] of await ownedByTopology(MachineDeployment, label, cluster, context)) {
    machineDeployments.set(name, await observeMachineDeployment(object, name, cluster, blueprint, context))
  }
  return machineDeployments
}

async function observeMachinePools(cluster: Cluster, blueprint: Blueprint, context: ReconcileContext) {
  const label = ClusterTopologyMachinePoolNameLabel
  const machinePools = new Map<string, CurrentMachinePool>()
  for (const [name, object] of await ownedByTopology(MachinePool, label, cluster, context)) {
    machinePools.set(name, await observeMachinePool(object, name, cluster, blueprint, context))
  }
  return machinePools
}

/** Returns the topology's workers of one kind by their name in the topology. */
async function ownedByTopology<T extends KubeObject>(
  kind: Kind<T>,
  label: string,
  cluster: Cluster,
  context: ReconcileContext,
): Promise<ReadonlyMap<string, T>> {
  const { name, namespace } = cluster.metadata
  const selector = `${ClusterNameLabel}=${name},${ClusterTopologyOwnedLabel}=`
  const { items } = await context.cache.list(kind, { namespace: namespace!, labelSelector: selector })
  const objects = new Map<string, T>()
  for (const object of items) {
    const topologyName = object.metadata.labels?.[label]
    if (!topologyName) throw new Error(`failed to find label ${label} in ${kind.kind} ${keyText(keyOf(object))}`)
    if (objects.has(topologyName))
      throw new Error(`duplicate ${kind.kind} ${keyText(keyOf(object))} found for label ${label}: ${topologyName}`)
    objects.set(topologyName, object)
  }
  return objects
}

async function observeMachinePool(
  object: MachinePool,
  topologyName: string,
  cluster: Cluster,
  { topology, machinePools }: Blueprint,
  context: ReconcileContext,
): Promise<CurrentMachinePool> {
  const upgrading = isUpgradingNodes(object)
  if (isDeleting(object)) return { object, bootstrap: undefined, infrastructure: undefined, upgrading }
  const className = topology.workers?.machinePools?.find((pool) => pool.name === topologyName)?.class
  const poolBlueprint = className === undefined ? undefined : machinePools.get(className)
  if (className !== undefined && !poolBlueprint) throw new Error(`failed to find MachinePool class ${className} in ClusterClass`)
  const { bootstrap, infrastructureRef } = object.spec.template.spec
  if (!bootstrap.configRef) throw new Error(`${describe(object)} does not have a reference to a Bootstrap Config`)
  const kindOfPart = (template: External | undefined) => template && kindOfClone(template)
  return {
    object,
    bootstrap: await observeOwned(
      bootstrap.configRef,
      kindOfPart(poolBlueprint?.bootstrap),
      ofWorkers('Bootstrap', object),
      context,
    ),
    infrastructure: await observeOwned(
      infrastructureRef,
      kindOfPart(poolBlueprint?.infrastructure),
      ofWorkers('Infrastructure', object),
      context,
    ),
    upgrading,
  }
}

/** Whether Nodes of the MachinePool have another version than its template. Upstream lists the Nodes; status.versions has their versions. */
export const isUpgradingNodes = ({ spec, status }: MachinePool): boolean => {
  const { version } = spec.template.spec
  return version !== undefined && (status?.versions ?? []).some((inUse) => inUse.version !== version)
}

async function observeMachineDeployment(
  object: MachineDeployment,
  topologyName: string,
  cluster: Cluster,
  { topology, machineDeployments }: Blueprint,
  context: ReconcileContext,
): Promise<CurrentMachineDeployment> {
  const upgrading = await isUpgradingMachines(object, context.cache)
  const healthCheck = observeHealthCheck(object, context)
  if (isDeleting(object)) return { object, bootstrap: undefined, infrastructure: undefined, healthCheck, upgrading }
  const className = topology.workers?.machineDeployments?.find((deployment) => deployment.name === topologyName)?.class
  const deploymentBlueprint = className === undefined ? undefined : machineDeployments.get(className)
  if (className !== undefined && !deploymentBlueprint)
    throw new Error(`failed to find MachineDeployment class ${className} in ClusterClass`)
  const { bootstrap, infrastructureRef } = object.spec.template.spec
  if (!bootstrap.configRef) throw new Error(`${describe(object)} does not have a reference to a Bootstrap Config`)
  return {
    object,
    bootstrap: await observeOwned(bootstrap.configRef, deploymentBlueprint?.bootstrap, ofWorkers('Bootstrap', object), context),
    infrastructure: await observeOwned(
      infrastructureRef,
      deploymentBlueprint?.infrastructure,
      ofWorkers('Infrastructure', object),
      context,
    ),
    healthCheck,
    upgrading,
  }
}

/**
 * Whether Machines of the MachineDeployment, or their kubelets, have another version than its template. A kubelet that reports no version is
 * ignored.
 * Upstream: internal/topology/check/upgrade.go, v1.14.
 * @throws Error when a Machine has no version, unless an earlier Machine has another version
 */
export async function isUpgradingMachines({ metadata, spec }: MachineDeployment, reader: Reader): Promise<boolean> {
  const { version } = spec.template.spec
  if (version === undefined) return false
  const { items } = await reader.list(Machine, {
    namespace: metadata.namespace!,
    labelSelector: labelSelector(spec.selector).text,
  })
  return items.some((machine) => {
    if (!machine.spec.version)
      throw new Error(
        `failed to check if MachineDeployment ${metadata.name} is upgrading: Machine ${machine.metadata.name} has no version`,
      )
    const kubeletVersion = machine.status?.nodeInfo?.kubeletVersion || version
    return machine.spec.version !== version || kubeletVersion !== version
  })
}

const kindOfClone = (template: External): ExternalKind => ({ contract: template.contract, kind: clonedKind(template.kind) })

/** Namespace of a referenced object, and texts for errors about the reference. */
interface Reference {
  readonly namespace: string
  /** The object that has the reference, for error texts. */
  readonly from: string
  /** Begins the error when the object cannot be read. */
  readonly problem: string
}

const ofCluster = ({ kind, name }: ContractRef, cluster: Cluster): Reference => {
  const namespace = cluster.metadata.namespace!
  return {
    namespace,
    from: `Cluster ${keyText(keyOf(cluster))}`,
    problem: `failed to read ${kind} ${keyText({ namespace, name })}`,
  }
}

const ofWorkers = (part: 'Bootstrap' | 'Infrastructure', workers: MachineDeployment | MachinePool): Reference => ({
  namespace: workers.metadata.namespace!,
  from: describe(workers),
  problem: `${describe(workers)} ${part} reference could not be retrieved`,
})

/** Reads a referenced object. @throws Error when it cannot be read, or lacks the label of objects that belong to a topology */
async function observeOwned(
  ref: ContractRef,
  kindOfClass: ExternalKind | undefined,
  { namespace, from, problem }: Reference,
  context: ReconcileContext,
): Promise<External> {
  const external = await withErrorContext(problem, () => observe(ref, kindOfClass, namespace, context))
  if (external.object.metadata.labels?.[ClusterTopologyOwnedLabel] !== undefined) return external
  throw new Error(`${describe(external.object)} referenced from ${from} is not topology owned`)
}

/** Reads an object in the API version that the class uses for its kind, or else in the version that the CRD has for the newest contract. */
async function observe(
  ref: ContractRef,
  kindOfClass: ExternalKind | undefined,
  namespace: string,
  context: ReconcileContext,
): Promise<External> {
  const { cache, client, signal } = context
  await context.watch(CustomResourceDefinition, () => [])
  const matches = kindOfClass?.kind.group === ref.apiGroup && kindOfClass.kind.kind === ref.kind
  const kindOfRef = matches ? { contract: kindOfClass.contract, kind: kindOfClass.kind } : await externalKind(cache, ref)
  await context.watch(kindOfRef.kind, concernedClusters)
  const key = { namespace, name: ref.name }
  const object = cache.peek(kindOfRef.kind, key) ?? (await orAbsent(client.get(kindOfRef.kind, key, { signal })))
  if (!object) throw new Error(cannotRetrieve(kindOfRef.kind, key))
  return { ...kindOfRef, object }
}

const describe = (object: KubeObject): string => `${object.kind} ${keyText(keyOf(object))}`
