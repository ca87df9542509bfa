/**
 * OpenAPI v3 of one group version, as kubectl needs it for apply, create, edit and explain: the schema of each kind with its group, version
 * and kind, and the parameters and patch types of each path.
 */
import type { JSONSchema } from '@capstan/kube'
import { isStored, type Resource, type Resources } from '../../registry/resource.ts'
import { metaSchemas } from './openapi-meta.ts'

/** Part of a document: paths, and schemas by name. */
export interface OpenAPIPart {
  readonly paths: { readonly [path: string]: object }
  readonly schemas: { readonly [name: string]: object }
}

/** Members of the document besides paths and schemas. */
export const openAPIHead = { openapi: '3.0.0', info: { title: 'Kubernetes', version: 'unversioned' } }

/**
 * Yields the document of a group version in parts: first the schemas of built-in kinds and apimachinery, then for each resource its paths
 * and, if it is a custom resource, its schemas.
 * @param builtinSchemas returns the built-in schemas with the given names, and all schemas that they refer to
 */
export function* openAPIParts(resources: readonly Resource[], builtinSchemas: Resources['schemas']): Generator<OpenAPIPart> {
  yield { paths: {}, schemas: { ...Object.fromEntries(builtinSchemas(builtinNames(resources))), ...metaSchemas } }
  for (const resource of resources) {
    const schemas =
      resource.component === undefined
        ? { [schemaName(resource)]: kindSchema(resource), [`${schemaName(resource)}List`]: listSchema(resource) }
        : {}
    yield { paths: resourcePaths(resource), schemas }
  }
}

/** Returns the name of a kind's schema. The names of custom resources begin with the group's DNS labels in reverse order. */
const schemaName = ({ group, version, kind, component }: Resource): string =>
  component ?? `${group.split('.').reverse().join('.')}.${version}.${kind}`

function* builtinNames(resources: readonly Resource[]): Iterable<string> {
  for (const resource of resources) {
    if (resource.component === undefined) continue
    yield resource.component
    if (isStored(resource)) yield `${resource.component}List`
  }
}

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const ofMeta = (kind: keyof typeof metaSchemas) => reference(kind)

const groupVersionKind = ({ group, version }: Resource, kind: string) => ({ group, kind, version })

const typeFields = {
  apiVersion: {
    type: 'string',
    description: 'APIVersion names the group and version of the schema that this object is written in.',
  },
  kind: { type: 'string', description: 'Kind names the type of this object.' },
}

function kindSchema(resource: Resource): object {
  const { schema, kind } = resource
  return {
    ...publishedSchema(schema),
    type: 'object',
    properties: {
      ...publishedProperties(schema),
      ...typeFields,
      metadata: {
        allOf: [ofMeta('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')],
        description: 'Standard object metadata.',
        default: {},
      },
    },
    'x-kubernetes-group-version-kind': [groupVersionKind(resource, kind)],
  }
}

function listSchema(resource: Resource): object {
  return {
    type: 'object',
    description: `${resource.listKind} is a list of ${resource.kind}.`,
    required: ['items'],
    properties: {
      ...typeFields,
      items: { type: 'array', items: reference(schemaName(resource)) },
      metadata: { allOf: [ofMeta('io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta')], default: {} },
    },
    'x-kubernetes-group-version-kind': [groupVersionKind(resource, resource.listKind)],
  }
}

const publishedProperties = (schema: JSONSchema): object =>
  Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, field]) => [name, publishedSchema(field)]))

/** Returns a schema without its CEL rules. */
function publishedSchema(schema: JSONSchema): object {
  const published: Record<string, unknown> = { ...schema, 'x-kubernetes-validations': undefined }
  if (schema.properties) published.properties = publishedProperties(schema)
  if (schema.items) published.items = publishedSchema(schema.items)
  if (typeof schema.additionalProperties === 'object')
    published.additionalProperties = publishedSchema(schema.additionalProperties)
  return published
}

interface Operation {
  readonly method: string
  readonly action: string
  /** Names of query parameters. */
  readonly parameters: readonly string[]
  /** Media types of the request body. */
  readonly body?: readonly string[]
}

const bodyTypes = ['application/json', 'application/yaml']
const writeParameters = ['dryRun', 'fieldManager', 'fieldValidation']
const listParameters = [
  'labelSelector',
  'fieldSelector',
  'limit',
  'continue',
  'resourceVersion',
  'resourceVersionMatch',
  'timeoutSeconds',
]
const watchParameters = ['watch', 'allowWatchBookmarks', 'sendInitialEvents']
const deleteParameters = ['dryRun', 'gracePeriodSeconds', 'orphanDependents', 'propagationPolicy']

function resourcePaths(resource: Resource): OpenAPIPart['paths'] {
  const { group, version, plural, namespaced, builtin } = resource
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`
  const patchTypes = [
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/apply-patch+yaml',
    ...(builtin ? ['application/strategic-merge-patch+json'] : []),
  ]
  const patch: Operation = { method: 'patch', action: 'patch', parameters: [...writeParameters, 'force'], body: patchTypes }
  const put: Operation = { method: 'put', action: 'put', parameters: writeParameters, body: bodyTypes }
  const get: Operation = { method: 'get', action: 'get', parameters: [] }
  const list: Operation = { method: 'get', action: 'list', parameters: [...listParameters, ...watchParameters] }
  const post: Operation = { method: 'post', action: 'post', parameters: writeParameters, body: bodyTypes }
  // kubectl reads the patch operation of a kind to detect server-side field validation, and fails without one.
  if (!isStored(resource)) return { [collection]: pathItem(collection, [post, patch], resource) }
  const paths: { [path: string]: readonly Operation[] } = {
    [collection]: [
      list,
      post,
      ...(resource.verbs?.includes('deletecollection') === false
        ? []
        : [{ method: 'delete', action: 'deletecollection', parameters: [...listParameters, ...deleteParameters] }]),
    ],
    [`${collection}/{name}`]: [get, put, patch, { method: 'delete', action: 'delete', parameters: deleteParameters }],
  }
  if (namespaced) paths[`${root}/${plural}`] = [list]
  if (resource.statusSubresource) paths[`${collection}/{name}/status`] = [get, put, patch]
  if (resource.scale) paths[`${collection}/{name}/scale`] = [get, put, patch]
  return Object.fromEntries(Object.entries(paths).map(([path, operations]) => [path, pathItem(path, operations, resource)]))
}

function pathItem(path: string, operations: readonly Operation[], resource: Resource): object {
  const names = ['namespace', 'name'].filter((name) => path.includes(`{${name}}`))
  const entity = reference(schemaName(resource))
  const kind = path.endsWith('/scale')
    ? { group: 'autoscaling', version: 'v1', kind: 'Scale' }
    : groupVersionKind(resource, resource.kind)
  const content = (types: readonly string[], schema: object) => Object.fromEntries(types.map((type) => [type, { schema }]))
  const item: { [key: string]: unknown } = {
    parameters: names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
  }
  for (const { method, action, parameters, body } of operations) {
    item[method] = {
      operationId: operationID(action, path, resource),
      parameters: parameters.map((name) => ({ name, in: 'query', schema: { type: queryTypes[name] ?? 'string' } })),
      ...(body
        ? {
            requestBody: {
              required: true,
              content: content(body, method === 'patch' ? ofMeta('io.k8s.apimachinery.pkg.apis.meta.v1.Patch') : entity),
            },
          }
        : {}),
      responses: {
        '200': {
          description: 'OK',
          content: content(bodyTypes, action === 'list' ? reference(`${schemaName(resource)}List`) : entity),
        },
      },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': kind,
    }
  }
  return item
}

function operationID(action: string, path: string, { kind, namespaced }: Resource): string {
  const subresource = path.endsWith('/status') ? 'Status' : path.endsWith('/scale') ? 'Scale' : ''
  const scope = namespaced && !path.includes('{namespace}') ? 'ForAllNamespaces' : ''
  return `${action}${kind}${subresource}${scope}`
}

const queryTypes: { readonly [name: string]: string } = {
  limit: 'integer',
  timeoutSeconds: 'integer',
  gracePeriodSeconds: 'integer',
  watch: 'boolean',
  allowWatchBookmarks: 'boolean',
  sendInitialEvents: 'boolean',
  orphanDependents: 'boolean',
  force: 'boolean',
}
