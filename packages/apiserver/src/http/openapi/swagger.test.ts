import { describe, expect, test } from 'vitest'
import { definition, type Fields, swaggerHead } from './swagger.ts'
import { swaggerProtobuf } from './swagger-protobuf.ts'

test('protobuf equals the output of gnostic for the same document', () => {
  const document: { [member: string]: { [name: string]: Fields } } = {
    paths: {
      '/api/v1/things/{name}': {
        get: {
          'x-kubernetes-action': 1,
          operationId: 'getThing',
          consumes: ['*/*'],
          produces: ['application/json'],
          schemes: ['https'],
          tags: ['core_v1'],
          parameters: [{ uniqueItems: true, type: 'boolean', name: 'watch', in: 'query' }],
          responses: {
            '200': { description: 'OK', schema: { $ref: '#/definitions/v1.Thing' } },
            '401': { description: 'Unauthorized' },
          },
        },
        patch: {
          operationId: 'patchThing',
          consumes: ['application/merge-patch+json'],
          produces: ['application/json'],
          schemes: ['https'],
          tags: ['core_v1'],
          parameters: [{ name: 'body', in: 'body', required: true, schema: { $ref: '#/definitions/v1.Thing' } }],
          responses: { '401': { description: 'Unauthorized' } },
        },
        parameters: [{ uniqueItems: true, type: 'string', name: 'name', in: 'path', required: true }],
      },
    },
    definitions: {
      'v1.Thing': {
        description: 'Ünïcode.',
        type: 'object',
        required: ['spec'],
        properties: {
          spec: { type: 'object', additionalProperties: { type: 'string', pattern: '^a', maxLength: 300, minLength: 1 } },
          count: {
            type: 'integer',
            format: 'int32',
            minimum: 1,
            maximum: 2.5,
            exclusiveMaximum: true,
            default: 3,
            enum: [3, 4],
            multipleOf: 1,
          },
          list: {
            type: 'array',
            items: { $ref: '#/definitions/v1.Thing' },
            maxItems: 5,
            minItems: 2,
            'x-kubernetes-list-length': 7,
          },
        },
        'x-kubernetes-open': true,
      },
    },
  }
  // Output of gnostic after it has read the JSON of this document.
  const recorded =
    'CgMyLjASEgoKS3ViZXJuZXRlcxIEMS4zNkKPAxKMAwoVL2FwaS92MS90aGluZ3Mve25hbWV9EvICErYBCgdjb3JlX3YxKghnZXRUaGluZzIQYX' +
    'BwbGljYXRpb24vanNvbjoDKi8qQiAKHhIcGhoSBXF1ZXJ5IgV3YXRjaDIHYm9vbGVhbqABAUpECikKAzIwMBIiCiAKAk9LEhoKGAoWIy9kZWZp' +
    'bml0aW9ucy92MS5UaGluZwoXCgM0MDESEAoOCgxVbmF1dGhvcml6ZWRSBWh0dHBzahsKE3gta3ViZXJuZXRlcy1hY3Rpb24SBBICMQpClQEKB2' +
    'NvcmVfdjEqCnBhdGNoVGhpbmcyEGFwcGxpY2F0aW9uL2pzb246HGFwcGxpY2F0aW9uL21lcmdlLXBhdGNoK2pzb25CLAoqCigSBGJvZHkaBGJv' +
    'ZHkgASoYChYjL2RlZmluaXRpb25zL3YxLlRoaW5nShkKFwoDNDAxEhAKDgoMVW5hdXRob3JpemVkUgVodHRwc0ofCh0SGyIZCAESBHBhdGgiBG' +
    '5hbWUqBnN0cmluZ5gBAUqmAgqjAgoIdjEuVGhpbmcSlgIiCsOcbsOvY29kZS6aAQRzcGVjsgEICgZvYmplY3TKAdUBCiwKBHNwZWMSJKoBFgoU' +
    'WKwCYAFqAl5hsgEICgZzdHJpbmeyAQgKBm9iamVjdApNCgVjb3VudBJEEgVpbnQzMioEEgIzCjEAAAAAAADwPzkAAAAAAAAEQEABSQAAAAAAAP' +
    'A/ogEEEgIzCqIBBBICNAqyAQkKB2ludGVnZXIKVgoEbGlzdBJOcAV4ArIBBwoFYXJyYXm6ARoKGAoWIy9kZWZpbml0aW9ucy92MS5UaGluZ/oB' +
    'IAoYeC1rdWJlcm5ldGVzLWxpc3QtbGVuZ3RoEgQSAjcK+gEcChF4LWt1YmVybmV0ZXMtb3BlbhIHEgV0cnVlCmIRCg8KC0JlYXJlclRva2VuEg' +
    'BqTwpNCgtCZWFyZXJUb2tlbhI+EjwKBmFwaUtleRINYXV0aG9yaXphdGlvbhoGaGVhZGVyIhtCZWFyZXIgVG9rZW4gYXV0aGVudGljYXRpb24='
  const { path, definition, document: encodeDocument } = swaggerProtobuf
  const encoded = (members: { [name: string]: Fields }, encode: typeof path) =>
    Object.entries(members).map(([name, value]) => encode(name, value))
  const bytes = encodeDocument(swaggerHead('1.36'), encoded(document.paths!, path), encoded(document.definitions!, definition))
  expect(Buffer.concat([...bytes]).toString('base64')).toBe(recorded)
})

describe('a schema in OpenAPI v2', () => {
  test.each<[string, object, object]>([
    ['refers to definitions', { $ref: '#/components/schemas/a.B' }, { $ref: '#/definitions/a.B' }],
    [
      'has the description, but not the default, beside the reference',
      { allOf: [{ $ref: '#/components/schemas/a.B' }], description: 'd', default: {} },
      { $ref: '#/definitions/a.B', description: 'd' },
    ],
    ['has no oneOf, anyOf, allOf or not', { type: 'string', oneOf: [{}], anyOf: [{}], not: {}, allOf: [{}] }, { type: 'string' }],
    ['has no type and no items when it is nullable', { type: 'array', nullable: true, items: { type: 'string' } }, {}],
    [
      'has no type and no properties when it preserves unknown fields',
      { type: 'object', properties: { a: {} }, 'x-kubernetes-preserve-unknown-fields': true },
      { 'x-kubernetes-preserve-unknown-fields': true },
    ],
    [
      'does not require nullable fields',
      { type: 'object', required: ['a', 'b'], properties: { a: { type: 'string', nullable: true }, b: { type: 'string' } } },
      { type: 'object', required: ['b'], properties: { a: {}, b: { type: 'string' } } },
    ],
  ])('%s', (_, schema, expected) => expect(definition(schema as Fields)).toEqual(expected))
})
