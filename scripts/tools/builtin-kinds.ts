/**
 * `node scripts/tools/builtin-kinds.ts URL TOKEN` reads the built-in kinds of a real kube-apiserver (v1.36.2, default flags) and writes
 * them to `packages/kubernetes-kinds/src/kinds/schemas`: `resources.json` lists the resources, one file per API group or Go module has
 * the schemas without descriptions, `types.ts` has them as TypeScript types, and `columns.json` has the columns of tables. The same server
 * always leads to the same files.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import type { JSONSchema } from '@capstan/kube'
import type { Component, ResourceRecord } from '../../packages/kubernetes-kinds/src/kinds/catalog.ts'
import { goFields, type Zero } from '../../packages/kubernetes-kinds/src/kinds/go-fields.ts'

const [server, token] = process.argv.slice(2)
if (server === undefined || token === undefined) throw new Error('usage: builtin-kinds.ts URL TOKEN')
const out = join(import.meta.dirname, '../../packages/kubernetes-kinds/src/kinds/schemas')

const discovery = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

/** OpenAPI paths that belong to no group version. */
const skippedPaths = /^(apis\/)?(api|apis|version|logs.*|openid.*|\.well-known.*)$/

interface Discovered {
  readonly items: readonly {
    readonly metadata: { readonly name?: string }
    readonly versions: readonly { readonly version: string; readonly resources: readonly DiscoveredResource[] }[]
  }[]
}
interface DiscoveredResource {
  readonly resource: string
  readonly responseKind: { readonly kind: string }
  readonly scope: string
  readonly singularResource: string
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly {
    readonly subresource: string
    readonly responseKind: { readonly group: string; readonly version: string; readonly kind: string }
    readonly verbs: readonly string[]
  }[]
}

const index = (await fetchJSON('/openapi/v3')) as { paths: { [path: string]: { serverRelativeURL: string } } }
const components = new Map<string, Component>()
for (const [path, { serverRelativeURL }] of Object.entries(index.paths)) {
  if (skippedPaths.test(path) || path.split('/').length < (path.startsWith('apis/') ? 3 : 2)) continue
  const document = (await fetchJSON(serverRelativeURL)) as { components: { schemas: { [name: string]: Component } } }
  for (const [name, schema] of Object.entries(document.components.schemas)) components.set(name, withoutDescriptions(schema))
}
const resources = Object.fromEntries(
  [await fetchJSON('/api'), await fetchJSON('/apis')]
    .flatMap((document) => (document as Discovered).items)
    .flatMap(({ metadata: { name = '' }, versions }) =>
      versions.map((served) => [name === '' ? served.version : `${name}/${served.version}`, served.resources] as const),
    )
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([version, list]) => [version, Object.fromEntries(list.map((resource) => [resource.resource, recordOf(resource)]))]),
)

const files = Map.groupBy(
  [...components].sort(([a], [b]) => (a < b ? -1 : 1)),
  ([name]) => fileOf(name),
)
mkdirSync(out, { recursive: true })
for (const file of readdirSync(out)) rmSync(join(out, file))
writeFileSync(join(out, 'resources.json'), oneLineEach(Object.entries(resources)))
for (const [file, schemas] of files) writeFileSync(join(out, `${file}.json`), oneLineEach(schemas))
writeFileSync(join(out, 'types.ts'), typesText())
writeFileSync(join(out, 'columns.json'), oneLineEach(await columns()))
process.stderr.write(`${components.size} schemas in ${files.size} files\n`)

/**
 * Returns the name of the file of a type, without extension: the part of the type's name for the API group, such as `rbac` for
 * `io.k8s.api.rbac.v1.Role`. For types outside of `k8s.io/api`, it is the name of their Go module, such as `apimachinery`.
 */
function fileOf(name: string): string {
  const [, , project = '', group = ''] = name.split('.')
  return project === 'api' ? group : project
}

function oneLineEach(entries: readonly (readonly [string, unknown])[]): string {
  return `{\n${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',\n')}\n}\n`
}

function recordOf(resource: DiscoveredResource): ResourceRecord {
  const { singularResource, shortNames, categories, subresources } = resource
  return {
    kind: resource.responseKind.kind,
    singular: singularResource,
    namespaced: resource.scope === 'Namespaced',
    verbs: resource.verbs,
    ...(shortNames ? { shortNames } : {}),
    ...(categories ? { categories } : {}),
    ...(subresources
      ? {
          subresources: subresources.map(({ subresource, responseKind, verbs }) => ({
            name: subresource,
            kind: responseKind,
            verbs,
          })),
        }
      : {}),
  }
}

function withoutDescriptions(schema: Component): Component {
  const { description: _, items, properties, additionalProperties, ...rest } = schema
  return {
    ...rest,
    ...(items ? { items: withoutDescriptions(items) } : {}),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: withoutDescriptions(additionalProperties) }
      : additionalProperties === undefined
        ? {}
        : { additionalProperties }),
    ...(properties
      ? { properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, withoutDescriptions(field)])) }
      : {}),
  }
}

/**
 * Generates types for the built-in kinds and their parts, with Go's names. If several types have the same name, those of version v1 in the
 * groups core, meta, networking and apps keep the name; the names of the others begin with API group or Go module, and version.
 */
function typesText(): string {
  const names = new Map<string, string>()
  for (const name of components.keys()) {
    const [version = '', kind = ''] = name.split('.').slice(-2)
    const isAmbiguous = [...components.keys()].filter((other) => other.endsWith(`.${kind}`)).length > 1
    const isPlain = !isAmbiguous || /\.(core|meta|networking|apps)\.v1\./.test(name)
    const group = fileOf(name).replace(/\W/g, '')
    names.set(
      name,
      isPlain ? kind : `${group[0]!.toUpperCase()}${group.slice(1)}${version[0]!.toUpperCase()}${version.slice(1)}${kind}`,
    )
  }
  const typeOf = (schema: Component): string => {
    const target = schema.$ref ?? schema.allOf?.[0]?.$ref
    if (target !== undefined) return names.get(target.split('/').at(-1)!)!
    if (schema.oneOf) return schema.oneOf.map(typeOf).join(' | ')
    switch (schema.type) {
      case 'integer':
      case 'number':
        return 'number'
      case 'boolean':
      case 'string':
        return schema.type
      case 'array':
        return `${/\W/.test(typeOf(schema.items!)) ? `(${typeOf(schema.items!)})` : typeOf(schema.items!)}[]`
      case 'object':
      case undefined:
    }
    if (schema.properties) return fieldsOf(schema)
    return `{ [key: string]: ${typeof schema.additionalProperties === 'object' ? typeOf(schema.additionalProperties) : 'unknown'} }`
  }
  // Required lists and maps are optional in the type: before validation an object can lack them.
  const isAlwaysPresent = (name: string, { type, default: value, properties }: Component, required: readonly string[]): boolean =>
    value !== undefined || (required.includes(name) && type !== 'array' && (type !== 'object' || properties !== undefined))
  const isZero = (value: unknown): boolean => value === '' || value === 0 || value === false
  const fieldsOf = ({ properties = {}, required = [] }: JSONSchema, go?: ReadonlyMap<string, Zero>): string =>
    `{\n${Object.entries(properties as { [name: string]: Component })
      .map(([name, field]) => {
        // The server omits a field whose default is also Go's zero value, if Go omits the zero value.
        const isOmitted = go?.get(name) === 'omitted' && isZero(field.default)
        return `  ${JSON.stringify(name)}${isAlwaysPresent(name, field, required) && !isOmitted ? '' : '?'}: ${typeOf(field)}`
      })
      .join('\n')}\n}`
  const declarations = [...components]
    .filter(([name]) => names.get(name) !== 'ObjectMeta')
    .sort(([a], [b]) => (names.get(a)! < names.get(b)! ? -1 : 1))
    .map(
      ([name, schema]) =>
        `export ${schema.properties ? `interface ${names.get(name)!} ${fieldsOf(schema, goFields(name))}` : `type ${names.get(name)!} = ${typeOf(schema)}`}\n`,
    )
  return `/**
 * Generated by scripts/tools/builtin-kinds.ts from the OpenAPI schemas of kube-apiserver: types of the built-in kinds and their parts. The
 * types describe objects after decoding and before validation: defaults are set, but required lists and maps may be missing.
 */
import type { ObjectMeta } from '@capstan/kube'
${declarations.join('')}`
}

/** Returns the columns of each resource that can be listed, without the columns Name, Age and Created At. */
async function columns(): Promise<[string, object][]> {
  const columnsByResource: [string, object][] = []
  for (const [version, list] of Object.entries(resources)) {
    for (const [plural, { verbs }] of Object.entries(list)) {
      if (!verbs.includes('list')) continue
      const path = `/${version === 'v1' ? 'api' : 'apis'}/${version}/${plural}`
      const { columnDefinitions } = (await fetchJSON(path, 'application/json;as=Table;v=v1;g=meta.k8s.io')) as {
        columnDefinitions: readonly { readonly name: string; readonly format: string; readonly priority: number }[]
      }
      const specificColumns = columnDefinitions.filter(({ name }) => !['Name', 'Age', 'Created At'].includes(name))
      const columns = specificColumns.map(({ format, priority, ...column }) => ({
        ...column,
        ...(format === '' ? {} : { format }),
        ...(priority === 0 ? {} : { priority }),
      }))
      if (columns.length > 0) columnsByResource.push([`${version}/${plural}`, columns])
    }
  }
  return columnsByResource
}

function fetchJSON(path: string, accept = discovery): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept }
    get(new URL(path, server), { headers, rejectUnauthorized: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        if (response.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(`${path}: ${response.statusCode} ${text}`))
      })
    }).on('error', reject)
  })
}
