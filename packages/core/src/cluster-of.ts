import { Cluster } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { keyText, type KubeObject, orAbsent } from '@capstan/kube'

/**
 * Returns the Cluster that `spec.clusterName` of an object names.
 * @throws Error when the Cluster does not exist, since the object cannot be reconciled without it
 */
export async function clusterOf(
  { kind, metadata, spec }: KubeObject & { spec: { clusterName: string } },
  { cache, client, signal }: Pick<ReconcileContext, 'cache' | 'client' | 'signal'>,
): Promise<Cluster> {
  const key = { namespace: metadata.namespace!, name: spec.clusterName }
  const cluster = cache.peek(Cluster, key) ?? (await orAbsent(client.get(Cluster, key, { signal })))
  if (cluster) return cluster
  throw new Error(`failed to get Cluster ${keyText(key)} of ${kind} ${metadata.name}: it does not exist`)
}
