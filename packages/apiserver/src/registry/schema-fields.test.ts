import { describe, expect, test } from 'vitest'
import { crdStrategy } from './crd-strategy.ts'
import { normalizeSchema } from './schema-fields.ts'

function normalized(schema: object): { schema: object; unknown: string[] } {
  const unknown: string[] = []
  normalizeSchema(schema, 'at', (path) => unknown.push(path))
  return { schema, unknown }
}

test.each<[string, object, object, string[]]>([
  ['unknown fields', { type: 'string', 'x-foo': 1, minLenght: 2 }, { type: 'string' }, ['at.x-foo', 'at.minLenght']],
  [
    'unknown fields in inner schemas',
    {
      properties: { a: { bad: 1, allOf: [{ bad: 2 }], not: { bad: 3 } } },
      'x-kubernetes-validations': [{ rule: 'true', bad: 4 }],
    },
    { properties: { a: { allOf: [{}], not: {} } }, 'x-kubernetes-validations': [{ rule: 'true' }] },
    ['at.properties.a.bad', 'at.properties.a.allOf[0].bad', 'at.properties.a.not.bad', 'at.x-kubernetes-validations[0].bad'],
  ],
  [
    'inner schemas whose unknown fields upstream does not report',
    { items: { bad: 1 }, additionalProperties: { properties: { a: { bad: 1 } } } },
    { items: {}, additionalProperties: { properties: { a: {} } } },
    [],
  ],
  [
    'empty values',
    { description: '', enum: [], properties: {}, nullable: false, minimum: 0, externalDocs: {}, additionalProperties: false },
    { minimum: 0, externalDocs: {}, additionalProperties: false },
    [],
  ],
  [
    'default, example and enum values',
    { default: { bad: '' }, example: { bad: [] }, enum: [{ bad: {} }] },
    { default: { bad: '' }, example: { bad: [] }, enum: [{ bad: {} }] },
    [],
  ],
  ['values that are not schemas', { properties: 'x', allOf: 5, items: [1] }, { properties: 'x', allOf: 5, items: [1] }, []],
])('a schema with %s is normalized, and the same unknown fields as upstream are reported', (_, schema, result, unknown) => {
  expect(normalized(schema)).toEqual({ schema: result, unknown })
})

describe('each new unknown format of a schema causes one warning', () => {
  const crd = (schema: object) => ({ spec: { versions: [{ schema: { openAPIV3Schema: schema } }] } }) as never
  const warned = (schema: object, old?: object) => crdStrategy.warnings(crd(schema), old && crd(old))
  test.each<[object, string[]]>([
    [{ type: 'string', format: 'date-time' }, []],
    [{ type: 'string', format: 'datetime' }, []],
    [{ type: 'string', format: 'bogus' }, ['unrecognized format "bogus"']],
    [{ type: 'string', format: 'int32' }, ['unrecognized format "int32"']],
    [{ type: 'integer', format: 'int32' }, []],
    [{ type: 'integer', format: 'float' }, ['unrecognized format "float"']],
    [{ type: 'number', format: 'double' }, []],
    [{ format: 'date', 'x-kubernetes-int-or-string': true }, ['unrecognized format "date"']],
    [
      { anyOf: [{ format: 'a' }], properties: { x: { items: { format: 'b' } }, y: { additionalProperties: { format: 'b' } } } },
      ['unrecognized format "a"', 'unrecognized format "b"'],
    ],
  ])('the warnings for %j are %j', (schema, warnings) => {
    expect(warned(schema)).toEqual(warnings)
    expect(warned(schema, schema), 'unchanged format').toEqual([])
  })
})

test('a malformed CRD causes neither warnings nor an exception', () => {
  for (const spec of [undefined, {}, { versions: 5 }, { versions: [null, {}, { schema: null }] }])
    expect([crdStrategy.warnings({ spec } as never, undefined), crdStrategy.pruneUnknown({ spec } as never)]).toEqual([[], []])
})
