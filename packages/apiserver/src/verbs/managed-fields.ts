/** Who owns which field: the books that every write keeps. */
import {
  type JSONSchema,
  type KubeObject,
  type ManagedFieldsContext,
  parseApiVersion,
  resetFields,
  type UnknownObject,
  updateManagedFields,
} from '@capstan/kube'
import { inVersion } from '../registry/definition.ts'
import type { Call, Plane } from './plane.ts'

/** Brings the ownership in a draft up to date with what a write that is not an apply changed. */
export function trackFields(plane: Plane, call: Call, object: UnknownObject, old: UnknownObject | undefined): UnknownObject {
  updateManagedFields(old, object, managedFieldsContext(plane, call))
  return object
}

export function managedFieldsContext(
  { registry, clock }: Plane,
  { definition, request: { subresource }, options, caller }: Call,
): ManagedFieldsContext {
  return {
    apiVersion: definition.apiVersion,
    schema: definition.schema,
    manager: (options.fieldManager || caller.agent || 'unknown').slice(0, MaxManager),
    ...(subresource === undefined ? {} : { subresource }),
    ignored: resetFields({
      ...(subresource === 'status' ? { subresource } : {}),
      hasStatusSubresource: definition.statusSubresource,
    }),
    now: clock.now(),
    ...(definition.builtin ? { blank: blankOf(definition.schema) } : {}),
    convert(object: KubeObject, apiVersion: string) {
      const { group, version } = parseApiVersion(apiVersion)
      const other = group === definition.group ? registry.find(group, version, definition.plural) : undefined
      return other && { object: inVersion(other, object), schema: other.schema }
    },
  }
}

/** Upstream: Go types of built-in kinds have these two whether they are set or not. */
const blankOf = ({ properties = {} }: JSONSchema): object => ({
  ...(properties.spec ? { spec: {} } : {}),
  ...(properties.status ? { status: {} } : {}),
})

/** Upstream: FieldManagerNameMaxLength, in bytes. */
const MaxManager = 128
