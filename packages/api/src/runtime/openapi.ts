/**
 * Generates the OpenAPI document of hooks, for authors of extensions in any language. The same hooks always lead to the same document.
 * Upstream: hack/tools/runtime-openapi-gen/openapi.go, v1.14.
 */
import type { JSONSchema } from '@capstan/kube'
import type { Hook } from './hook.ts'
import { hookApiVersion, hookPath, HooksGroup } from './hook.ts'
import { withSharedComponents } from './openapi-components.ts'

/** Go packages of upstream's types. Code generators derive type names from them. */
const upstreamPackage = 'sigs.k8s.io.cluster-api.api.runtime.hooks'
const upstreamCore = 'sigs.k8s.io.cluster-api.api.core.v1beta2'

export interface OpenApiDocument {
  readonly openapi: '3.0.0'
  readonly info: object
  readonly paths: { readonly [path: string]: object }
  readonly components: { readonly schemas: { readonly [name: string]: JSONSchema } }
}

/** Returns the OpenAPI document of hooks. `version` is the release with these hooks, such as `v1.14.0`. */
export function hooksOpenApi(hooks: readonly Hook[], version: string): OpenApiDocument {
  const sorted = [...hooks].sort((a, b) => (openApiPath(a) < openApiPath(b) ? -1 : 1))
  return {
    openapi: '3.0.0',
    info: {
      title: 'Cluster API - Runtime SDK',
      version,
      description: 'Hooks that providers call on extension servers: one path for each hook, POST with JSON in both directions.',
      license: { name: 'Apache 2.0', url: 'http://www.apache.org/licenses/LICENSE-2.0.html' },
    },
    paths: Object.fromEntries(sorted.map((hook) => [openApiPath(hook), pathItem(hook)])),
    components: {
      schemas: withSharedComponents(
        new Map(
          sorted.flatMap((hook) => [
            [componentName(hook, 'Request'), publishedSchema(hook.request.json, new Map())] as const,
            ...responseComponents(hook),
          ]),
        ),
      ),
    },
  }
}

const openApiPath = (hook: Hook): string => hookPath(hook, '{name}')

function pathItem(hook: Hook): object {
  const content = (message: 'Request' | 'Response') => ({
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${componentName(hook, message)}` } } },
  })
  return {
    post: {
      tags: [hook.tag],
      operationId: operationId(hook),
      summary: hook.name,
      description: hook.doc,
      ...(hook.deprecated ? { deprecated: true } : {}),
      ...(hook.singleton
        ? {}
        : {
            parameters: [
              { name: 'name', in: 'path', required: true, schema: { type: 'string' }, description: 'Name of the handler.' },
            ],
          }),
      requestBody: content('Request'),
      responses: { '200': { description: 'OK', ...content('Response') } },
    },
  }
}

/** Returns an operation id such as `hooksRuntimeClusterV1alpha1BeforeClusterCreate`. */
function operationId({ group, version, name }: Hook): string {
  const [first = '', ...rest] = group.replace(/\.x-k8s\.io$/, '').split('.')
  return [first, ...[...rest, version, name].map((part) => part.charAt(0).toUpperCase() + part.slice(1))].join('')
}

const componentName = (hook: Hook, message: 'Request' | 'Response'): string =>
  `${hook.group === HooksGroup ? `${upstreamPackage}.${hook.version}` : hookApiVersion(hook).replaceAll('/', '.')}.${hook.name}${message}`

/** Returns the components of a response: its schema, and the recursive schemas that it refers to. */
function responseComponents(hook: Hook): (readonly [string, JSONSchema])[] {
  const { definitions = {}, ...response } = hook.response.json
  const prefix = hook.group === HooksGroup ? upstreamCore : hookApiVersion(hook).replaceAll('/', '.')
  const components = Object.entries(definitions).map(([name, schema]) => [name, schema, `${prefix}.${name}`] as const)
  const refs: Refs = new Map<string | JSONSchema, string>([
    ...components.map(([name, , as]) => [`#/definitions/${name}`, as] as const),
    ...components.map(([, schema, as]) => [schema, as] as const),
  ])
  return [
    [componentName(hook, 'Response'), publishedSchema(response, refs)],
    // Passes a copy of each schema, because the schema itself would be replaced with a reference.
    ...components.map(([, schema, as]) => [as, publishedSchema({ ...schema }, refs)] as const),
  ]
}

/** Maps a recursive schema, and a reference to it, to the name of its component. */
type Refs = ReadonlyMap<string | JSONSchema, string>

/** Returns a schema without keywords that only API servers understand. Recursive schemas become references to components. */
function publishedSchema(schema: JSONSchema, refs: Refs): JSONSchema {
  const component = refs.get(schema.$ref ?? schema)
  if (component !== undefined) return { $ref: `#/components/schemas/${component}` }
  if (schema['x-kubernetes-int-or-string']) return { format: 'int-or-string', anyOf: [{ type: 'integer' }, { type: 'string' }] }
  const published = Object.entries(schema).filter(([name]) => !name.startsWith('x-kubernetes-'))
  return Object.fromEntries(published.map(([name, value]) => [name, publishedValue(name, value, refs)])) as JSONSchema
}

function publishedValue(name: string, value: unknown, refs: Refs): unknown {
  const published = (schema: JSONSchema) => publishedSchema(schema, refs)
  if (name === 'properties') {
    const fields = Object.entries(value as Record<string, JSONSchema>).sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(fields.map(([field, schema]) => [field, published(schema)]))
  }
  if (name === 'items' || name === 'not' || (name === 'additionalProperties' && typeof value === 'object')) {
    return published(value as JSONSchema)
  }
  return name === 'allOf' || name === 'anyOf' || name === 'oneOf' ? (value as JSONSchema[]).map(published) : value
}
