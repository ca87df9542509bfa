/** Generates random objects of a declared kind from its schema, to test round trips and to compare conversions with those of upstream. */
import { type DeclaredKind, type JSONSchema, typeMeta } from '@capstan/kube'
import fc from 'fast-check'

const key = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/)
const name = fc.stringMatching(/^[a-z]([-a-z0-9]{0,8}[a-z0-9])?$/)
const text = fc.oneof(name, fc.string({ minLength: 1, maxLength: 12 }), fc.constantFrom('<a & b>', 'ä', '1.2.3'))
const labels = fc.dictionary(name, text, { maxKeys: 2 })

/** Returns an arbitrary of fast-check that generates objects of a kind. */
export const objectsOf = (kind: DeclaredKind): fc.Arbitrary<any> => {
  const { spec, status } = kind.schema.properties ?? {}
  return fc.record(
    {
      apiVersion: fc.constant(typeMeta(kind).apiVersion),
      kind: fc.constant(kind.kind),
      metadata: fc.record(
        { name, namespace: name, labels, annotations: labels, finalizers: fc.array(name, { maxLength: 1 }) },
        { requiredKeys: ['name'] },
      ),
      ...(spec ? { spec: valuesOf(spec, 'spec') } : {}),
      ...(status ? { status: valuesOf(status, 'status') } : {}),
    },
    { requiredKeys: ['apiVersion', 'kind', 'metadata', ...(spec ? (['spec'] as const) : [])] as never },
  )
}

/** Fields of JSONSchemaProps with nested schemas, which the CustomResourceDefinitions declare as any JSON. */
const schemaMaps = new Set(['properties'])
const schemaFields = new Set(['items', 'additionalProperties', 'not'])
const schemaLists = new Set(['allOf', 'oneOf', 'anyOf'])

/** Generates values of a schema. `field` is the name of the field, which determines the form of some texts, such as timeouts. */
function valuesOf(schema: JSONSchema, field: string, depth = 0): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema['x-kubernetes-int-or-string'] && schema.anyOf) return fc.oneof(fc.nat({ max: 50 }), fc.constantFrom('10%', '3', ''))
  switch (schema.type) {
    case 'object':
      return schema.properties ? structs(schema, field, depth) : maps(schema, field, depth)
    case 'array':
      return lists(schema, field, depth)
    case 'string':
      return strings(schema, field)
    case 'integer':
      return fc.oneof(
        { weight: 1, arbitrary: fc.constant(Math.max(0, schema.minimum ?? 0)) },
        {
          weight: 3,
          arbitrary: fc.integer({
            min: schema.minimum ?? 0,
            max: schema.maximum ?? (schema.format === 'int64' ? 2 ** 40 : 2 ** 31 - 1),
          }),
        },
      )
    case 'boolean':
      return fc.boolean()
    case 'number':
    case undefined:
  }
  return anything
}

/**
 * Generates JSON values with at most one level of nesting, but not null, -0, or values whose text contains an `e`, such as booleans and
 * numbers with an exponent.
 */
const anything = fc
  .jsonValue({ maxDepth: 1 })
  .filter((value) => value !== null && !Object.is(value, -0) && JSON.stringify(value).indexOf('e') < 0)

function structs(schema: JSONSchema, field: string, depth: number): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], minProperties = 0 } = schema
  // Only JSONSchemaProps, the type of the schemas of ClusterClass variables, has a field of this name.
  const isSchema = 'x-kubernetes-preserve-unknown-fields' in properties
  const shape: { [name: string]: fc.Arbitrary<unknown> } = {}
  for (const [name, property] of Object.entries(properties)) {
    const nested = isSchema && (schemaMaps.has(name) || schemaFields.has(name) || schemaLists.has(name))
    if (nested && depth > MaxSchemaDepth) continue
    const value = nested ? nestedSchemas(schema, name, field, depth + 2) : valuesOf(property, name, depth + 1)
    // Optional fields are less frequent at greater depth, so that objects stay small.
    shape[name] = required.includes(name) ? value : optionally(value, depth < 2 ? 1 : nested ? 8 : 2)
  }
  const present = fc
    .record(shape)
    .map((value) => Object.fromEntries(Object.entries(value).filter(([, member]) => member !== absent)))
  return minProperties === 0 ? present : present.filter((value) => Object.keys(value).length >= minProperties)
}

const absent = Symbol('absent')
const MaxSchemaDepth = 9

const optionally = (value: fc.Arbitrary<unknown>, absentWeight: number): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: absentWeight, arbitrary: fc.constant(absent) }, { weight: 1, arbitrary: value })

function nestedSchemas(schema: JSONSchema, name: string, field: string, depth: number): fc.Arbitrary<unknown> {
  const inner = structs(schema, field, depth)
  if (schemaFields.has(name)) return inner
  return schemaMaps.has(name)
    ? fc.dictionary(key, inner, { minKeys: 1, maxKeys: 2 })
    : fc.array(inner, { minLength: 1, maxLength: 2 })
}

function maps({ additionalProperties, minProperties = 0 }: JSONSchema, field: string, depth: number): fc.Arbitrary<unknown> {
  const value = typeof additionalProperties === 'object' ? valuesOf(additionalProperties, field, depth + 1) : text
  return fc.dictionary(name, value, { minKeys: minProperties, maxKeys: minProperties + 2 })
}

function lists(schema: JSONSchema, field: string, depth: number): fc.Arbitrary<unknown> {
  const { items = {}, minItems = 0 } = schema
  const keys = schema['x-kubernetes-list-map-keys'] ?? ['name', 'from', 'type'].filter((key) => items.properties?.[key])
  const item = valuesOf(items, field, depth + 1)
  const size = { minLength: minItems, maxLength: minItems + 2 }
  if (keys.length === 0) return fc.array(item, size)
  const selector = (value: unknown) => JSON.stringify(keys.map((key) => (value as { [key: string]: unknown })[key]))
  return fc.uniqueArray(item, { ...size, selector })
}

function strings({ format, pattern, minLength = 0 }: JSONSchema, field: string): fc.Arbitrary<string> {
  if (format === 'date-time')
    return fc
      .date({ min: new Date('1970-01-02T00:00:00Z'), max: new Date('2100-01-01T00:00:00Z'), noInvalidDate: true })
      .map((date) => `${date.toISOString().slice(0, 19)}Z`)
  if (format === 'byte') return fc.constantFrom('Y2E=', 'YWJj')
  if (/timeout$/i.test(field)) return fc.constantFrom('0s', '10s', '10m0s', '1h30m0s', '1.5s', '-1m0s', '700000h0m0s', '250ms')
  if (field === 'apiVersion')
    return fc.constantFrom('infrastructure.cluster.x-k8s.io/v1beta1', 'controlplane.example.com/v1', ...(pattern ? [] : ['v1']))
  if (field === 'apiGroup') return fc.constantFrom('infrastructure.cluster.x-k8s.io', 'example.com')
  if (field === 'unhealthyInRange') return fc.constant('[1-3]')
  if (pattern || /name$/i.test(field)) return name
  return minLength === 0 ? fc.oneof(text, fc.constant('')) : text
}
