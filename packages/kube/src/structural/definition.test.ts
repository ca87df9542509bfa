import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { JSONSchema } from '../schema.ts'
import { validateStructural } from './definition.ts'

const path = 'spec.validation.openAPIV3Schema'
const errors = (schema: unknown) =>
  validateStructural(schema as JSONSchema, path).map(({ type, field, text }) => `${field} (${type}): ${text}`)

interface Step {
  request?: { method: string; body?: { spec?: { versions?: { schema?: { openAPIV3Schema?: JSONSchema } }[] } } }
  response?: { body?: { details?: { causes?: { reason: string; field: string; message: string }[] } } }
}
const { scenarios } = JSON.parse(readFileSync(new URL('testdata/crd-definition.json', import.meta.url), 'utf8')) as {
  scenarios: { name: string; steps: Step[] }[]
}

describe('a recorded schema gets the errors of the real server', () => {
  const steps = scenarios
    .flatMap((scenario) => scenario.steps)
    .filter(({ request, response }) => request?.method === 'POST' && response?.body)
  const cases = steps.flatMap(({ request, response }) =>
    (request!.body?.spec?.versions ?? [])
      .slice(0, 1)
      .flatMap(({ schema }) =>
        schema?.openAPIV3Schema ? [[JSON.stringify(schema.openAPIV3Schema), schema.openAPIV3Schema, response!] as const] : [],
      ),
  )
  test.each(cases)('%s', (_, schema, { body }) => {
    // Only errors about the schema, without those of CEL rules.
    const expected = (body?.details?.causes ?? [])
      .filter(
        ({ field, message }) =>
          field.startsWith(path) && !field.includes('x-kubernetes-validations') && !message.includes('x-kubernetes-validations'),
      )
      .map(({ reason, field, message }) => `${field} (${reason}): ${message}`)
    expect(errors(schema)).toEqual(expected)
  })
})

const objectWith = (spec: JSONSchema): JSONSchema => ({ type: 'object', properties: { spec } })
const specPath = `${path}.properties[spec]`

test.each<[string, unknown, string[]]>([
  [
    'a root without a type',
    { properties: {} },
    [`${path}.type (FieldValueRequired): Required value: must not be empty at the root`],
  ],
  [
    'additional properties at the root',
    { type: 'object', additionalProperties: { type: 'string' } },
    [`${path}.additionalProperties (FieldValueForbidden): Forbidden: must not be used at the root`],
  ],
  [
    'additional properties beside properties',
    objectWith({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } }),
    [
      `${specPath}.additionalProperties (FieldValueForbidden): Forbidden: additionalProperties and properties are mutual exclusive`,
    ],
  ],
  [
    'a default and a wrong type for a standard field',
    { type: 'object', properties: { kind: { type: 'integer', default: 1 } } },
    [
      `${path}.properties[kind].type (FieldValueInvalid): Invalid value: "integer": must be string`,
      `${path}.properties[kind].default (FieldValueForbidden): Forbidden: must not be set in top-level kind`,
    ],
  ],
  [
    'an array without items',
    objectWith({ type: 'array' }),
    [`${specPath}.items (FieldValueRequired): Required value: must be specified`],
  ],
  [
    'items without a type',
    objectWith({ type: 'array', items: {} }),
    [`${specPath}.items.type (FieldValueRequired): Required value: must not be empty for specified array items`],
  ],
  [
    'a type and a description in a junctor',
    objectWith({ type: 'object', anyOf: [{ type: 'object', description: 'x' }] }),
    [
      `${specPath}.anyOf[0].description (FieldValueForbidden): Forbidden: must be empty to be structural`,
      `${specPath}.anyOf[0].type (FieldValueForbidden): Forbidden: must be empty to be structural`,
    ],
  ],
  [
    'an invalid pattern',
    objectWith({ type: 'string', pattern: '(' }),
    [expect.stringContaining("must be a valid regular expression, but isn't: ") as never],
  ],
  [
    'an embedded resource without content',
    objectWith({ type: 'object', 'x-kubernetes-embedded-resource': true }),
    [
      `${specPath}.properties (FieldValueRequired): Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields`,
    ],
  ],
  [
    'a default with an unknown field',
    objectWith({ type: 'object', default: { zzz: 1 }, properties: { a: { type: 'string' } } }),
    [`${specPath}.default (FieldValueInvalid): Invalid value: {"zzz":1}: must not have unknown fields`],
  ],
  [
    'a default with an invalid member',
    objectWith({ type: 'object', default: { a: 1 }, properties: { a: { type: 'string' } } }),
    [`${specPath}.default.a (FieldValueTypeInvalid): Invalid value: "integer": a in body must be of type string: "integer"`],
  ],
  [
    'list map keys without the list type map',
    objectWith({ type: 'array', items: { type: 'string' }, 'x-kubernetes-list-map-keys': ['k'] }),
    [
      `${specPath}.x-kubernetes-list-type (FieldValueRequired): Required value: must be map if x-kubernetes-list-map-keys is non-empty`,
    ],
  ],
  [
    'list map keys that items do not declare',
    objectWith({
      type: 'array',
      items: { type: 'object' },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    }),
    [
      `${specPath}.x-kubernetes-list-map-keys (FieldValueInvalid): Invalid value: ["k"]: entries must all be names of item properties`,
    ],
  ],
  [
    'a list type on an object',
    objectWith({ type: 'object', 'x-kubernetes-list-type': 'atomic' }),
    [`${specPath}.type (FieldValueInvalid): Invalid value: "object": must be array if x-kubernetes-list-type is specified`],
  ],
])('rejects a schema with %s', (_, schema, expected) => expect(errors(schema)).toEqual(expected))

test.each<[string, JSONSchema]>([
  [
    'additionalProperties true beside properties',
    objectWith({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: true }),
  ],
  ['additionalProperties false', objectWith({ type: 'object', additionalProperties: false })],
  ['an integer or string', objectWith({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] })],
  [
    'an integer or string with a pattern',
    objectWith({
      'x-kubernetes-int-or-string': true,
      allOf: [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, { pattern: '^a' }],
    }),
  ],
  ['a field that only a junctor declares', objectWith({ type: 'object', oneOf: [{ properties: { a: { minLength: 1 } } }] })],
])('accepts a schema with %s', (_, schema) => expect(errors(schema)).toEqual([]))
