/** Merges a CustomResourceDefinition with the one that another program installed before. Pure. */
import type { CustomResourceDefinition, Input } from '@capstan/kube'

type Definition = Input<CustomResourceDefinition>

/**
 * Returns the spec to write for a kind that the server already has: our versions, followed by the versions that only the existing CRD has
 * if they are served or may have stored objects. These keep their conversion when our CRD has none.
 */
export function mergedSpec(wanted: Definition['spec'], existing: CustomResourceDefinition): Definition['spec'] {
  const known = new Set(wanted.versions.map(({ name }) => name))
  const stored = new Set(existing.status?.storedVersions ?? [])
  const kept = existing.spec.versions
    .filter(({ name, served, storage }) => !known.has(name) && (served || storage || stored.has(name)))
    .map((version) => ({ ...version, storage: false }))
  const { conversion } = existing.spec
  return {
    ...wanted,
    versions: [...wanted.versions, ...kept],
    ...(wanted.conversion === undefined && kept.length > 0 && conversion ? { conversion } : {}),
  }
}
