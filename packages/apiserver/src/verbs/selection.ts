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
import type { Definition } from '../registry/definition.ts'

export type Selection = (object: KubeObject) => boolean

/**
 * `undefined` when everything is meant.
 *
 * @throws StatusError BadRequest when a selector cannot be read, or asks for a field that the resource does not offer
 */
export function selectionOf(definition: Definition, { labelSelector, fieldSelector }: RequestOptions): Selection | undefined {
  const labels = labelSelector ? parseLabelSelector(labelSelector) : undefined
  const fields = fieldSelector ? parseFieldSelector(fieldSelector) : []
  for (const { field } of fields) if (!knowsField(definition, field)) throw unknownField(definition, field)
  if (!labels && fields.length === 0) return undefined
  return (object) =>
    (labels === undefined || labels.matches(object.metadata.labels)) &&
    matchesFields(fields, (field) => fieldOf(definition, object, field))
}

const knowsField = ({ namespaced, fields }: Definition, field: string): boolean =>
  field === 'metadata.name' || (field === 'metadata.namespace' && namespaced) || Object.hasOwn(fields, field)

function fieldOf({ fields }: Definition, object: KubeObject, field: string): string {
  if (field === 'metadata.name') return object.metadata.name
  if (field === 'metadata.namespace') return object.metadata.namespace ?? ''
  return fields[field]?.(object as UnknownObject) ?? ''
}

/** Upstream: kinds with fields of their own say so in words of their own. */
const unknownField = ({ builtin, fields, unknownField: text }: Definition, field: string) =>
  badRequest(
    text
      ? text(field)
      : builtin && Object.keys(fields).length === 0
        ? `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
        : `field label not supported: ${field}`,
  )
