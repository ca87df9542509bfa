import { ReplicasManagedByAnnotation } from './well-known.ts'

/** Whether something other than its spec decides how many replicas an object has. Upstream: util/annotations, v1.14. */
export function areReplicasManagedExternally({
  metadata,
}: {
  readonly metadata: { readonly annotations?: { readonly [key: string]: string } }
}): boolean {
  const value = metadata.annotations?.[ReplicasManagedByAnnotation]
  return value !== undefined && value !== 'false'
}
