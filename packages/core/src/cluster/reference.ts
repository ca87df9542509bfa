/** The objects that a Cluster refers to: its infrastructure and its control plane. */
import { Cluster, hasPausedAnnotation } from '@capstan/api'
import type { Index, MapFunction } from '@capstan/controller'
import { isDeleting, keyOf, ownerReference } from '@capstan/kube'
import { adopt } from '../external/adopt.ts'
import type { ContractRef } from '../external/get.ts'
import { type Observed, observed } from '../external/observed.ts'
import { observeExternal } from '../external/observe.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { ClusterIO, ClusterScope } from './scope.ts'

/** Reads a referenced object, and puts it under the Cluster. */
export async function observeReference({ cluster }: ClusterScope, io: ClusterIO, ref: ContractRef): Promise<Observed> {
  const { name, namespace } = cluster.metadata
  const external = await observeExternal(io, ref, namespace!, clustersOfReference)
  if (!external || hasPausedAnnotation(external.object)) return observed(external)
  const object = await adopt(io.client, external.kind, external.object, {
    // Upstream: the objects of a managed topology are the Cluster's own, others were made by people.
    owner: ownerReference(cluster, Cluster, cluster.spec.topology ? { controller: true } : {}),
    clusterName: name,
  })
  return observed({ ...external, object })
}

/** Clusters by what they refer to. */
const byReference: Index<Cluster> = {
  name: 'cluster by reference',
  kind: Cluster,
  values: ({ metadata, spec }) =>
    [spec.infrastructureRef, spec.controlPlaneRef].flatMap((ref) => (ref ? referenceText(ref, metadata.namespace) : [])),
}

const clustersOfReference: MapFunction = (object, cache) => cache.byIndex(byReference, referredText(object)).map(keyOf)

/** A topology is asked for, and the topology controller has not made its objects yet. */
export const awaitsTopology = ({ spec }: Cluster): boolean =>
  spec.topology !== undefined && (spec.infrastructureRef === undefined || spec.controlPlaneRef === undefined)

export const WaitingForTopology = 'Waiting for cluster topology to be reconciled'

/** What conditions say of a referenced object that is gone. */
export const deletedText = (cluster: Cluster, kind: string): string =>
  `${kind} has been deleted${isDeleting(cluster) ? '' : ' while the cluster still exists'}`
