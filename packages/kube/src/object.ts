/**
 * Reference from an object to an owner. The garbage collector deletes an object with owner references when each of its owners is deleted,
 * or is being deleted in the foreground. Deletion with the propagation policy `Orphan` removes the references to the deleted owner instead.
 */
export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  /** True on the one reference whose owner manages this object. */
  controller?: boolean
  /** True when foreground deletion of the owner must wait for this object. */
  blockOwnerDeletion?: boolean
}

/** One entry of managedFields: the fields that one manager has set with one operation, as the API server records them. */
export interface ManagedFieldsEntry {
  manager: string
  operation: 'Apply' | 'Update'
  apiVersion: string
  time?: string
  fieldsType: 'FieldsV1'
  fieldsV1: { [element: string]: unknown }
  subresource?: string
}

export interface ObjectMeta {
  name: string
  generateName?: string
  namespace?: string
  uid: string
  resourceVersion: string
  generation?: number
  creationTimestamp: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: { [key: string]: string }
  annotations?: { [key: string]: string }
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: ManagedFieldsEntry[]
  selfLink?: string
}

/** Any object of the Kubernetes API. Objects that a client returns are deeply frozen and shared: take a `draft` to change one. */
export interface KubeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
}

/** An object whose fields are known only at run time, such as a provider's. */
export interface UnknownObject extends KubeObject {
  [field: string]: unknown
}

export interface ListMeta {
  resourceVersion: string
  continue?: string
  remainingItemCount?: number
}

export interface ObjectList<T extends KubeObject = KubeObject> {
  apiVersion: string
  kind: string
  metadata: ListMeta
  items: T[]
}

/** Identifies one object of a kind. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectKey {
  readonly namespace?: string
  readonly name: string
}

export const keyOf = ({ metadata }: { metadata: { name: string; namespace?: string } }): ObjectKey =>
  metadata.namespace === undefined ? { name: metadata.name } : { namespace: metadata.namespace, name: metadata.name }

/** Text of a key in logs, queues and messages: `namespace/name`, or `name` for cluster-scoped objects. */
export const keyText = ({ namespace, name }: ObjectKey): string => (namespace ? `${namespace}/${name}` : name)

/** Parses the text that `keyText` returns. */
export const parseKey = (text: string): ObjectKey => {
  const slash = text.indexOf('/')
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

/** Splits `group/version`; the core group is the empty string. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

export const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? version : `${group}/${version}`

export const isDeleting = (object: { metadata: { deletionTimestamp?: string } }): boolean =>
  object.metadata.deletionTimestamp !== undefined
