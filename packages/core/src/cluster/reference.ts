/** Reads and adopts the objects that a Cluster refers to: its infrastructure and its control plane. */
import { Cluster, type ContractEndpoint, type ContractField, failureFields, isValidEndpoint } from '@capstan/api'
import type { Index, MapFunction } from '@capstan/controller'
import { controllerReference, isDeleting, keyOf, ownerReference } from '@capstan/kube'
import { adopt } from '../external/adopt.ts'
import { failureOf, setFailure } from '../external/failure.ts'
import type { ContractRef, External } from '../external/get.ts'
import { type Observed, readEndpoint, toObserved } from '../external/observed.ts'
import { observeExternal } from '../external/observe.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { ClusterIO, ClusterScope } from './scope.ts'

/**
 * Reads a referenced object. If it exists, makes the Cluster its owner, and copies its terminal failure to the Cluster. Returns the state of
 * the object.
 * @throws Error when one of these steps fails. As upstream, the state in the scope then stays `unread`
 */
export async function observeAndAdopt({ cluster }: ClusterScope, io: ClusterIO, ref: ContractRef): Promise<Observed> {
  const { name, namespace } = cluster.metadata
  const external = await observeExternal(io, ref, namespace!, clustersOfReference)
  if (!external) return toObserved(external)
  const object = await adopt(io, external.kind, external.object, {
    // As upstream, the Cluster is the controller only of objects of a managed topology: users may set another controller on their own objects.
    owner: cluster.spec.topology ? controllerReference(cluster, Cluster) : ownerReference(cluster, Cluster),
    clusterName: name,
  })
  const adopted = { ...external, object }
  setFailure(cluster, failureOf(adopted, failureFields))
  return toObserved(adopted)
}

/**
 * Copies the endpoint of a provider's object to a Cluster without a complete endpoint. As upstream, removes an incomplete endpoint from the
 * Cluster when the object has none.
 */
export function copyEndpoint({ spec }: Cluster, external: External, field: ContractField<ContractEndpoint>): void {
  if (isValidEndpoint(spec.controlPlaneEndpoint)) return
  const { host, port } = readEndpoint(external, field) ?? {}
  if (host || port) spec.controlPlaneEndpoint = { ...(host ? { host } : {}), ...(port ? { port } : {}) }
  else delete spec.controlPlaneEndpoint
}

/** Clusters by the objects that they refer to. */
const byReference: Index<Cluster> = {
  name: 'cluster by reference',
  kind: Cluster,
  values: ({ metadata, spec }) =>
    [spec.infrastructureRef, spec.controlPlaneRef].flatMap((ref) => (ref ? referenceText(ref, metadata.namespace) : [])),
}

const clustersOfReference: MapFunction = (object, cache) => cache.byIndex(byReference, referredText(object)).map(keyOf)

/** Whether the Cluster has a topology, and its reference to the infrastructure or to the control plane is not set yet. */
export const awaitsTopology = ({ spec }: Cluster): boolean =>
  spec.topology !== undefined && (spec.infrastructureRef === undefined || spec.controlPlaneRef === undefined)

/** Condition message while `awaitsTopology` holds for the Cluster; empty while the Cluster is being deleted. */
export const missingOfTopology = (cluster: Cluster): string =>
  isDeleting(cluster) ? '' : 'Waiting for cluster topology to be reconciled'

/** Condition message for a deleted referenced object. */
export const deletedText = (cluster: Cluster, kind: string): string =>
  `${kind} has been deleted${isDeleting(cluster) ? '' : ' while the cluster still exists'}`
