/**
 * Computes the desired state of a topology before patches. `desiredState` is pure: versions were decided before, existing objects keep their
 * names, and the random part of a new name is computed from the uid of the Cluster and the place of the object in the topology. Upstream:
 * exp/topology/desiredstate/desired_state.go, v1.14.
 */
import type {
  MachineDeployment,
  MachineDeploymentClass,
  MachineDeploymentTopology,
  MachinePool,
  MachinePoolTopology,
} from '@capstan/api'
import {
  Cluster,
  ClusterTopologyDeferUpgradeAnnotation,
  ClusterTopologyHoldUpgradeSequenceAnnotation,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyMachinePoolNameLabel,
  ControlPlaneContract,
  InfraClusterContract,
  MachineDeployment as MachineDeploymentKind,
  MachinePool as MachinePoolKind,
  readField,
  removeField,
  writeField,
  writeSeconds,
} from '@capstan/api'
import { apiVersionOf, draft, type Input, type KubeObject, ownerReference, typeMeta, withErrorContext } from '@capstan/kube'
import { contractRefOf } from '../../external/get.ts'
import type { Blueprint, MachineDeploymentBlueprint, MachinePoolBlueprint } from '../blueprint.ts'
import { blueprintOf, poolBlueprintOf } from '../blueprint.ts'
import type { CurrentMachineDeployment, CurrentMachinePool, CurrentState } from '../current-state.ts'
import {
  clone,
  clonedFrom,
  copyTemplate,
  type DesiredObject,
  generatedName,
  ownedLabels,
  refToDesired,
  templateName,
} from './desired-object.ts'
import { controlPlaneHealthCheck, type DesiredHealthCheck, machineDeploymentHealthCheck } from './health-checks.ts'
import { type WorkerVersion, workerErrorPrefix } from '../upgrade/upgrade.ts'

export interface DesiredState {
  readonly infrastructureCluster: DesiredObject
  readonly controlPlane: DesiredObject
  readonly controlPlaneMachineTemplate: DesiredObject | undefined
  readonly controlPlaneHealthCheck: DesiredHealthCheck | undefined
  readonly machineDeployments: readonly DesiredMachineDeployment[]
  readonly machinePools: readonly DesiredMachinePool[]
}

export interface DesiredMachinePool {
  readonly topology: MachinePoolTopology
  readonly object: Input<MachinePool> & { metadata: { name: string; namespace: string } }
  readonly bootstrap: DesiredObject
  readonly infrastructure: DesiredObject
}

export interface DesiredMachineDeployment {
  readonly topology: MachineDeploymentTopology
  readonly object: Input<MachineDeployment> & { metadata: { name: string; namespace: string } }
  readonly bootstrap: DesiredObject
  readonly infrastructure: DesiredObject
  readonly healthCheck: DesiredHealthCheck | undefined
}

/** Versions decided for this reconcile. */
export interface DesiredVersions {
  readonly controlPlane: string
  /** Versions of MachineDeployments. */
  readonly workers: readonly WorkerVersion[]
  /** Versions of MachinePools. */
  readonly pools: readonly WorkerVersion[]
}

/**
 * Computes the desired objects of a topology, before patches.
 * @throws Error that names the object that cannot be computed, or two topologies of one kind whose objects would have the same name
 */
export function desiredState(
  cluster: Cluster,
  blueprint: Blueprint,
  current: CurrentState,
  versions: DesiredVersions,
): DesiredState {
  const compute = <T>(part: string, act: () => T): T => withErrorContext(`failed to compute ${part}`, act)
  const desiredInfrastructure = compute('InfrastructureCluster', () => infrastructureCluster(cluster, blueprint, current))
  const machineTemplate = compute('ControlPlane InfrastructureMachineTemplate', () =>
    controlPlaneMachineTemplate(cluster, blueprint, current),
  )
  const desiredControlPlane = compute('ControlPlane', () =>
    controlPlane(cluster, blueprint, current, versions.controlPlane, machineTemplate),
  )
  const desired = {
    infrastructureCluster: desiredInfrastructure,
    controlPlane: desiredControlPlane,
    controlPlaneMachineTemplate: machineTemplate,
    controlPlaneHealthCheck: controlPlaneHealthCheck(
      cluster,
      blueprint.controlPlane,
      desiredControlPlane.object.metadata.name,
      current.controlPlane?.healthCheck,
    ),
    machineDeployments: (blueprint.topology.workers?.machineDeployments ?? []).map((topology) =>
      compute(workerErrorPrefix('MachineDeployment', topology.name), () =>
        machineDeployment(
          cluster,
          topology,
          blueprintOf(blueprint, topology.class),
          current.machineDeployments.get(topology.name),
          versions.workers.find((worker) => worker.name === topology.name)!.version,
        ),
      ),
    ),
    machinePools: (blueprint.topology.workers?.machinePools ?? []).map((topology) =>
      compute(workerErrorPrefix('MachinePool', topology.name), () =>
        machinePool(
          cluster,
          topology,
          poolBlueprintOf(blueprint, topology.class),
          current.machinePools.get(topology.name),
          versions.pools.find((pool) => pool.name === topology.name)!.version,
        ),
      ),
    ),
  }
  assertDistinctNames('MachineDeployment', desired.machineDeployments)
  assertDistinctNames('MachinePool', desired.machinePools)
  return desired
}

/**
 * Throws when two MachineDeployments, or two MachinePools, get the same name: a naming template with neither `.random` nor the topology name
 * can render one name for several topologies. Upstream then writes this object for each of the topologies in turn, without end.
 */
function assertDistinctNames(kind: string, workers: readonly (DesiredMachineDeployment | DesiredMachinePool)[]): void {
  const topologyOf = new Map<string, string>()
  for (const { topology, object } of workers) {
    const { name } = object.metadata
    const duplicate = topologyOf.get(name)
    if (duplicate !== undefined)
      throw new Error(
        `${kind} topologies ${JSON.stringify(duplicate)} and ${JSON.stringify(topology.name)} have the same name ${JSON.stringify(name)}: ` +
          'the naming template of their class must contain .random or the name of the topology',
      )
    topologyOf.set(name, topology.name)
  }
}

/**
 * Removes the empty host and port of control plane endpoints. Templates may contain an empty endpoint, and applying it would overwrite the
 * endpoint that the provider's controller has set. Must be called after patches, because applying patches copies the templates' spec, with
 * the empty endpoints, to the objects again.
 */
export function removeEmptyEndpoints({ infrastructureCluster, controlPlane }: DesiredState): void {
  for (const { object, contract } of [infrastructureCluster, controlPlane]) {
    const endpoint = readField(object, InfraClusterContract.controlPlaneEndpoint, contract)
    if (!endpoint) continue
    const { host, port, ...otherFields } = endpoint
    const nonEmptyFields = { ...otherFields, ...(host ? { host } : {}), ...(port ? { port } : {}) }
    if (Object.keys(nonEmptyFields).length > 0)
      writeField(object, InfraClusterContract.controlPlaneEndpoint, contract, nonEmptyFields)
    else removeField(object, InfraClusterContract.controlPlaneEndpoint, contract)
  }
}

const DefaultName = '{{ .cluster.name }}-{{ .random }}'
const DefaultMachinePoolName = '{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}'
const DefaultMachineDeploymentName = '{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}'

function infrastructureCluster(
  cluster: Cluster,
  { class: { spec }, infrastructureCluster: template }: Blueprint,
  current: CurrentState,
) {
  const name =
    cluster.spec.infrastructureRef?.name ??
    generatedName(cluster, spec.infrastructure.naming?.template ?? DefaultName, 'infrastructureCluster')
  return clone(template, cluster, name, current.infrastructureCluster?.object)
}

function controlPlaneMachineTemplate(
  cluster: Cluster,
  { controlPlane }: Blueprint,
  current: CurrentState,
): DesiredObject | undefined {
  if (!controlPlane.machineTemplate) return undefined
  const existing = current.controlPlane?.machineTemplate?.object
  const name = existing?.metadata.name ?? templateName(cluster, cluster.metadata.name, 'controlPlane.machineInfrastructure')
  return copyTemplate(controlPlane.machineTemplate, cluster, name, {}, existing)
}

function controlPlane(
  cluster: Cluster,
  blueprint: Blueprint,
  current: CurrentState,
  version: string,
  machineTemplate: DesiredObject | undefined,
): DesiredObject {
  const { class: controlPlaneClass, topology, template } = blueprint.controlPlane
  const name =
    cluster.spec.controlPlaneRef?.name ??
    generatedName(cluster, controlPlaneClass.naming?.template ?? DefaultName, 'controlPlane')
  const desired = clone(template, cluster, name, current.controlPlane?.object)
  const { object, contract } = desired
  const fields = ControlPlaneContract

  const labels = { ...controlPlaneClass.metadata?.labels, ...topology.metadata?.labels }
  const annotations = { ...controlPlaneClass.metadata?.annotations, ...topology.metadata?.annotations }
  const owned = ownedLabels(cluster)
  object.metadata.labels = { ...object.metadata.labels, ...labels, ...owned }
  object.metadata.annotations = { ...object.metadata.annotations, ...annotations, ...clonedFrom(template) }

  if (machineTemplate) {
    const templateMetadata = readField(object, fields.machineTemplateMetadata, contract)
    writeField(object, fields.machineTemplateMetadata, contract, {
      ...nonEmpty('labels', { ...templateMetadata?.labels, ...labels, ...owned }),
      ...nonEmpty('annotations', { ...templateMetadata?.annotations, ...annotations }),
    })
    writeMachineInfrastructureRef(desired, machineTemplate, current.controlPlane?.object)
  }

  if (topology.replicas !== undefined) writeField(object, fields.specReplicas, contract, topology.replicas)
  if (topology.rollout?.after !== undefined) writeField(object, fields.rolloutAfter, contract, topology.rollout.after)
  const readinessGates = topology.readinessGates ?? controlPlaneClass.readinessGates
  if (readinessGates) writeField(object, fields.readinessGates, contract, draft(readinessGates))
  const taints = topology.taints ?? controlPlaneClass.taints
  if (taints) writeField(object, fields.taints, contract, draft(taints))
  const deletion = { ...controlPlaneClass.deletion, ...topology.deletion }
  const timeouts = [
    [fields.nodeDrainTimeout, deletion.nodeDrainTimeoutSeconds],
    [fields.nodeVolumeDetachTimeout, deletion.nodeVolumeDetachTimeoutSeconds],
    [fields.nodeDeletionTimeout, deletion.nodeDeletionTimeoutSeconds],
  ] as const
  for (const [field, seconds] of timeouts) if (seconds !== undefined) writeSeconds(object, field, contract, seconds)
  writeField(object, fields.version, contract, version)
  return desired
}

/** Writes the control plane's reference to its machine template, in the form of the control plane's contract version. */
export function writeMachineInfrastructureRef(
  { object, contract }: DesiredObject,
  template: DesiredObject,
  current: KubeObject | undefined,
): void {
  const { name, namespace } = template.object.metadata
  const { group, kind } = template.kind
  if (contract === 'v1beta2') {
    writeField(object, ControlPlaneContract.machineInfrastructureRef, contract, { apiGroup: group, kind, name })
    return
  }
  // While group and kind stay the same, a v1beta1 reference keeps its apiVersion: core finds the template by group and kind, so another
  // version would be a needless write.
  const currentRef = current && readField(current, ControlPlaneContract.machineInfrastructureRef, contract)
  const keepsKind =
    currentRef && 'apiVersion' in currentRef && currentRef.kind === kind && contractRefOf(currentRef).apiGroup === group
  const apiVersion = keepsKind ? currentRef.apiVersion : apiVersionOf(template.kind)
  writeField(object, ControlPlaneContract.machineInfrastructureRef, contract, { apiVersion, kind, name, namespace })
}

function machineDeployment(
  cluster: Cluster,
  topology: MachineDeploymentTopology,
  blueprint: MachineDeploymentBlueprint,
  current: CurrentMachineDeployment | undefined,
  version: string,
): DesiredMachineDeployment {
  const { class: workerClass } = blueprint
  const base = `${cluster.metadata.name}-${topology.name}`
  const label = { [ClusterTopologyMachineDeploymentNameLabel]: topology.name }
  const template = (part: 'bootstrap' | 'infrastructure') => {
    const existing = current?.[part]?.object
    const name = existing?.metadata.name ?? templateName(cluster, base, 'machineDeployments', topology.name, part)
    return copyTemplate(blueprint[part], cluster, name, label, existing)
  }
  const bootstrap = template('bootstrap')
  const infrastructure = template('infrastructure')

  const owned = { ...ownedLabels(cluster), ...label }
  const labels = { ...workerClass.metadata?.labels, ...topology.metadata?.labels, ...owned }
  const annotations = { ...workerClass.metadata?.annotations, ...topology.metadata?.annotations }
  delete annotations[ClusterTopologyHoldUpgradeSequenceAnnotation]
  delete annotations[ClusterTopologyDeferUpgradeAnnotation]
  const metadata = { labels, ...nonEmpty('annotations', annotations) }

  const nameTemplate = workerClass.naming?.template ?? DefaultMachineDeploymentName
  const name = current?.object.metadata.name ?? generatedName(cluster, nameTemplate, 'machineDeployments', topology.name)
  return {
    topology,
    bootstrap,
    infrastructure,
    healthCheck: machineDeploymentHealthCheck(cluster, topology, workerClass, name, current?.healthCheck),
    object: {
      ...typeMeta(MachineDeploymentKind),
      metadata: {
        name,
        namespace: cluster.metadata.namespace!,
        ...draft(metadata),
      },
      spec: machineDeploymentSpec(cluster, topology, workerClass, version, { metadata, owned, bootstrap, infrastructure }),
    },
  }
}

function machineDeploymentSpec(
  cluster: Cluster,
  topology: MachineDeploymentTopology,
  workerClass: MachineDeploymentClass,
  version: string,
  parts: {
    metadata: { labels: Record<string, string>; annotations?: Record<string, string> }
    owned: Record<string, string>
    bootstrap: DesiredObject
    infrastructure: DesiredObject
  },
): MachineDeployment['spec'] {
  const { order, ...timeouts } = { ...workerClass.deletion, ...topology.deletion }
  const rollout = topology.rollout ?? workerClass.rollout
  const failureDomain = topology.failureDomain ?? workerClass.failureDomain
  const minReadySeconds = topology.minReadySeconds ?? workerClass.minReadySeconds
  const readinessGates = topology.readinessGates ?? workerClass.readinessGates
  const taints = topology.taints ?? workerClass.taints
  const maxInFlight = topology.healthCheck?.remediation?.maxInFlight ?? workerClass.healthCheck?.remediation?.maxInFlight
  return draft({
    clusterName: cluster.metadata.name,
    ...(topology.replicas === undefined ? {} : { replicas: topology.replicas }),
    ...(rollout === undefined ? {} : { rollout }),
    ...(order === undefined ? {} : { deletion: { order } }),
    ...(maxInFlight === undefined ? {} : { remediation: { maxInFlight } }),
    selector: { matchLabels: parts.owned },
    template: {
      metadata: parts.metadata,
      spec: {
        clusterName: cluster.metadata.name,
        version,
        bootstrap: { configRef: refToDesired(parts.bootstrap) },
        infrastructureRef: refToDesired(parts.infrastructure),
        ...(failureDomain === undefined ? {} : { failureDomain }),
        ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
        ...(readinessGates === undefined ? {} : { readinessGates }),
        ...(taints === undefined ? {} : { taints }),
        ...(Object.keys(timeouts).length === 0 ? {} : { deletion: timeouts }),
      },
    },
  })
}

/** Makes a MachinePool with its bootstrap config and infrastructure, which are objects, not templates, and change in place. */
function machinePool(
  cluster: Cluster,
  topology: MachinePoolTopology,
  blueprint: MachinePoolBlueprint,
  current: CurrentMachinePool | undefined,
  version: string,
): DesiredMachinePool {
  const { class: workerClass } = blueprint
  const base = `${cluster.metadata.name}-${topology.name}`
  const label = { [ClusterTopologyMachinePoolNameLabel]: topology.name }
  const cloned = (part: 'bootstrap' | 'infrastructure') => {
    const existing = current?.[part]?.object
    const name = existing?.metadata.name ?? templateName(cluster, base, 'machinePools', topology.name, part)
    // The Cluster is an owner but not the controller, because the MachinePool later becomes the controller of both objects.
    return clone(blueprint[part], cluster, name, existing, { labels: label, owner: ownerReference(cluster, Cluster) })
  }
  const bootstrap = cloned('bootstrap')
  const infrastructure = cloned('infrastructure')

  const labels = { ...workerClass.metadata?.labels, ...topology.metadata?.labels, ...ownedLabels(cluster), ...label }
  const annotations = { ...workerClass.metadata?.annotations, ...topology.metadata?.annotations }
  delete annotations[ClusterTopologyHoldUpgradeSequenceAnnotation]
  delete annotations[ClusterTopologyDeferUpgradeAnnotation]
  const metadata = { labels, ...nonEmpty('annotations', annotations) }
  const nameTemplate = workerClass.naming?.template ?? DefaultMachinePoolName
  const name = current?.object.metadata.name ?? generatedName(cluster, nameTemplate, 'machinePools', topology.name)
  const failureDomains = topology.failureDomains ?? workerClass.failureDomains
  const minReadySeconds = topology.minReadySeconds ?? workerClass.minReadySeconds
  const taints = topology.taints ?? workerClass.taints
  const deletion = { ...workerClass.deletion, ...topology.deletion }
  return {
    topology,
    bootstrap,
    infrastructure,
    object: {
      ...typeMeta(MachinePoolKind),
      metadata: {
        name,
        namespace: cluster.metadata.namespace!,
        ...draft(metadata),
      },
      spec: draft({
        clusterName: cluster.metadata.name,
        ...(topology.replicas === undefined ? {} : { replicas: topology.replicas }),
        ...(failureDomains === undefined ? {} : { failureDomains }),
        template: {
          metadata,
          spec: {
            clusterName: cluster.metadata.name,
            version,
            bootstrap: { configRef: refToDesired(bootstrap) },
            infrastructureRef: refToDesired(infrastructure),
            ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
            ...(taints === undefined ? {} : { taints }),
            ...(Object.keys(deletion).length === 0 ? {} : { deletion }),
          },
        },
      }),
    },
  }
}

const nonEmpty = <Name extends string>(name: Name, map: Record<string, string>): { [N in Name]?: Record<string, string> } =>
  (Object.keys(map).length === 0 ? {} : { [name]: map }) as { [N in Name]?: Record<string, string> }
