import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { atOnce } from '../clock.ts'
import { draft, freeze, isRecord } from '../json.ts'
import type { JSONSchema } from '../schema.ts'
import { ObjectMetaSchema } from './object-meta.ts'
import { compilePattern } from './pattern.ts'
import { structural } from './structural.ts'

/** Recorded requests and responses of a real kube-apiserver, see testdata/README.md. */
interface Recorded {
  scenarios: {
    name: string
    steps: {
      crd?: { spec: { versions: { schema: { openAPIV3Schema: JSONSchema } }[] } }
      request?: { method: string; path: string; body: Record<string, unknown> }
      response?: { status: number; body?: Record<string, unknown> }
      /** Whether the order of the causes differs from run to run. */
      unstable?: boolean
    }[]
  }[]
}
const { scenarios } = JSON.parse(readFileSync(new URL('testdata/cr-validation.json', import.meta.url), 'utf8')) as Recorded

/** Prunes an object, drops nulls of fields that are not nullable and have no default, sets defaults and validates it, as the server does. */
function admitted(schema: JSONSchema, body: object): { object: Record<string, unknown>; causes: string[] } {
  const object = draft(body) as Record<string, unknown>
  const kind = structural(schema)
  kind.prune(object)
  kind.dropNulls(object)
  kind.default(object)
  return { object, causes: kind.validate(object).map(({ type, field, text }) => `${field} (${type}): ${text}`) }
}

for (const { name, steps } of scenarios.filter((scenario) => !scenario.name.includes('CEL'))) {
  const schema = steps.find((step) => step.crd)!.crd!.spec.versions[0]!.schema.openAPIV3Schema
  const posts = steps.filter(({ request, response }) => request?.method === 'POST' && response && isRecord(request.body))
  describe(`gives the results of the real server: ${name}`, () => {
    test.each(
      posts.map(({ request, response, unstable }) => [JSON.stringify(request!.body.spec ?? null), request!, response!, unstable]),
    )('%s', (_, request, { status, body = {} }, unstable) => {
      // The recorded CRD with a status has a status subresource, so the server drops the status of a create.
      const { status: _dropped, ...input } = request.body
      const { object, causes } = admitted(schema, input)
      const { details } = body as { details?: { causes: { reason: string; field: string; message: string }[] } }
      const expected = (details?.causes ?? []).map(({ reason, field, message }) => `${field} (${reason}): ${message}`)
      if (unstable) expect([...causes].sort()).toEqual([...expected].sort())
      else expect(causes).toEqual(expected)
      if (status === 201 && body.spec) expect(withoutTimes(object.spec)).toEqual(body.spec)
      if (status === 201 && 'status' in body) expect(object.status).toEqual(body.status)
    })
  })
}

const withoutTimes = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"<time>"'))

/** Returns the schema of an object with `metadata` and the field `spec`. */
const objectWith = (spec: JSONSchema): JSONSchema => ({ type: 'object', properties: { metadata: { type: 'object' }, spec } })
const props = (properties: { [name: string]: JSONSchema }, keywords: JSONSchema = {}): JSONSchema => ({
  type: 'object',
  properties,
  ...keywords,
})

describe('pruning', () => {
  test.each<[string, JSONSchema, unknown, unknown, string[]]>([
    [
      'unknown members are removed and reported',
      props({ a: { type: 'string' } }),
      { a: '1', b: 2, c: { d: 1 } },
      { a: '1' },
      ['spec.b', 'spec.c'],
    ],
    [
      'unknown members in lists and maps are removed and reported, too',
      props({ l: { type: 'array', items: props({ a: {} }) }, m: { type: 'object', additionalProperties: props({ a: {} }) } }),
      { l: [{ a: 1, x: 1 }], m: { k: { y: 1 } } },
      { l: [{ a: 1 }], m: { k: {} } },
      ['spec.l[0].x', 'spec.m.k.y'],
    ],
    [
      'unknown fields in declared fields of an object that preserves unknown fields are pruned',
      props({ known: props({ k: {} }) }, { 'x-kubernetes-preserve-unknown-fields': true }),
      { free: { a: { b: 1 } }, known: { k: 1, x: 1 } },
      { free: { a: { b: 1 } }, known: { k: 1 } },
      ['spec.known.x'],
    ],
    [
      'an embedded resource keeps apiVersion, kind and the known fields of metadata',
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', bogus: 1 }, spec: {} },
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
      ['spec.spec', 'spec.metadata.bogus'],
    ],
    [
      'fields with the names of members of Object.prototype are unknown',
      props({ a: {} }),
      JSON.parse('{"constructor":1,"__proto__":{"x":1}}'),
      {},
      ['spec.__proto__', 'spec.constructor'],
    ],
  ])('%s', (_, spec, value, pruned, removed) => {
    const object = { metadata: { name: 'x', labels: { a: 'b' } }, spec: draft(value) }
    expect(structural(objectWith(spec)).prune(object)).toEqual(removed)
    expect(object).toEqual({ metadata: { name: 'x', labels: { a: 'b' } }, spec: pruned })
  })
})

describe('defaults', () => {
  test('a default is completed by the defaults of nested fields, and never shared between objects', () => {
    const schema = objectWith(
      props(
        { a: { type: 'string', default: 'A' }, list: { type: 'array', items: { type: 'string' } } },
        { default: { list: [] } },
      ),
    )
    const [first, second] = [{} as { spec?: { list: string[] } }, {}]
    structural(freeze(schema)).default(first)
    first.spec?.list.push('mine')
    structural(schema).default(second)
    expect([first, second]).toEqual([{ spec: { a: 'A', list: ['mine'] } }, { spec: { a: 'A', list: [] } }])
  })

  test('no default is set below an absent field that itself has no default', () => {
    const object = {}
    structural(objectWith(props({ a: { type: 'string', default: 'A' } }))).default(object)
    expect(object).toEqual({})
  })
})

describe('validation', () => {
  const errors = (spec: JSONSchema, value: unknown, old?: unknown) =>
    structural(objectWith(spec))
      .validate({ spec: value }, old === undefined ? undefined : { spec: old })
      .map(({ field, text }) => `${field}: ${text}`)

  test.each<[string, JSONSchema, unknown, string[]]>([
    ['a missing required field of an object', props({}, { required: ['a'] }), {}, ['spec.a: Required value']],
    [
      'a boolean instead of a 32-bit integer',
      { type: 'integer', format: 'int32' },
      true,
      ['spec: Invalid value: "": spec in body must be of type int32: ""'],
    ],
    [
      'a string instead of an integer',
      { type: 'integer', format: 'int32' },
      'x',
      ['spec: Invalid value: "string": spec in body must be of type integer: "string"'],
    ],
    [
      'a null in a list',
      { type: 'array', items: { type: 'string' } },
      [null],
      ['spec[0]: Invalid value: "null": spec[0] in body must be of type string: "null"'],
    ],
    [
      'invalid metadata of an embedded resource',
      { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { namespace: 'N', labels: { a: '-' }, annotations: { '/': '' }, ownerReferences: [{}] },
      },
      [
        expect.stringMatching(/^spec\.metadata\.namespace: Invalid value: "N": a lowercase RFC 1123 label/),
        expect.stringMatching(/^spec\.metadata\.labels: Invalid value: "-": a valid label must be/),
        expect.stringMatching(/^spec\.metadata\.annotations: Invalid value: "\/": prefix part must be non-empty/),
        expect.stringMatching(/^spec\.metadata\.annotations: Invalid value: "\/": name part must be non-empty/),
        expect.stringMatching(/^spec\.metadata\.annotations: Invalid value: "\/": name part must consist/),
        'spec.metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        'spec.metadata.ownerReferences.kind: Invalid value: "": must not be empty',
        'spec.metadata.ownerReferences.name: Invalid value: "": must not be empty',
        'spec.metadata.ownerReferences.uid: Invalid value: "": must not be empty',
      ] as string[],
    ],
    ['no error for a whole number of type number', { type: 'number' }, 3, []],
    ['no error for two characters of two UTF-16 units each when maxLength is 2', { type: 'string', maxLength: 2 }, '😀😀', []],
    [
      'a number that is not in an enumeration',
      { type: 'integer', enum: [1, 2] },
      3,
      ['spec: Unsupported value: 3: supported values: "1", "2"'],
    ],
    [
      'a forbidden property',
      { type: 'object', additionalProperties: false },
      { a: 1 },
      ['spec: Invalid value: "a": spec.a in body is a forbidden property'],
    ],
    [
      'duplicate keys in a map list',
      { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['b', 'a'], items: props({}) },
      [
        { a: 1, b: 2, v: 1 },
        { a: 1, b: 2, v: 2 },
      ],
      ['spec[1]: Duplicate value: {"a":1,"b":2}'],
    ],
    [
      'a duplicate in a set of objects, also if its members are in another order',
      { type: 'array', 'x-kubernetes-list-type': 'set', items: props({}) },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      ['spec[1]: Duplicate value: {"b":2,"a":1}'],
    ],
    [
      'the errors of the anyOf branch that fits best',
      {
        anyOf: [props({ a: { type: 'string' } }, { required: ['z'] }), props({ a: { type: 'integer' }, b: { type: 'string' } })],
      },
      { a: 'x', b: 'y' },
      [
        '<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)',
        'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"',
      ],
    ],
    [
      'an invalid pattern',
      { type: 'string', pattern: '(' },
      'x',
      [expect.stringMatching(/^spec: Invalid value: "x": spec in body should match '\(, but pattern is invalid: /) as never],
    ],
  ])('reports %s', (_, spec, value, expected) => expect(errors(spec, value)).toEqual(expected))

  const short: JSONSchema = { type: 'string', maxLength: 2 }
  const list = (type: 'map' | 'atomic'): JSONSchema => ({
    type: 'array',
    'x-kubernetes-list-type': type,
    ...(type === 'map' ? { 'x-kubernetes-list-map-keys': ['k'] } : {}),
    items: props({ k: { type: 'string' }, v: short }),
  })
  test.each<[string, JSONSchema, unknown, unknown, string[]]>([
    [
      'an unchanged value may violate the schema',
      props({ a: short, b: short }),
      { a: 'long', b: 'x' },
      { a: 'long', b: 'y' },
      [],
    ],
    [
      'a changed value must not violate the schema',
      props({ a: short }),
      { a: 'longer' },
      { a: 'long' },
      ['spec.a: Too long: may not be more than 2 bytes'],
    ],
    ['items of a map list are correlated by key', list('map'), [{ k: 'b' }, { k: 'a', v: 'long' }], [{ k: 'a', v: 'long' }], []],
    [
      'items of an atomic list are not correlated',
      list('atomic'),
      [{ k: 'b' }, { k: 'a', v: 'long' }],
      [{ k: 'a', v: 'long' }],
      ['spec[1].v: Too long: may not be more than 2 bytes'],
    ],
    [
      'a changed object must have its required fields',
      props({ a: short }, { required: ['b'] }),
      { a: 'x' },
      { a: 'y' },
      ['spec.b: Required value'],
    ],
    [
      'duplicates are valid when the old list contains duplicates',
      list('map'),
      [{ k: 'a' }, { k: 'a' }, { k: 'b' }],
      [{ k: 'a' }, { k: 'a' }],
      [],
    ],
  ])('on update: %s', (_, spec, value, old, expected) => expect(errors(spec, value, old)).toEqual(expected))
})

describe('format', () => {
  const fits = (format: string, value: string) =>
    structural(objectWith({ type: 'string', format })).validate({ spec: value }).length === 0
  test.each<[format: string, good: string[], bad: string[]]>([
    [
      'date-time',
      ['2020-01-01T00:00:00Z', '2024-02-29t23:59:59.5+01:00'],
      ['2023-02-29T00:00:00Z', '2020-01-01', '2020-01-01T24:00:00Z'],
    ],
    ['date', ['2024-02-29', '0001-01-01'], ['2024-2-9', '2023-02-29']],
    ['duration', ['1h3m', '3 days', '0'], ['1x', 'day']],
    ['ipv4', ['1.2.3.4', '01.1.1.1'], ['1.2.3', '256.1.1.1', '0001.1.1.1']],
    ['ipv6', ['::', '::1', 'fe80::1:2', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4'], ['1::2::3', '1:2:3', ':::', 'g::']],
    ['cidr', ['10.0.0.0/8', '010.0.0.0/8', 'fd00::/64'], ['10.0.0.0', '10.0.0.0/33', '1.2.3/8']],
    ['uri', ['https://a.example/b?c=d', '/path', 'urn:x:y'], ['::', 'a b', 'relative', '']],
    ['email', ['a@b.example', 'a.b+c@localhost', 'A B <a@b.example>'], ['nope', 'a@', '@b', 'A <a>']],
    ['hostname', ['a', 'a-b.example', 'x1.y2.example'], ['-a', 'a..b', 'a_b.example']],
    ['mac', ['01:23:45:67:89:ab', '0123.4567.89ab', '0123456789ab'], ['01:23:45', '01:23:45:67:89:zz']],
    ['uuid4', ['4b1d1f70-9a42-4c43-8f6d-6e8b3a8c5a11'], ['4b1d1f70-9a42-1c43-8f6d-6e8b3a8c5a11']],
    ['byte', ['aGk=', 'aGVq'], ['', '***', 'aGk']],
    ['ssn', ['111-11-1111', '111 11 1111'], ['111111111']],
    ['isbn', ['0-306-40615-2', '978-3-16-148410-0'], ['0-306-40615-3']],
    ['creditcard', ['4111 1111 1111 1111'], ['4111 1111 1111 1112']],
    ['hexcolor', ['#fff', 'a1b2c3'], ['#ff']],
    ['rgbcolor', ['rgb(0, 255, 10)'], ['rgb(0,256,0)']],
    ['k8s-short-name', ['a-b'], ['a.b', 'A']],
  ])('%s accepts valid texts and rejects invalid ones', (format, good, bad) => {
    expect(good.filter((value) => !fits(format, value))).toEqual([])
    expect(bad.filter((value) => fits(format, value))).toEqual([])
  })

  test('an unknown format accepts any text', () => expect(fits('made-up', 'anything')).toBe(true))
})

test.each([
  ['^a', 'ab', true],
  ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', 'a-b', true],
  ['^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$', 'a b', false],
  ['^.$', '\r', true],
  ['[[:alpha:]]', '5', false],
  ['\\pL', 'ä', true],
  ['a{2}', 'baa', true],
  ['[z-a]', 'b', false],
  ['^a{5,3}', 'aaaaa', false],
  ['^[a-z0-9.-]{1,3}$', 'a.-', true],
  ['^[^/]+/x$', 'a/x', true],
  ['^[^/]{1}$', '😀', true],
  ['a\\-b', 'a-b', true],
  ['^\\.\\*$', '.*', true],
])('whether pattern %s matches %j, as in RE2: %s', (pattern, text, matches) => {
  expect(compilePattern(pattern).test(text)).toBe(matches)
  // The second call returns the cached pattern.
  expect(compilePattern(pattern).test(text)).toBe(matches)
})

test.each(['^(a+)+$', 'a*b', 'a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b', '^a{0,99}a{0,99}a{0,99}a{0,99}b'])(
  'pattern %s does not backtrack',
  (pattern) => {
    const compiled = compilePattern(pattern)
    const before = process.threadCpuUsage()
    expect(compiled.test(`${'a'.repeat(50_000)}c`)).toBe(false)
    expect(process.threadCpuUsage(before).user / 1000).toBeLessThan(2000)
  },
)

test('the schema of metadata accepts valid metadata', () => {
  expect(
    structural(objectWith(ObjectMetaSchema)).validate({ spec: { name: 'x', labels: { a: 'b' }, finalizers: ['f'] } }),
  ).toEqual([])
})

test('errors of CEL rules in unchanged fields are reported as ratcheted errors until the object satisfies the rules', () => {
  const rule = (text: string) => ({ type: 'integer' as const, 'x-kubernetes-validations': [{ rule: text }] })
  const kind = structural({ type: 'object', properties: { a: rule('self > 0'), b: rule('self > 0') } })
  const broken = { a: -1, b: 1 }
  const ratcheted = (object: object, old: object) =>
    atOnce(kind.ratchetedErrors(object, old)).map(({ field, text }) => `${field}: ${text}`)
  expect(kind.validate({ ...broken, b: 2 }, broken)).toEqual([])
  expect(ratcheted({ ...broken, b: 2 }, broken)).toEqual(['a: Invalid value: -1: failed rule: self > 0'])
  const repaired = { a: 1, b: 2 }
  expect(ratcheted(repaired, broken)).toEqual([])
  expect(ratcheted({ a: 1, b: 3 }, repaired)).toEqual([])
})
