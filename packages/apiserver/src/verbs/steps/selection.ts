/** The selectors of a request, as one question about an object. */
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
 * `undefined` when everything is meant.
 *
 * @throws StatusError BadRequest when a selector cannot be read, or asks for a field that the resource does not offer
 */
export function selectionOf(info: ResourceInfo, { labelSelector, fieldSelector }: RequestOptions): Selection | undefined {
  const labels = labelSelector ? parseLabelSelector(labelSelector) : undefined
  const fields = fieldSelector ? parseFieldSelector(fieldSelector) : []
  for (const { field } of fields) if (!knowsField(info, field)) throw unknownField(info, field)
  if (!labels && fields.length === 0) return undefined
  return (object) =>
    (labels === undefined || labels.matches(object.metadata.labels)) &&
    matchesFields(fields, (field) => fieldOf(info, object, field))
}

const knowsField = ({ namespaced, selectableFields: fields }: ResourceInfo, field: string): boolean =>
  field === 'metadata.name' || (field === 'metadata.namespace' && namespaced) || Object.hasOwn(fields, field)

function fieldOf({ selectableFields: fields }: ResourceInfo, object: KubeObject, field: string): string {
  if (field === 'metadata.name') return object.metadata.name
  if (field === 'metadata.namespace') return object.metadata.namespace ?? ''
  return fields[field]?.(object as UnknownObject) ?? ''
}

/** Upstream: kinds with fields of their own say so in words of their own. */
const unknownField = ({ builtin, selectableFields: fields, unknownFieldSelector: text }: ResourceInfo, field: string) =>
  badRequest(
    text
      ? text(field)
      : builtin && Object.keys(fields).length === 0
        ? `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
        : `field label not supported: ${field}`,
  )
