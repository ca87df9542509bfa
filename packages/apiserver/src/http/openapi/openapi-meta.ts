/** Schemas of apimachinery that all OpenAPI documents refer to. */

const text = (description: string) => ({ type: 'string', description })
const time = (description: string) => ({ type: 'string', format: 'date-time', description })
const texts = (description: string) => ({ type: 'object', description, additionalProperties: { type: 'string' } })
const list = (description: string, items: object, more: object = {}) => ({ type: 'array', description, items, ...more })
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const refTo = (kind: string) => ({ $ref: `#/components/schemas/${meta}.${kind}` })

export const metaSchemas = {
  [`${meta}.ObjectMeta`]: {
    type: 'object',
    description: 'What every stored object has: its names, its labels, and what the server keeps about it.',
    properties: {
      annotations: texts('Data of tools and libraries. It is not indexed and cannot be selected by.'),
      creationTimestamp: time('When the object was created. Set by the server.'),
      deletionGracePeriodSeconds: {
        type: 'integer',
        format: 'int64',
        description: 'Seconds the object has to end in good order once its deletion was asked for.',
      },
      deletionTimestamp: time(
        'When the object goes away. Set by the server once deletion was asked for; finalizers may hold the object longer.',
      ),
      finalizers: list(
        'What must be done before the object goes away; each controller takes its own entry off.',
        { type: 'string' },
        {
          'x-kubernetes-list-type': 'set',
          'x-kubernetes-patch-strategy': 'merge',
        },
      ),
      generateName: text('Prefix of a name that the server completes, used when name is empty.'),
      generation: { type: 'integer', format: 'int64', description: 'Counts changes of the desired state. Set by the server.' },
      labels: texts('Keys and values that objects are grouped and selected by.'),
      managedFields: list(
        'Which manager owns which fields, for server-side apply. Kept by the server.',
        refTo('ManagedFieldsEntry'),
        {
          'x-kubernetes-list-type': 'atomic',
        },
      ),
      name: text('Name of the object, unique among its kind and namespace. Cannot be changed.'),
      namespace: text('Namespace that the name is unique within. Cannot be changed.'),
      ownerReferences: list(
        'Objects that this one depends on: it is deleted when all of them are gone.',
        refTo('OwnerReference'),
        {
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['uid'],
          'x-kubernetes-patch-merge-key': 'uid',
          'x-kubernetes-patch-strategy': 'merge',
        },
      ),
      resourceVersion: text('Opaque version of the object, for watches and for detecting that somebody else wrote first.'),
      selfLink: text('No longer filled in.'),
      uid: text('Unique in time and space. Set by the server.'),
    },
  },
  [`${meta}.OwnerReference`]: {
    type: 'object',
    description: 'Points to an object that another depends on.',
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
      apiVersion: text('Version of the schema that the fields are named in.'),
      fieldsType: text('Format of the fields: FieldsV1.'),
      fieldsV1: { description: 'The set of fields.', allOf: [refTo('FieldsV1')] },
      manager: text('Name of the manager.'),
      operation: text('Apply or Update.'),
      subresource: text('Subresource that was written to, if any.'),
      time: time('When the entry last changed.'),
    },
  },
  [`${meta}.FieldsV1`]: { type: 'object', description: 'Fields as a trie: names and keys lead to what is below them.' },
  [`${meta}.ListMeta`]: {
    type: 'object',
    description: 'What a list has beside its items.',
    properties: {
      continue: text('Token to ask for the next page with; empty on the last one.'),
      remainingItemCount: { type: 'integer', format: 'int64', description: 'Items that follow this page.' },
      resourceVersion: text('Version of the store that the list shows.'),
      selfLink: text('No longer filled in.'),
    },
  },
  [`${meta}.Patch`]: { type: 'object', description: 'A patch in the format that the content type names.' },
}
