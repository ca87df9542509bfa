/**
 * Built-in variables of patches: those of the Cluster, and those of the part of the topology to which a template belongs. Upstream:
 * api/runtime/hooks/v1alpha1, v1.14.
 */
import {
  type Cluster,
  type ClusterClass,
  type ClusterTopology,
  ControlPlaneContract,
  hiddenAnnotations,
  readField,
} from '@capstan/api'
import type { Json, JsonObject } from '@capstan/kube'
import { ownedLabels } from '../desired-state/desired-object.ts'
import type { DesiredMachineDeployment, DesiredMachinePool, DesiredState } from '../desired-state/desired-state.ts'

/** `builtin.cluster`, for every template. */
export function clusterBuiltins(cluster: Cluster, clusterClass: ClusterClass): JsonObject {
  const { name, namespace, uid } = cluster.metadata
  const { clusterNetwork, topology } = cluster.spec
  const classMetadata = clusterClass.metadata
  const network = withoutUndefined({
    serviceDomain: clusterNetwork?.serviceDomain,
    services: clusterNetwork?.services?.cidrBlocks,
    pods: clusterNetwork?.pods?.cidrBlocks,
  })
  return {
    cluster: withoutUndefined({
      name,
      namespace,
      uid,
      // Includes the labels that the first reconcile sets, so that patches get the same values in every reconcile.
      metadata: builtinMetadata({ ...cluster.metadata, labels: { ...cluster.metadata.labels, ...ownedLabels(cluster) } }),
      topology: withoutUndefined({
        version: topology?.version,
        class: classMetadata.name,
        classNamespace: classMetadata.namespace,
        classRef: withoutUndefined({ name: classMetadata.name, namespace: classMetadata.namespace }),
      }),
      network: Object.keys(network).length === 0 ? undefined : network,
    }),
  }
}

/** `builtin.controlPlane`, for templates of the control plane. Its replicas are those of the topology, not those of the class's template. */
export function controlPlaneBuiltins(
  { controlPlane, controlPlaneMachineTemplate }: DesiredState,
  topology: ClusterTopology,
): JsonObject {
  const { object, contract } = controlPlane
  const template = controlPlaneMachineTemplate?.object.metadata.name
  return {
    controlPlane: withoutUndefined({
      version: readField(object, ControlPlaneContract.version, contract),
      name: object.metadata.name,
      metadata: builtinMetadata(object.metadata),
      replicas: topology.controlPlane?.replicas,
      machineTemplate: template === undefined ? undefined : { infrastructureRef: { name: template } },
    }),
  }
}

/** `builtin.machineDeployment`, for templates of one MachineDeployment. */
export const machineDeploymentBuiltins = (desired: DesiredMachineDeployment): JsonObject => ({
  machineDeployment: workerBuiltins(desired),
})

/** `builtin.machinePool`, for templates of one MachinePool. */
export const machinePoolBuiltins = (desired: DesiredMachinePool): JsonObject => ({ machinePool: workerBuiltins(desired) })

const workerBuiltins = ({
  topology,
  object,
  bootstrap,
  infrastructure,
}: DesiredMachineDeployment | DesiredMachinePool): JsonObject =>
  withoutUndefined({
    version: object.spec.template.spec.version,
    class: topology.class,
    name: object.metadata.name,
    topologyName: topology.name,
    metadata: builtinMetadata(object.metadata),
    replicas: object.spec.replicas,
    bootstrap: { configRef: { name: bootstrap.object.metadata.name } },
    infrastructureRef: { name: infrastructure.object.metadata.name },
  })

interface Labelled {
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
}

/** Returns the annotations that patches can read: all except `hiddenAnnotations`, which hook requests omit as well. */
export const visibleAnnotations = (annotations: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(annotations).filter(([name]) => !hiddenAnnotations.includes(name)))

function builtinMetadata({ labels, annotations }: Labelled): JsonObject | undefined {
  const visible = visibleAnnotations(annotations)
  const metadata = withoutUndefined({
    labels: labels && Object.keys(labels).length > 0 ? { ...labels } : undefined,
    annotations: Object.keys(visible).length > 0 ? visible : undefined,
  })
  return Object.keys(metadata).length === 0 ? undefined : metadata
}

/** Drops members whose value is undefined, so that the Go template of a patch can test whether a member exists. */
function withoutUndefined(members: { readonly [name: string]: Json | readonly string[] | undefined }): JsonObject {
  const defined: JsonObject = {}
  for (const [name, value] of Object.entries(members)) if (value !== undefined) defined[name] = value as Json
  return defined
}
