/** Combines the selectors of a request into one predicate. */
import {
  badRequest,
  type KubeObject,
  matchesFields,
  parseFieldSelector,
  parseLabelSelector,
  type RequestOptions,
  type UnknownObject,
} from '@capstan/kube'
import type { ResourceInfo } from '../../registry/resource-info.ts'

export type Selection = (object: KubeObject) => boolean

/**
 * Returns a predicate for the selectors of a request; `undefined` when the request has none.
 *
 * @throws StatusError BadRequest when a selector is invalid, or selects by a field that the resource does not support
 */
export function selectionOf(info: ResourceInfo, { labelSelector, fieldSelector }: RequestOptions): Selection | undefined {
  const labels = labelSelector ? parseLabelSelector(labelSelector) : undefined
  const fields = fieldSelector ? parseFieldSelector(fieldSelector) : []
  for (const { field } of fields) if (!supportsField(info, field)) throw unknownField(info, field)
  if (!labels && fields.length === 0) return undefined
  return (object) =>
    (labels === undefined || labels.matches(object.metadata.labels)) &&
    matchesFields(fields, (field) => fieldOf(info, object, field))
}

const supportsField = ({ namespaced, selectableFields: fields }: ResourceInfo, field: string): boolean =>
  field === 'metadata.name' || (field === 'metadata.namespace' && namespaced) || Object.hasOwn(fields, field)

function fieldOf({ selectableFields: fields }: ResourceInfo, object: KubeObject, field: string): string {
  if (field === 'metadata.name') return object.metadata.name
  if (field === 'metadata.namespace') return object.metadata.namespace ?? ''
  return fields[field]?.(object as UnknownObject) ?? ''
}

/**
 * Error for an unsupported field, with upstream's text: that of the kind if it has one; for other built-in kinds without selectable
 * fields, the default text of apimachinery; for all other kinds, including custom resources, `field label not supported`.
 */
const unknownField = ({ builtin, selectableFields: fields, unknownFieldSelector: text }: ResourceInfo, field: string) =>
  badRequest(
    text
      ? text(field)
      : builtin && Object.keys(fields).length === 0
        ? `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
        : `field label not supported: ${field}`,
  )
