/** Merges a CustomResourceDefinition with the one that the server already has, which another program may have installed. Pure. */
import type { CustomResourceDefinition, Input } from '@capstan/kube'

type Definition = Input<CustomResourceDefinition>

/**
 * Returns the spec to write for a kind that the server already has: our versions, followed by versions that only the existing CRD has, if
 * they are served or may have stored objects. If there are such versions and our CRD has no conversion, the existing conversion is kept.
 */
export function mergedSpec(own: Definition['spec'], existing: CustomResourceDefinition): Definition['spec'] {
  const ownNames = new Set(own.versions.map(({ name }) => name))
  const stored = new Set(existing.status?.storedVersions ?? [])
  const foreignVersions = existing.spec.versions
    .filter(({ name, served, storage }) => !ownNames.has(name) && (served || storage || stored.has(name)))
    .map((version) => ({ ...version, storage: false }))
  const { conversion } = existing.spec
  return {
    ...own,
    versions: [...own.versions, ...foreignVersions],
    ...(own.conversion === undefined && foreignVersions.length > 0 && conversion ? { conversion } : {}),
  }
}
