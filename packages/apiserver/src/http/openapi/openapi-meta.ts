/** Schemas of apimachinery that the OpenAPI document of every group version contains. */

const text = (description: string) => ({ type: 'string', description })
const time = (description: string) => ({ type: 'string', format: 'date-time', description })
const textMap = (description: string) => ({ type: 'object', description, additionalProperties: { type: 'string' } })
const list = (description: string, items: object, extensions: object = {}) => ({
  type: 'array',
  description,
  items,
  ...extensions,
})
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const refTo = (kind: string) => ({ $ref: `#/components/schemas/${meta}.${kind}` })

export const metaSchemas = {
  [`${meta}.ObjectMeta`]: {
    type: 'object',
    description: 'Metadata of every stored object.',
    properties: {
      annotations: textMap('Arbitrary data of tools and libraries. It is not indexed, and selectors cannot match it.'),
      creationTimestamp: time('Time of the creation of the object. Set by the server.'),
      deletionGracePeriodSeconds: {
        type: 'integer',
        format: 'int64',
        description: 'Seconds for graceful termination after a deletion request. Set by the server.',
      },
      deletionTimestamp: time(
        'Time at which the object is to be deleted. Set by the server on a deletion request; finalizers delay the removal.',
      ),
      finalizers: list(
        'Must be empty before the object is removed. Each controller removes its own entry after its cleanup.',
        { type: 'string' },
        {
          'x-kubernetes-list-type': 'set',
          'x-kubernetes-patch-strategy': 'merge',
        },
      ),
      generateName: text('Prefix of a name that the server generates, used when name is empty.'),
      generation: { type: 'integer', format: 'int64', description: 'Counts changes of the desired state. Set by the server.' },
      labels: textMap('Keys and values by which selectors match objects.'),
      managedFields: list('Fields by owning manager, for server-side apply. Set by the server.', refTo('ManagedFieldsEntry'), {
        'x-kubernetes-list-type': 'atomic',
      }),
      name: text('Name of the object, unique within its kind and namespace. Cannot be changed.'),
      namespace: text('Namespace within which the name is unique. Cannot be changed.'),
      ownerReferences: list(
        'Objects on which this object depends. This object is deleted when all of them have been deleted.',
        refTo('OwnerReference'),
        {
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['uid'],
          'x-kubernetes-patch-merge-key': 'uid',
          'x-kubernetes-patch-strategy': 'merge',
        },
      ),
      resourceVersion: text('Opaque version of the object, for watches and optimistic concurrency.'),
      selfLink: text('Deprecated: the server no longer sets it.'),
      uid: text('Unique in time and space. Set by the server.'),
    },
  },
  [`${meta}.OwnerReference`]: {
    type: 'object',
    description: 'Reference to an owner of the object that contains the reference.',
    required: ['apiVersion', 'kind', 'name', 'uid'],
    properties: {
      apiVersion: text('API version of the owner.'),
      blockOwnerDeletion: { type: 'boolean', description: 'Foreground deletion of the owner waits for this object.' },
      controller: { type: 'boolean', description: 'The owner manages this object.' },
      kind: text('Kind of the owner.'),
      name: text('Name of the owner.'),
      uid: text('UID of the owner.'),
    },
    'x-kubernetes-map-type': 'atomic',
  },
  [`${meta}.ManagedFieldsEntry`]: {
    type: 'object',
    description: 'The fields that one manager owns.',
    properties: {
      apiVersion: text('Version of the resource to which the fields belong.'),
      fieldsType: text('Format of the fields: FieldsV1.'),
      fieldsV1: { description: 'The set of fields.', allOf: [refTo('FieldsV1')] },
      manager: text('Name of the manager.'),
      operation: text('Apply or Update.'),
      subresource: text('Subresource of the write; empty for the object itself.'),
      time: time('Time of the last change of the entry.'),
    },
  },
  [`${meta}.FieldsV1`]: { type: 'object', description: 'A set of fields as a tree, keyed by field names and list keys.' },
  [`${meta}.ListMeta`]: {
    type: 'object',
    description: 'Metadata of a list.',
    properties: {
      continue: text('Token of a request for the next page; empty on the last page.'),
      remainingItemCount: { type: 'integer', format: 'int64', description: 'Number of items after this page.' },
      resourceVersion: text('Revision of the store at which the list was read.'),
      selfLink: text('Deprecated: the server no longer sets it.'),
    },
  },
  [`${meta}.Patch`]: { type: 'object', description: 'A patch in the format of the content type.' },
}
