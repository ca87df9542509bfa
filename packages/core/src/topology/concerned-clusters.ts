/** Maps objects of providers to the Clusters whose topology they concern. */
import { Cluster } from '@capstan/api'
import type { MapFunction } from '@capstan/controller'
import { ownerOfKind } from '@capstan/kube'
import { classesOfTemplate } from '../clusterclass/indexes.ts'
import { clustersOfClass } from '../indexes.ts'

/**
 * Maps a provider's object to the Cluster that owns it, and to the Clusters whose class refers to it. One function returns both, because
 * only the first watch of a kind takes effect, and Clusters may own some objects of a kind while classes refer to others.
 */
export const concernedClusters: MapFunction = (object, cache) => {
  const owner = ownerOfKind(object, Cluster)
  const owning =
    owner && object.metadata.namespace !== undefined ? [{ namespace: object.metadata.namespace, name: owner.name }] : []
  return [...owning, ...classesOfTemplate(cache, object).flatMap((clusterClass) => clustersOfClass(cache, clusterClass))]
}
