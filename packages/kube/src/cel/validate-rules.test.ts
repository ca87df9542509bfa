import { describe, expect, test } from 'vitest'
import type { JSONSchema, ValidationRule } from '../schema.ts'
import { structural } from '../structural/structural.ts'
import { ruleErrorsOfValue } from './validate-rules.ts'

const rule = (text: string, fields: Partial<ValidationRule> = {}): ValidationRule[] => [{ rule: text, ...fields }]
const spec = (properties: { [name: string]: JSONSchema }, rules: ValidationRule[] = []): JSONSchema => ({
  type: 'object',
  properties: { spec: { type: 'object', properties, 'x-kubernetes-validations': rules } },
})
const errorTexts = (schema: JSONSchema, now: object, before?: object): string[] =>
  structural(schema)
    .validate({ spec: now }, before && { spec: before })
    .map(({ field, text }) => `${field}: ${text}`)

describe('values that rules read', () => {
  const text: JSONSchema = { type: 'string' }
  const cases: [rule: string, properties: { [name: string]: JSONSchema }, value: object][] = [
    ['self.count / 2 == 3', { count: { type: 'integer' } }, { count: 7 }],
    ['self.ratio / 2.0 == 3.5', { ratio: { type: 'number' } }, { ratio: 7 }],
    [
      'self.a__dash__b + self.c__dot__d + self.e__slash__f == "xyz"',
      { 'a-b': text, 'c.d': text, 'e/f': text },
      { 'a-b': 'x', 'c.d': 'y', 'e/f': 'z' },
    ],
    ['self.__namespace__ == self.x__underscores__y', { namespace: text, x__y: text }, { namespace: 'n', x__y: 'n' }],
    [
      'self.at > timestamp("2020-01-01T00:00:00Z") && self.at.getFullYear() == 2024',
      { at: { type: 'string', format: 'date-time' } },
      { at: '2024-05-01T10:00:00+02:00' },
    ],
    ['self.day == timestamp("2024-05-01T00:00:00Z")', { day: { type: 'string', format: 'date' } }, { day: '2024-05-01' }],
    ['self.wait < duration("2m")', { wait: { type: 'string', format: 'duration' } }, { wait: '90s' }],
    ['string(self.data) == "hi"', { data: { type: 'string', format: 'byte' } }, { data: 'aGk=' }],
    [
      'type(self.port) == int && self.port == 80 && type(self.name) == string',
      { port: { 'x-kubernetes-int-or-string': true }, name: { 'x-kubernetes-int-or-string': true } },
      { port: 80, name: 'http' },
    ],
    ['self.tags == ["b", "a"]', { tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: text } }, { tags: ['a', 'b'] }],
    [
      '(self.tags + ["b", "c"]).size() == 3',
      { tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: text } },
      { tags: ['a', 'b'] },
    ],
    [
      'self.labels.all(k, v, k.startsWith("app") && v != "") && self.labels.app == "x" && self.labels["app.b"] == "y"',
      { labels: { type: 'object', additionalProperties: text } },
      { labels: { app: 'x', 'app.b': 'y' } },
    ],
    [
      'self.list.exists_one(x, x.k == "a") && self.list.filter(x, has(x.v)).map(x, x.v).sum() == 3',
      { list: { type: 'array', items: { type: 'object', properties: { k: text, v: { type: 'integer' } } } } },
      { list: [{ k: 'a', v: 1 }, { k: 'b', v: 2 }, { k: 'c' }] },
    ],
    ['self.?missing.orValue("none") == "none" && !has(self.missing)', { missing: text }, {}],
    [
      'self.object.metadata.name == "m" && self.object.kind == "K"',
      { object: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true } },
      { object: { apiVersion: 'v1', kind: 'K', metadata: { name: 'm' } } },
    ],
    [
      'quantity(self.size).isGreaterThan(quantity("1Gi")) && cidr(self.net).containsIP("10.1.2.3") && url(self.at).getHost() == "a:1"',
      { size: text, net: text, at: text },
      { size: '1.5Gi', net: '10.0.0.0/8', at: 'https://a:1/b' },
    ],
    [
      'self.name.find("[0-9]+") == "12" && self.name.split("-").isSorted() && !format.dns1123Label().validate(self.name).hasValue()',
      { name: text },
      { name: 'a-b12' },
    ],
    ['isSemver(self.v, true) && semver(self.v, true).isLessThan(semver("1.10.0"))', { v: text }, { v: 'v1.9' }],
  ]
  test.each(cases)('satisfy %s', (condition, properties, value) => {
    expect(errorTexts(spec(properties, rule(condition)), value)).toEqual([])
    expect(errorTexts(spec(properties, rule(`!(${condition})`)), value)).toEqual([
      `spec: Invalid value: failed rule: !(${condition})`,
    ])
  })

  test('rules at the root of an object can read its kind and name, but not its labels', () => {
    const schema = (condition: string): JSONSchema => ({ type: 'object', 'x-kubernetes-validations': rule(condition) })
    const object = { apiVersion: 'v1', kind: 'K', metadata: { name: 'x', labels: { a: 'b' } } }
    expect(structural(schema("self.metadata.name == 'x' && self.kind == 'K'")).validate(object)).toEqual([])
    const [error] = structural(schema('has(self.metadata.labels)')).validate(object)
    expect(error).toMatchObject({ field: '<nil>', text: expect.stringContaining("undefined field 'labels'") })
  })
})

describe('transition rules', () => {
  const number: JSONSchema = { type: 'integer', 'x-kubernetes-validations': rule('self >= oldSelf') }
  const list = (kind: 'map' | 'atomic'): JSONSchema => ({
    type: 'array',
    'x-kubernetes-list-type': kind,
    ...(kind === 'map' ? { 'x-kubernetes-list-map-keys': ['k'] } : {}),
    items: { type: 'object', properties: { k: { type: 'string' }, n: number } },
  })
  test('are not evaluated for a create or for a value without an old value', () => {
    expect(errorTexts(spec({ n: number }), { n: 1 })).toEqual([])
    expect(errorTexts(spec({ n: number }), { n: 1 }, {})).toEqual([])
    expect(errorTexts(spec({ n: number }), { n: 1 }, { n: 2 })).toEqual([
      'spec.n: Invalid value: 1: failed rule: self >= oldSelf',
    ])
  })
  test('correlate items of lists of type map by their keys, and do not correlate items of atomic lists', () => {
    const [now, before] = [
      {
        l: [
          { k: 'b', n: 1 },
          { k: 'a', n: 1 },
        ],
      },
      { l: [{ k: 'a', n: 2 }] },
    ]
    expect(errorTexts(spec({ l: list('map') }), now, before)).toEqual([
      'spec.l[1].n: Invalid value: 1: failed rule: self >= oldSelf',
    ])
    expect(errorTexts(spec({ l: list('atomic') }), now, before)).toEqual([])
  })
  test('with optionalOldSelf read an optional, which is empty for a create and has the old value for an update', () => {
    const once: JSONSchema = {
      type: 'string',
      'x-kubernetes-validations': rule('!oldSelf.hasValue()', { optionalOldSelf: true, message: 'is set once' }),
    }
    expect(errorTexts(spec({ a: once }), { a: 'x' })).toEqual([])
    expect(errorTexts(spec({ a: once }), { a: 'x' }, { a: 'x' })).toEqual(['spec.a: Invalid value: "x": is set once'])
  })
})

describe('an unchanged part of an update', () => {
  const small: JSONSchema = { type: 'integer', 'x-kubernetes-validations': rule('self < 10') }
  const atomic: JSONSchema = { type: 'array', items: small }
  test('may violate the rules', () => {
    expect(errorTexts(spec({ n: small, m: small }), { n: 50, m: 1 }, { n: 50, m: 2 })).toEqual([])
    expect(errorTexts(spec({ n: small, m: small }), { n: 51, m: 1 }, { n: 50, m: 1 })).toHaveLength(1)
  })
  test('may be a whole atomic list; unchanged items of a changed atomic list are validated', () => {
    expect(errorTexts(spec({ l: atomic, m: small }), { l: [50], m: 1 }, { l: [50], m: 2 })).toEqual([])
    expect(errorTexts(spec({ l: atomic }), { l: [50, 1] }, { l: [50] })).toEqual([
      'spec.l[0]: Invalid value: 50: failed rule: self < 10',
    ])
  })
})

describe('errors report', () => {
  const schema = (fields: Partial<ValidationRule>) =>
    spec(
      { a: { type: 'string' }, b: { type: 'object', additionalProperties: { type: 'string' } } },
      rule("self.a != 'x'", fields),
    )
  const failing: [title: string, more: Partial<ValidationRule>, text: string][] = [
    ['the source of the rule when it has no message', {}, "spec: Invalid value: failed rule: self.a != 'x'"],
    ['the message without surrounding spaces', { message: ' no x ' }, 'spec: Invalid value: no x'],
    ['the messageExpression', { message: 'no x', messageExpression: "'a is ' + self.a" }, 'spec: Invalid value: a is x'],
    [
      'the message when the messageExpression fails',
      { message: 'no x', messageExpression: 'self.b.c' },
      'spec: Invalid value: no x',
    ],
    [
      'the message when the messageExpression returns two lines',
      { message: 'no x', messageExpression: "'a\\nb'" },
      'spec: Invalid value: no x',
    ],
    [
      'the message when the messageExpression returns more than 5120 bytes',
      { message: 'no x', messageExpression: `'${'é'.repeat(2561)}'` },
      'spec: Invalid value: no x',
    ],
    ['the field in the fieldPath of the rule', { message: 'm', fieldPath: '.a' }, 'spec.a: Invalid value: m'],
    ['the map key in the fieldPath of the rule', { message: 'm', fieldPath: ".b['c.d']" }, 'spec.b[c.d]: Invalid value: m'],
    ['that the value is forbidden', { message: 'm', reason: 'FieldValueForbidden' }, 'spec: Forbidden: m'],
    ['that the field is required', { message: 'm', reason: 'FieldValueRequired', fieldPath: '.a' }, 'spec.a: Required value: m'],
  ]
  test.each(failing)('%s', (_title, fields, text) => expect(errorTexts(schema(fields), { a: 'x' })).toEqual([text]))

  test('an evaluation error, with the message of the rule if it has one', () => {
    const object = spec({ a: { type: 'string' } }, [{ rule: 'self.a == "x"' }, { rule: 'dyn(self.a) + 1 == 2', message: 'm' }])
    expect(errorTexts(object, {})).toEqual([
      'spec: Invalid value: "object": no such key: a evaluating rule: self.a == "x"',
      'spec: Invalid value: "object": no such key: a evaluating rule: m',
    ])
    expect(errorTexts(object, { a: 'x' })).toEqual([
      `spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: m`,
    ])
  })
  test('an evaluation error for a null value, and for text that is not of the declared format', () => {
    const nullable: JSONSchema = { type: 'string', nullable: true }
    expect(errorTexts(spec({ a: nullable }, rule('self.a.startsWith("x")', { message: 'm' })), { a: null })).toEqual([
      `spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: m`,
    ])
    const wait: JSONSchema = { type: 'string', format: 'duration', 'x-kubernetes-validations': rule('self > duration("1s")') }
    expect(errorTexts(spec({ wait }), { wait: '3 days' })).toEqual([
      `spec.wait: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: self > duration("1s")`,
    ])
  })
  test.each<[JSONSchema, unknown, string]>([
    [{ type: 'integer' }, 1.5, 'expected integer to match the provided schema, got number'],
    [{ type: 'string' }, 7, 'expected string to match the provided schema, got number'],
    [{ type: 'object', additionalProperties: { type: 'string' } }, [], 'expected object to match the provided schema, got array'],
    [{ 'x-kubernetes-int-or-string': true }, {}, 'expected int-or-string to match the provided schema, got object'],
  ])('that a value from an older schema does not match %o', (a, value, problem) => {
    const schema = spec({ a, b: { type: 'integer' } }, rule('self.a == self.a && self.b > 0', { message: 'm' }))
    expect(errorTexts(schema, { a: value, b: 1 }, { a: value, b: 2 })).toEqual([
      `spec: Invalid value: "object": invalid data, ${problem} evaluating rule: m`,
    ])
  })
  test('that rules were not evaluated because the object is invalid', () => {
    expect(errorTexts(spec({ a: { type: 'string' } }, rule('false')), { a: 1 })).toEqual([
      'spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"',
      '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    ])
    const earlier = { type: 'FieldValueRequired', field: 'metadata.name', text: 'Required value' } as const
    expect(structural(spec({}, rule('false'))).validate({ spec: {} }, undefined, [earlier])).toHaveLength(1)
  })
})

describe('a default', () => {
  const size: JSONSchema = { type: 'object', properties: { size: { type: 'integer' } } }
  test.each<{ rule: string; value: object; errors: string[] }>([
    { rule: 'self.size >= oldSelf.size', value: { size: 1 }, errors: [] },
    {
      rule: 'self.size > oldSelf.size',
      value: { size: 1 },
      errors: ['Invalid value: failed rule: self.size > oldSelf.size'],
    },
    {
      rule: 'self.size >= oldSelf.size',
      value: {},
      errors: ['Invalid value: "object": no such key: size evaluating rule: self.size >= oldSelf.size'],
    },
    { rule: 'self.size > 1', value: { size: 1 }, errors: ['Invalid value: failed rule: self.size > 1'] },
  ])('$value is validated by $rule, with itself as the old value', ({ rule: source, value, errors }) => {
    expect(ruleErrorsOfValue({ ...size, 'x-kubernetes-validations': rule(source) }, value).map(({ text }) => text)).toEqual(
      errors,
    )
  })
})

describe('a costly rule', () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
  const list: JSONSchema = { type: 'array', items: { type: 'integer' } }
  const cases: [title: string, rule: string][] = [
    ['nested loops over the object', 'self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))'],
    ['loops that ignore failures', 'self.l.exists(a, self.l.exists(b, self.l.exists(c, a / 0 == b + c)))'],
    ['loops over literals', `[1,2,3,4,5,6,7,8,9].all(a, ${'[1,2,3,4,5,6,7,8,9].all(b, '.repeat(8)}true${')'.repeat(9)}`],
    ['strings that double', `['aaaaaaaaaa'].all(a, ${'[a + a].all(a, '.repeat(30)}true${')'.repeat(31)}`],
    ['lists that double', `[[1]].all(a, ${'[a + a].all(a, '.repeat(30)}true${')'.repeat(31)}`],
    ['comparisons of long lists with short ones', 'self.l.all(a, self.l.all(b, self.l + [a] != [b] && self.l != self.l + [b]))'],
    ['distinct items of lists', 'self.l.all(a, self.l.distinct().size() > 0 && self.l.distinct().size() > 0)'],
    ['sets of long lists', 'self.l.all(a, sets.equivalent(self.l, self.l.reverse()))'],
    ['patterns over long texts', "self.l.all(a, self.t.matches('^(a|aa)+$|b{100}|(a*)*c'))"],
  ]
  test.each(cases)('is stopped: %s', (_title, text) => {
    const errors = errorTexts(spec({ l: list, t: { type: 'string' } }, rule(text, { message: 'm' })), {
      l: numbers(200),
      t: 'a'.repeat(10_000),
    })
    expect(errors).toEqual([
      `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: m`,
    ])
  })
})

test('other work can run between the rules of many items', () => {
  const items: JSONSchema = {
    type: 'array',
    items: { type: 'array', items: { type: 'string' }, 'x-kubernetes-validations': rule('self.all(x, x != "b")') },
  }
  const value = Array.from({ length: 30 }, () => Array.from({ length: 10_000 }, () => 'a'))
  const work = structural(spec({ lists: items })).validating({ spec: { lists: value } })
  let pieces = 1
  while (!work.next().done) pieces++
  expect(pieces).toBeGreaterThan(10)
})
