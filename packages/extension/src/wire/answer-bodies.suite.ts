/** Generates response bodies for tests. Most parts of a body match the schema; some values, syntax or bytes are invalid. */
import type { JSONSchema } from '@capstan/kube'
import fc from 'fast-check'

/** Returns a fast-check arbitrary of bodies derived from `schema`. */
export function answerBodies(schema: JSONSchema): fc.Arbitrary<Uint8Array> {
  const texts = new Texts(schema.definitions ?? {}).of(schema, maxDepth)
  return fc
    .record({
      text: texts,
      before: often('', ' ', '\n', '\ufeff', 'x'),
      after: often('', ' ', '\n', ' {}', 'x', '}', '\u0000', ']'),
      cut: seldom(fc.nat(200)),
      put: seldom(fc.record({ at: fc.nat(200), bytes: fc.constantFrom(...strayBytes) })),
    })
    .map(({ text, before: prefix, after: suffix, cut, put }) => {
      const bytes = [...Buffer.from(prefix + text + suffix)]
      if (put) bytes.splice(put.at % (bytes.length + 1), 0, ...put.bytes)
      if (cut !== undefined) bytes.splice(cut % (bytes.length + 1))
      return Uint8Array.from(bytes)
    })
}

const strayBytes = [
  [0xff],
  [0xc3],
  [0xe2, 0x82],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x9f, 0x98],
  [0xc2, 0xad],
  [0xc2, 0xa0],
  [0x00],
  [0x1f],
  [0x7f],
  [0x07],
  [0x22],
  [0x27],
  [0x5c],
  [0x2c],
  [0x7b],
  [0x5d],
  [0x2d],
  [0x65],
]

const often = (usual: string, ...others: string[]) =>
  fc.oneof({ weight: 30, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) })
const seldom = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

/** Maximum nesting of values that follow the schema. It suffices for a schema nested in the schema of a variable. */
const maxDepth = 9

/** Arbitraries of texts by schema and depth, cached because schemas are recursive. */
class Texts {
  readonly #definitions: { readonly [name: string]: JSONSchema }
  readonly #made = new Map<JSONSchema, fc.Arbitrary<string>[]>()

  constructor(definitions: { readonly [name: string]: JSONSchema }) {
    this.#definitions = definitions
  }

  /** Returns an arbitrary of texts that match the schema, and sometimes of other texts. */
  of(schemaOrRef: JSONSchema, depth: number): fc.Arbitrary<string> {
    const schema =
      schemaOrRef.$ref === undefined ? schemaOrRef : this.#definitions[schemaOrRef.$ref.slice('#/definitions/'.length)]!
    const arbitraries = this.#made.get(schema) ?? []
    this.#made.set(schema, arbitraries)
    arbitraries[depth] ??= fc.oneof(
      { weight: 200, arbitrary: this.#matching(schema, depth) },
      { weight: 10, arbitrary: fc.constant('null') },
      { weight: 10, arbitrary: fc.constantFrom(...validTexts) },
      { weight: 1, arbitrary: fc.constantFrom(...invalidTexts) },
    )
    return arbitraries[depth]
  }

  #matching(schema: JSONSchema, depth: number): fc.Arbitrary<string> {
    switch (schema.type) {
      case 'string':
        return schema.format === 'byte' ? fc.constantFrom(...binaries) : strings(schema)
      case 'integer':
      case 'number':
        return fc.oneof({ weight: 6, arbitrary: fc.nat(40).map(String) }, { weight: 1, arbitrary: fc.constantFrom(...numbers) })
      case 'boolean':
        return fc.constantFrom('true', 'false')
      case 'array':
        return depth === 0
          ? fc.constant('[]')
          : fc.array(this.of(schema.items ?? {}, depth - 1), { maxLength: 3 }).map((items) => `[${items.join(',')}]`)
      case 'object':
        return depth === 0 ? fc.constant('{}') : this.#object(schema, depth)
      case undefined:
    }
    return fc.constantFrom(...validTexts, ...numbers)
  }

  #object(schema: JSONSchema, depth: number): fc.Arbitrary<string> {
    const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => fc.tuple(keys(name), this.of(field, depth - 1)))
    const free = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : anything
    const others = fc.tuple(
      fc.constantFrom('a', 'b', '', 'constructor', '__proto__', 'stat\\u0075s').map((key) => `"${key}"`),
      this.of(free, depth - 1),
    )
    const member =
      fields.length === 0 ? others : fc.oneof({ weight: 6, arbitrary: fc.oneof(...fields) }, { weight: 1, arbitrary: others })
    return fc
      .tuple(fc.array(member, { maxLength: 7 }), often('', ' ', '\n\t'))
      .map(
        ([members, space]) => `{${members.map(([key, value]) => `${space}${key}${space}:${space}${value}`).join(`${space},`)}}`,
      )
  }
}

const anything: JSONSchema = {}

/**
 * Returns an arbitrary of a key: in most cases the name itself, otherwise the name in another case, with non-ASCII letters (some fold to
 * ASCII letters), or followed by a space.
 */
const keys = (name: string) =>
  fc
    .oneof(
      { weight: 10, arbitrary: fc.constant(name) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          name.toUpperCase(),
          name[0]!.toUpperCase() + name.slice(1),
          name.replace('s', '\u017f'),
          name.replace('k', '\u212a'),
          name.replace('ss', '\u00df'),
          name.replace('i', '\u0130'),
          `${name} `,
        ),
      },
    )
    .map((key) => `"${key}"`)

const strings = ({ enum: values }: JSONSchema) =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .constantFrom(...((values as string[] | undefined) ?? ['Success', 'x', 'v1.36.0']))
        .map((text) => JSON.stringify(text)),
    },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 5 }).map((text) => JSON.stringify(text)) },
    { weight: 1, arbitrary: fc.constantFrom(...oddStrings) },
  )

const oddStrings = [
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\ud83d\\ude00"',
  '"\\uD83D\\uDE00\\u0000\\/"',
  '"\u2028\u00e9"',
  '"\\ufeff"',
]

const binaries = [
  'W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d',
  'e30=',
  'QQ==',
  'QR==',
  '',
  'Q',
  'QQ',
  'QQ=',
  'QQ===',
  'QQ==x',
  'QQ==\\n',
  'Q\\r\\nQ\\n=\\n=',
  'Q=Q=',
  '=QQ=',
  'a-_b',
  'é===',
  'QUJD=',
  'QUJDQ\\n',
]
  .map((text) => `"${text}"`)
  .concat('[91,93]', '[]', '[null]', '[256]', '[-1]', '[1.0]', '["a"]', '[[]]')

const numbers = [
  '-0',
  '-1',
  '5.0',
  '5.5',
  '1e1',
  '1E400',
  '0.1e-400',
  '2147483647',
  '2147483648',
  '-2147483648',
  '-2147483649',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775809',
  '123456789012345678901234567890',
]

/** JSON texts of any type. */
const validTexts = [
  'true',
  'false',
  '0',
  '1.50',
  '"text"',
  '""',
  '[]',
  '{}',
  '[null]',
  '[1,2]',
  '[[{}]]',
  '{"a":{"b":[1]}}',
  '{"status":"Success"}',
  '{"a":1,"a":2}',
  `${'['.repeat(60)}${']'.repeat(60)}`,
]

/** Texts that are not JSON. */
const invalidTexts = [
  'nul',
  'nulL',
  'True',
  '"open',
  '[1,]',
  '{"a":}',
  '{"a":1,}',
  '{a:1}',
  '[1 2]',
  '{"a" 1}',
  '01',
  '+1',
  '-',
  '1.',
  '.5',
  '0x10',
  'NaN',
  '"\\x41"',
  '"\\u12"',
  '"\t"',
  "'single'",
]
