import { ReplicasManagedByAnnotation } from './well-known.ts'

/** Whether the replicas of an object are managed externally, according to its annotation. Upstream: util/annotations, v1.14. */
export function areReplicasManagedExternally({
  metadata,
}: {
  readonly metadata: { readonly annotations?: { readonly [key: string]: string } }
}): boolean {
  const value = metadata.annotations?.[ReplicasManagedByAnnotation]
  return value !== undefined && value !== 'false'
}
