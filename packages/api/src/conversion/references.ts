/**
 * Finds the references that have an apiVersion in older versions, but only an API group in v1beta2: `infrastructureRef`, `controlPlaneRef`
 * and `bootstrap.configRef`. The conversion to an older version takes the apiVersion from the CustomResourceDefinition of the provider object.
 */
import { type GroupKind, isRecord } from '@capstan/kube'

/** Returns the groups and kinds of these references in the spec of an object and in its Machine template, without duplicates. */
export function referencesOf(object: unknown): readonly GroupKind[] {
  const spec = field(object, 'spec')
  const template = field(field(spec, 'template'), 'spec')
  const values = [spec, template].flatMap((holder) => [
    field(holder, 'infrastructureRef'),
    field(holder, 'controlPlaneRef'),
    field(field(holder, 'bootstrap'), 'configRef'),
  ])
  const references = new Map<string, GroupKind>()
  for (const reference of values) {
    if (!isRecord(reference) || Object.keys(reference).length === 0) continue
    const { apiGroup: group = '', kind = '' } = reference as { apiGroup?: string; kind?: string }
    references.set(`${kind}.${group}`, { group, kind })
  }
  return [...references.values()]
}

const field = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined)
