/** A map function that several files of this folder share. */
import { Cluster } from '@capstan/api'
import type { MapFunction } from '@capstan/controller'
import { ownerOfKind } from '@capstan/kube'
import { classesOfTemplate } from '../clusterclass/indexes.ts'
import { clustersOfClass } from '../indexes.ts'

/**
 * Maps a provider's object to Clusters: its owner, and Clusters whose class refers to it. One function for all kinds, because only the
 * first watch of a kind takes effect, and a kind may have objects of both sorts.
 */
export const concernedClusters: MapFunction = (object, cache) => {
  const owner = ownerOfKind(object, Cluster)
  const owning =
    owner && object.metadata.namespace !== undefined ? [{ namespace: object.metadata.namespace, name: owner.name }] : []
  return [...owning, ...classesOfTemplate(cache, object).flatMap((clusterClass) => clustersOfClass(cache, clusterClass))]
}
