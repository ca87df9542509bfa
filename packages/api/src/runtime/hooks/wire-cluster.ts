/** The Cluster in hook requests. Upstream: exp/topology/desiredstate, cleanupCluster, v1.14. */
import { draft, s } from '@capstan/kube'
import { Cluster } from '../../core/v1beta2/cluster.ts'
import { ConversionDataAnnotation, RetryHooksAnnotation, WaitingHooksAnnotation } from '../../core/well-known.ts'
import { onTheWire } from './wire-objects.ts'

/** A Cluster without its status. */
export type WireCluster = Omit<Cluster, 'status'>

export const wireCluster = s
  .of<WireCluster>(onTheWire(Cluster))
  .doc('The Cluster (cluster.x-k8s.io/v1beta2), without status and managed fields.')

/** Annotations of the Cluster that hook requests and variables of patches do not contain. */
export const hiddenAnnotations: readonly string[] = [
  'kubectl.kubernetes.io/last-applied-configuration',
  ConversionDataAnnotation,
  WaitingHooksAnnotation,
  RetryHooksAnnotation,
]

/** Returns the Cluster for a request: without status, managedFields and the hidden annotations. */
export function clusterOnTheWire({ apiVersion, kind, metadata, spec }: Cluster): WireCluster {
  const { managedFields: _, annotations, ...rest } = metadata
  const visible = Object.entries(annotations ?? {}).filter(([key]) => !hiddenAnnotations.includes(key))
  return draft({
    apiVersion,
    kind,
    metadata: { ...rest, ...(visible.length === 0 ? {} : { annotations: Object.fromEntries(visible) }) },
    spec,
  })
}
