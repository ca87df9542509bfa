/** References of v1beta2 to provider objects. Older versions show them with an apiVersion, which the CRD determines. */
import { type GroupKind, isRecord } from '@capstan/kube'

/** Returns the group and kind of every such reference in the object, without duplicates. */
export function referencesOf(object: unknown): readonly GroupKind[] {
  const spec = field(object, 'spec')
  const template = field(field(spec, 'template'), 'spec')
  const found = [spec, template].flatMap((one) => [
    field(one, 'infrastructureRef'),
    field(one, 'controlPlaneRef'),
    field(field(one, 'bootstrap'), 'configRef'),
  ])
  const references = new Map<string, GroupKind>()
  for (const one of found) {
    if (!isRecord(one) || Object.keys(one).length === 0) continue
    const { apiGroup: group = '', kind = '' } = one as { apiGroup?: string; kind?: string }
    references.set(`${kind}.${group}`, { group, kind })
  }
  return [...references.values()]
}

const field = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined)
