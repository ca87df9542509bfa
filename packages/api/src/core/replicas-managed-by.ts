import { ReplicasManagedByAnnotation } from './well-known.ts'

/**
 * Whether the replicas of an object are managed externally, for example by an autoscaler: it has the annotation
 * `cluster.x-k8s.io/replicas-managed-by` with a value other than `false`. Upstream: util/annotations, v1.14.
 */
export function areReplicasManagedExternally({
  metadata,
}: {
  readonly metadata: { readonly annotations?: { readonly [key: string]: string } }
}): boolean {
  const value = metadata.annotations?.[ReplicasManagedByAnnotation]
  return value !== undefined && value !== 'false'
}
