import { atOnce } from '@capstan/kube'
import { expect, test } from 'vitest'
import { builtins } from '../../../../kubernetes-kinds/src/builtin-resources.ts'
import { messages } from '../../../../kubernetes-kinds/src/protobuf-messages.ts'
import { decodingProtobuf } from './protobuf.ts'

const decodeProtobuf = (bytes: Buffer, type: { apiVersion: string; kind: string }) =>
  atOnce(decodingProtobuf(messages, bytes, type, 1000))

const fallback = { apiVersion: 'v1', kind: 'ConfigMap' }

test('protobuf bodies of kubectl 1.36 are decoded to the objects that kubectl would send as JSON', () => {
  const secret = 'azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAXASAXEaABoAIgA='
  expect(decodeProtobuf(Buffer.from(secret, 'base64'), fallback)).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's' },
    data: { p: 'cQ==' },
  })
  const deployment =
    'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErABChsKAWQSABoAIgAqADIAOABCAFoICgNhcHASAWQSggEIABIKCggKA2FwcBIBZBpqChoKABIAGgAiACoAMgA4AEIAWggKA2FwcBIBZBJMEi4KBW5naW54EgVuZ2lueCoAMgoKABAAGFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA'
  expect(decodeProtobuf(Buffer.from(deployment, 'base64'), fallback)).toEqual({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd', labels: { app: 'd' } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'd' } },
      strategy: {},
      template: {
        metadata: { labels: { app: 'd' } },
        spec: { containers: [{ name: 'nginx', image: 'nginx', ports: [{ containerPort: 80 }], resources: {} }] },
      },
    },
    status: {},
  })
})

/**
 * The fields of a message, as pairs of field number and value. A number is encoded as a varint, Infinity as a double; a text, a Buffer and a
 * nested message are encoded with their length.
 */
type Wire = readonly (readonly [number, number | string | Buffer | Wire])[]

function encode(fields: Wire): Buffer {
  return Buffer.concat(
    fields.map(([number, value]) => {
      if (value === Infinity) return Buffer.concat([varint((number << 3) | 1), Buffer.from('000000000000f07f', 'hex')])
      if (typeof value === 'number') return Buffer.concat([varint(number << 3), varint(value)])
      const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.isBuffer(value) ? value : encode(value)
      return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes])
    }),
  )
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0))
    rest >>= 7n
  } while (rest > 0n)
  return Buffer.from(bytes)
}

const envelope = (apiVersion: string, kind: string, message: Wire | Buffer): Buffer =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    encode([
      [
        1,
        [
          [1, apiVersion],
          [2, kind],
        ],
      ],
      [2, message],
    ]),
  ])

test.each<[string, Buffer, object]>([
  [
    'times with fractions, and zero values of pointer fields',
    envelope('coordination.k8s.io/v1', 'Lease', [
      [
        1,
        [
          [1, 'l'],
          [8, []],
        ],
      ],
      [
        2,
        [
          [1, ''],
          [2, 15],
          [
            4,
            [
              [1, 1_767_225_600],
              [2, 1_500_000],
            ],
          ],
          [5, 0],
        ],
      ],
    ]),
    {
      metadata: { name: 'l' },
      spec: { holderIdentity: '', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.001500Z', leaseTransitions: 0 },
    },
  ],
  [
    'lists in maps',
    envelope('authorization.k8s.io/v1', 'SubjectAccessReview', [
      [
        2,
        [
          [3, 'bob'],
          [
            5,
            [
              [1, 'scopes'],
              [
                2,
                [
                  [1, 'view'],
                  [1, 'edit'],
                ],
              ],
            ],
          ],
        ],
      ],
    ]),
    { spec: { user: 'bob', extra: { scopes: ['view', 'edit'] } } },
  ],
  [
    'DeleteOptions of any group',
    envelope('cluster.x-k8s.io/v1beta2', 'DeleteOptions', [
      [1, 0],
      [2, [[1, 'u']]],
      [4, 'Foreground'],
      [5, 'All'],
    ]),
    { gracePeriodSeconds: 0, preconditions: { uid: 'u' }, propagationPolicy: 'Foreground', dryRun: ['All'] },
  ],
  [
    'quantities, IntOrString values, fields of inlined messages, and messages with unknown fields',
    envelope('v1', 'Pod', [
      [
        2,
        [
          [
            2,
            [
              [1, 'c'],
              [
                8,
                [
                  [
                    1,
                    [
                      [1, 'cpu'],
                      [2, [[1, '500m']]],
                    ],
                  ],
                ],
              ],
              [
                10,
                [
                  [
                    1,
                    [
                      [
                        2,
                        [
                          [1, '/x'],
                          [
                            2,
                            [
                              [1, 1],
                              [3, 'http'],
                            ],
                          ],
                        ],
                      ],
                    ],
                  ],
                  [2, -1],
                ],
              ],
            ],
          ],
          [99, 'later'],
        ],
      ],
      [98, 7],
    ]),
    {
      spec: {
        containers: [
          {
            name: 'c',
            resources: { limits: { cpu: '500m' } },
            livenessProbe: { httpGet: { path: '/x', port: 'http' }, initialDelaySeconds: -1 },
          },
        ],
      },
    },
  ],
  [
    'schemas, with fields that are a schema, a list of schemas, a list of names or a bool',
    envelope('apiextensions.k8s.io/v1', 'CustomResourceDefinition', [
      [
        2,
        [
          [
            7,
            [
              [1, 'v1'],
              [2, 1],
              [
                4,
                [
                  [
                    1,
                    [
                      [5, 'object'],
                      [20, [[1, '"red"']]],
                      [24, [[1, [[5, 'string']]]]],
                      [30, [[1, 1]]],
                      [
                        32,
                        [
                          [1, 'a'],
                          [2, [[2, 'b']]],
                        ],
                      ],
                      [33, [[1, 0]]],
                      [8, [[1, '{"a":1}']]],
                      [
                        29,
                        [
                          [1, 'p'],
                          [2, [[30, [[2, [[5, 'integer']]]]]]],
                        ],
                      ],
                      [27, [[24, [[2, [[5, 'number']]]]]]],
                    ],
                  ],
                ],
              ],
              [5, [[1, []]]],
            ],
          ],
        ],
      ],
    ]),
    {
      kind: 'CustomResourceDefinition',
      spec: {
        versions: [
          {
            name: 'v1',
            served: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                enum: ['red'],
                items: { type: 'string' },
                additionalProperties: true,
                dependencies: { a: ['b'] },
                additionalItems: false,
                default: { a: 1 },
                properties: { p: { additionalProperties: { type: 'integer' } } },
                anyOf: [{ items: [{ type: 'number' }] }],
              },
            },
            subresources: { status: {} },
          },
        ],
      },
    },
  ],
  [
    'API services',
    envelope('apiregistration.k8s.io/v1', 'APIService', [
      [1, [[1, 'v1.a.example.com']]],
      [
        2,
        [
          [
            1,
            [
              [1, 'default'],
              [2, 'a'],
            ],
          ],
          [2, 'a.example.com'],
          [3, 'v1'],
          [7, 100],
          [8, 10],
        ],
      ],
    ]),
    {
      metadata: { name: 'v1.a.example.com' },
      spec: { group: 'a.example.com', version: 'v1', service: { name: 'a' }, groupPriorityMinimum: 100, versionPriority: 10 },
    },
  ],
  [
    'managed fields as JSON',
    envelope('v1', 'ConfigMap', [
      [
        1,
        [
          [
            17,
            [
              [1, 'm'],
              [2, 'Update'],
              [7, [[1, '{"f:data":{}}']]],
            ],
          ],
        ],
      ],
    ]),
    { metadata: { managedFields: [{ manager: 'm', operation: 'Update', fieldsV1: { 'f:data': {} } }] } },
  ],
])('%s are decoded', (_, bytes, object) => {
  expect(decodeProtobuf(bytes, fallback)).toMatchObject(object)
})

test('every kind that a built-in group serves has a message', () => {
  const missing = builtins.all.filter(({ apiVersion, kind }) => {
    try {
      decodeProtobuf(envelope(apiVersion, kind, []), fallback)
      return false
    } catch {
      return true
    }
  })
  expect(missing.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([])
  expect(builtins.all.length).toBeGreaterThan(60)
})

test('the fallback type is used for a message whose envelope has no type', () => {
  const bytes = Buffer.concat([
    Buffer.from('k8s\0'),
    encode([
      [
        2,
        encode([
          [
            2,
            [
              [1, 'a'],
              [2, 'b'],
            ],
          ],
        ]),
      ],
    ]),
  ])
  expect(decodeProtobuf(bytes, fallback)).toEqual({ ...fallback, data: { a: 'b' } })
})

test.each([
  ['zz', 'expected prefix [107 56 115 0]'],
  ['k8s\0zz', 'unexpected EOF'],
  [envelope('v1', 'Gadget', []).toString('latin1'), 'no kind "Gadget" is registered for version "v1"'],
  [envelope('v1', 'ConfigMap', [[1, 5]]).toString('latin1'), 'wrong wireType'],
  ['k8s\0\u0007', 'illegal'],
])('%j is rejected: %s', (bytes, message) => {
  expect(() => decodeProtobuf(Buffer.from(bytes, 'latin1'), fallback)).toThrow(message)
})

/** Decodes in pieces, and returns their number and the result. */
function decodeInPieces(bytes: Buffer) {
  const work = decodingProtobuf(messages, bytes, fallback, 1000)
  for (let pieces = 1; ; pieces++) {
    const piece = work.next()
    if (piece.done) return { pieces, object: piece.value }
  }
}

test('a message with many fields is decoded in pieces', () => {
  const decode = (count: number) => {
    const entry = (index: number): Wire[number] => [2, [[1, `k${index}`] as const]]
    const { pieces, object } = decodeInPieces(
      envelope(
        'v1',
        'ConfigMap',
        Array.from({ length: count }, (_, index) => entry(index)),
      ),
    )
    return { pieces, keys: Object.keys(object.data as object).length }
  }
  expect(decode(1)).toEqual({ pieces: 1, keys: 1 })
  const long = decode(5000)
  expect(long.keys).toBe(5000)
  expect(long.pieces).toBeGreaterThan(4)
})

const manyFields = (number: number, value: number | string) => Array.from({ length: 5000 }, () => [number, value] as const)

test.each<[string, Buffer]>([
  ['an envelope', Buffer.concat([Buffer.from('k8s\0'), encode(manyFields(9, 1)), encode([[1, [[2, 'ConfigMap']]]])])],
  ['the type of an envelope', Buffer.concat([Buffer.from('k8s\0'), encode([[1, manyFields(2, 'ConfigMap')]])])],
  ['an entry of a map', envelope('v1', 'ConfigMap', [[2, manyFields(2, 'v')]])],
  ['a list in a map', envelope('authorization.k8s.io/v1', 'SubjectAccessReview', [[2, [[5, [[2, manyFields(1, 'v')]]]]]])],
  ['a quantity', envelope('v1', 'PersistentVolume', [[2, [[1, [[2, manyFields(1, '1')]]]]]])],
  ['a time', envelope('v1', 'ConfigMap', [[1, [[8, manyFields(1, 1)]]]])],
  ['an IntOrString', envelope('v1', 'Service', [[2, [[1, [[4, manyFields(2, 1)]]]]]])],
  ['a RawExtension', envelope('apps/v1', 'ControllerRevision', [[2, manyFields(1, '{}')]])],
])('the message of %s with 5000 fields is decoded in pieces', (_, bytes) => {
  expect(decodeInPieces(bytes).pieces).toBeGreaterThan(4)
})

/** Encodes a ConfigMap with these fields in its metadata. */
const metadata = (...fields: Wire): Buffer => envelope('v1', 'ConfigMap', [[1, fields]])
/** Encodes a CustomResourceDefinition with these fields in its schema. */
const schema = (...fields: Wire): Buffer =>
  envelope('apiextensions.k8s.io/v1', 'CustomResourceDefinition', [[2, [[7, [[4, [[1, fields]]]]]]]])
const nestedSchemas = (depth: number): Buffer =>
  Array.from({ length: depth }).reduce<Buffer>((inner) => encode([[27, inner]]), Buffer.alloc(0))
/** Encodes a ConfigMap of these bytes. */
const raw = (...bytes: number[]): Buffer => envelope('v1', 'ConfigMap', Buffer.from(bytes))

/** Errors of a real kube-apiserver. */
test.each<[string, Buffer, string]>([
  ['a text as a varint', metadata([1, 5]), 'proto: wrong wireType = 0 for field Name'],
  ['a message as a varint', envelope('v1', 'ConfigMap', [[1, 5]]), 'proto: wrong wireType = 0 for field ObjectMeta'],
  ['a bool as a text', envelope('v1', 'ConfigMap', [[4, 'a']]), 'proto: wrong wireType = 2 for field Immutable'],
  ['a double as a text', schema([9, 'abc']), 'proto: wrong wireType = 2 for field Maximum'],
  ['an incomplete text', raw(0x12, 50, 1), 'unexpected EOF'],
  ['an incomplete varint', raw(0x20, 0x80), 'unexpected EOF'],
  ['a varint of eleven bytes', raw(0x20, ...Array<number>(11).fill(0xff)), 'proto: integer overflow'],
  ['an unknown wire type', raw(0x7e), 'proto: illegal wireType 6'],
  ['JSON that ends early', schema([8, [[1, '{"a":']]]), 'unexpected end of JSON input'],
  ['text instead of JSON', schema([8, [[1, 'abc']]]), "invalid character 'a' looking for beginning of value"],
  ['an infinite double', schema([9, Infinity]), 'json: unsupported value: +Inf'],
  ['an unknown kind', envelope('v1', 'toString', []), 'no kind "toString" is registered for version "v1" in scheme'],
  ['an empty body', Buffer.alloc(0), 'empty data'],
  ['a body of only the prefix', Buffer.from('k8s\0'), 'empty body'],
])('%s is rejected as by upstream', (_, bytes, message) => {
  expect(() => decodeProtobuf(bytes, fallback)).toThrow(
    expect.objectContaining({ name: 'ProtobufError', message: expect.stringContaining(message) }),
  )
})

/** Upstream responds with 201 to times outside of the years 0 to 9999, and with 201 or 500 to nesting beyond our limit. */
test.each<[string, Buffer, string]>([
  ['a time after the year 9999', metadata([8, [[1, 253_402_300_800]]]), 'a time is not in the years 0 to 9999'],
  ['a time beyond the range of dates', metadata([8, [[1, 2 ** 60]]]), 'a time is not in the years 0 to 9999'],
  ['too many nested messages', schema([27, nestedSchemas(500)]), 'exceeded max depth'],
  ['too deeply nested JSON', schema([8, [[1, `${'['.repeat(1001)}${']'.repeat(1001)}`]]]), 'exceeded max depth'],
])('%s is rejected by a limit that upstream does not have', (_, bytes, message) => {
  expect(() => decodeProtobuf(bytes, fallback)).toThrow(expect.objectContaining({ name: 'ProtobufError', message }))
})

test('values that upstream accepts are decoded: nested messages, a key "__proto__", invalid UTF-8', () => {
  expect(JSON.stringify(decodeProtobuf(schema([27, nestedSchemas(400)]), fallback))).toContain('"anyOf":[{"anyOf":[{')
  const data = envelope('v1', 'ConfigMap', [
    [
      2,
      [
        [1, '__proto__'],
        [2, Buffer.from([0x66, 0xff])],
      ],
    ],
  ])
  expect(JSON.stringify(decodeProtobuf(data, fallback).data)).toBe('{"__proto__":"f\ufffd"}')
})

test.each<[string, Wire, string, string]>([
  [
    'nanoseconds',
    [
      [1, 5],
      [2, 999_999_999],
    ],
    '1970-01-01T00:00:05Z',
    '1970-01-01T00:00:05.999999Z',
  ],
  [
    'more nanoseconds than a second has',
    [
      [1, 5],
      [2, 2_000_000_000],
    ],
    '1970-01-01T00:00:05Z',
    '1970-01-01T00:00:07.000000Z',
  ],
  [
    'negative nanoseconds',
    [
      [1, 5],
      [2, 2 ** 31],
    ],
    '1970-01-01T00:00:05Z',
    '1970-01-01T00:00:02.852517Z',
  ],
])('a Time ignores %s, and a MicroTime truncates them to microseconds', (_, timestamp, time, microTime) => {
  const lease = envelope('coordination.k8s.io/v1', 'Lease', [
    [1, [[8, timestamp]]],
    [2, [[4, timestamp]]],
  ])
  expect(decodeProtobuf(lease, fallback)).toMatchObject({
    metadata: { creationTimestamp: time },
    spec: { renewTime: microTime },
  })
})
