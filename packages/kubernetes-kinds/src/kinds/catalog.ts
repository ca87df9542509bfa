/**
 * Data of a real server about the built-in kinds: discovery, OpenAPI schemas and table columns. scripts/tools/builtin-kinds.ts writes it to
 * `schemas/`. Field validation, discovery, OpenAPI, tables, server-side apply and strategic merge patch are derived from this data. It is
 * read on first use, once for all servers of a process.
 */
import { readFileSync } from 'node:fs'
import type { JSONSchema } from '@capstan/kube'
import type { Subresource } from '@capstan/apiserver/kinds'
import { goFields } from './go-fields.ts'

/** A schema as published by OpenAPI v3, with references to other schemas by name. */
export interface Component extends Omit<JSONSchema, 'allOf' | 'oneOf' | 'items' | 'properties' | 'additionalProperties'> {
  $ref?: string
  allOf?: Component[]
  oneOf?: Component[]
  items?: Component
  properties?: { [name: string]: Component }
  additionalProperties?: Component | boolean
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
}

/** A resource as in discovery. */
export interface ResourceRecord {
  readonly kind: string
  readonly singular: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly Subresource[]
}

const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`schemas/${name}.json`, import.meta.url), 'utf8'))

let records: { readonly [groupVersion: string]: { readonly [plural: string]: ResourceRecord } } | undefined
const files = new Map<string, { readonly [name: string]: Component }>()
const resolved = new Map<string, JSONSchema>()

/** Returns the discovery data of a resource. @throws TypeError for a resource that the data lacks */
export function recordOf(groupVersion: string, plural: string): ResourceRecord {
  records ??= read('resources') as NonNullable<typeof records>
  const record = records[groupVersion]?.[plural]
  if (!record) throw new TypeError(`no built-in resource ${plural} in ${groupVersion}`)
  return record
}

/** A table column of a resource, other than `Name`, `Age` and `Created At`. */
export interface RecordedColumn {
  readonly name: string
  readonly type: string
  readonly description: string
  readonly format?: string
  readonly priority?: number
}

/** Returns the table columns of a resource, without `Name`, `Age` and `Created At`. */
export function recordedColumns(groupVersion: string, plural: string): readonly RecordedColumn[] {
  columns ??= read('columns') as NonNullable<typeof columns>
  return columns[`${groupVersion}/${plural}`] ?? []
}
let columns: { readonly [resource: string]: readonly RecordedColumn[] } | undefined

/**
 * Returns the published schema with a name such as `io.k8s.api.core.v1.Pod`; `undefined` if its group has no such schema.
 * @throws Error if there are no schemas of its group
 */
export function componentOf(name: string): Component | undefined {
  const [, , project = '', group = ''] = name.split('.')
  const file = project === 'api' ? group : project
  let schemas = files.get(file)
  if (!schemas) files.set(file, (schemas = read(file) as { readonly [name: string]: Component }))
  return schemas[name]
}

/** Returns the name of the published schema of a kind. */
export function componentName(group: string, version: string, kind: string): string {
  switch (group) {
    case 'apiextensions.k8s.io':
      return `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.${version}.${kind}`
    case 'apiregistration.k8s.io':
      return `io.k8s.kube-aggregator.pkg.apis.apiregistration.${version}.${kind}`
    default:
      return `io.k8s.api.${group === '' ? 'core' : group.split('.')[0]!}.${version}.${kind}`
  }
}

/** Returns the named schemas and all schemas that they refer to, by name. */
export function closureOf(names: Iterable<string>): Map<string, Component> {
  const components = new Map<string, Component>()
  const visit = (name: string): void => {
    if (components.has(name)) return
    const component = componentOf(name)
    if (!component) throw new TypeError(`no built-in schema ${name}`)
    components.set(name, component)
    for (const reference of referencesOf(component)) visit(reference)
  }
  for (const name of names) visit(name)
  return components
}

function* referencesOf({ $ref, allOf = [], items, properties = {}, additionalProperties }: Component): Iterable<string> {
  if ($ref !== undefined) yield nameIn($ref)
  const innerSchemas = [...allOf, ...Object.values(properties)]
  if (items) innerSchemas.push(items)
  if (typeof additionalProperties === 'object') innerSchemas.push(additionalProperties)
  for (const inner of innerSchemas) yield* referencesOf(inner)
}

/**
 * Returns the schema with which objects of a built-in kind are defaulted and pruned. Its defaults are the published ones, except zero values
 * (0, false and the empty string) that Go's encoder omits. It has no `required` and `enum`, because the validation of each kind checks them.
 * Several schemas may contain the same schema object.
 */
export function schemaNamed(name: string): JSONSchema {
  let schema = resolved.get(name)
  if (schema) return schema
  const component = componentOf(name)
  if (!component) throw new TypeError(`no built-in schema ${name}`)
  // Registered before its content is resolved, because schemas can refer to themselves.
  schema = special[name] ?? {}
  resolved.set(name, schema)
  return special[name] ? schema : Object.assign(schema, withoutZeroDefaults(name, resolve(component)))
}

/** Removes zero defaults of fields that Go's encoder omits when they are zero, and keeps their value as `x-capstan-zero`. */
function withoutZeroDefaults(name: string, schema: JSONSchema): JSONSchema {
  const go = goFields(name)
  for (const [field, { default: value, ...otherKeywords }] of Object.entries(schema.properties ?? {})) {
    const isZero = value === 0 || value === '' || value === false
    if (isZero && go.get(field) === 'omitted') schema.properties![field] = { ...otherKeywords, 'x-capstan-zero': value }
  }
  return schema
}

function resolve(component: Component): JSONSchema {
  const {
    $ref,
    allOf,
    items,
    properties,
    additionalProperties,
    required: _,
    enum: __,
    description: ___,
    oneOf,
    ...keywords
  } = component
  const target = targetOf({ ...($ref === undefined ? {} : { $ref }), ...(allOf ? { allOf } : {}) })
  if (target !== undefined) {
    const schema = schemaNamed(target)
    return Object.keys(keywords).length === 0 ? schema : { ...schema, ...keywords }
  }
  const schema: JSONSchema = keywords
  if (oneOf) schema['x-kubernetes-int-or-string'] = true
  if (items) schema.items = resolve(items)
  if (properties)
    schema.properties = Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, resolve(property)]))
  if (additionalProperties !== undefined) {
    schema.additionalProperties = typeof additionalProperties === 'object' ? resolve(additionalProperties) : additionalProperties
  }
  if (schema.type === 'object' && !properties && additionalProperties === undefined) {
    schema['x-kubernetes-preserve-unknown-fields'] = true
  }
  return schema
}

/**
 * Returns the zero value of a Go type in its JSON form: its structs, its scalars with a published zero default, and those lists and maps
 * that Go's encoder does not omit, as `null`. The field manager that creates an object does not own the fields that have these values.
 */
export function zeroValueOf(name: string): object {
  let zeroValue = zeroValues.get(name)
  if (zeroValue) return zeroValue
  zeroValue = {}
  zeroValues.set(name, zeroValue)
  const { properties = {}, required = [] } = componentOf(name) ?? {}
  const go = goFields(name)
  for (const [field, { $ref, allOf, type, default: defaultValue }] of Object.entries(properties)) {
    const target = $ref ?? allOf?.[0]?.$ref
    if (defaultValue === '' || defaultValue === 0 || defaultValue === false) Object.assign(zeroValue, { [field]: defaultValue })
    else if (isEmptyObject(defaultValue))
      Object.assign(zeroValue, { [field]: target === undefined ? {} : zeroValueOf(nameIn(target)) })
    else if (
      (required.includes(field) || go.get(field) === 'shown') &&
      defaultValue === undefined &&
      (type === 'array' || type === 'object')
    )
      Object.assign(zeroValue, { [field]: null })
  }
  return Object.freeze(zeroValue)
}
const zeroValues = new Map<string, object>()

const isEmptyObject = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Returns the name of the schema that a schema refers to, if it consists of a reference. */
export function targetOf({ $ref, allOf }: Component): string | undefined {
  const reference = $ref ?? allOf?.[0]?.$ref
  return reference === undefined ? undefined : nameIn(reference)
}

const nameIn = (reference: string): string => reference.slice('#/components/schemas/'.length)

/** Schemas that replace the published schemas of Go types with their own JSON form. */
const special: { readonly [name: string]: JSONSchema } = {
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { 'x-kubernetes-int-or-string': true },
  'io.k8s.apimachinery.pkg.runtime.RawExtension': {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    'x-kubernetes-map-type': 'atomic',
  },
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { 'x-kubernetes-int-or-string': true, format: 'quantity' },
}
