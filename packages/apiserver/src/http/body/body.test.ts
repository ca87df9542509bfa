import { StatusError, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import type { Resource } from '../../registry/resource.ts'
import { builtinResource } from '../../../../kubernetes-kinds/src/builtin-resources.ts'
import { type Decoded, readObject } from './body.ts'
import { readPatch } from './patch.ts'
import { YAMLReader } from './read-yaml.ts'

const yaml = new YAMLReader(new VirtualClock())
const readers = { yaml: yaml.for({}), protobufMessages: {}, clock: new VirtualClock() }
const configMaps = builtinResource('/v1/configmaps') as Resource
const widgets = { ...configMaps, kind: 'W', plural: 'ws', group: 'e.com', builtin: false }

const request = (text: string, type: string) => ({
  method: 'POST',
  url: '/',
  headers: { 'content-type': type },
  signal: new AbortController().signal,
  streamSignal: new AbortController().signal,
  body: () => Promise.resolve(Buffer.from(text)),
})

const outcomeOf = async (reading: Promise<unknown>): Promise<unknown> => {
  try {
    return await reading
  } catch (err) {
    return err instanceof StatusError ? `${err.code} ${err.message}` : err
  }
}
const unrecognized = (problem: string) =>
  expect.stringContaining(`400 the object provided is unrecognized (must be of type W): ${problem}`)
const exponential = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
  .split('')
  .map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefghi'[i]}`).join(',')}]`)
  .join('\n')}`
const nested = (open: string, depth: number, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`

test.each([
  ['not YAML', 'a: [1', 'yaml: '],
  ['an object with aliases that expand exponentially', exponential, 'yaml: document contains excessive aliasing'],
  [
    'an object with aliases of empty lists that expand exponentially',
    exponential.replace('[x,x,x,x,x,x,x,x,x]', '[]'),
    'yaml: document contains excessive aliasing',
  ],
  [
    'an object with many aliases of a long text',
    `a: &a ${'x'.repeat(7000)}\nb: [${Array(900).fill('*a').join(',')}]`,
    'yaml: document contains excessive aliasing',
  ],
  ['nested too deeply', `a: ${nested('[', 1100, ']')}`, 'yaml: exceeded max depth'],
  ['nested so deeply that the parser exceeds the stack', `a: ${nested('[', 40_000, ']')}`, 'yaml: exceeded max depth'],
  ['a string', 'abc', "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value"],
  ['a list', '[1]', "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value"],
  ['null', 'null', "Object 'Kind' is missing in 'null' (6e756c6c)"],
  [
    'an object with a number that is infinite as a double',
    'kind: W\napiVersion: e.com/v1\na: .inf',
    'json: cannot unmarshal number .inf',
  ],
  ['an object with an infinite number 1.e400', 'kind: W\napiVersion: e.com/v1\na: 1.e400', 'json: cannot unmarshal number'],
  [
    'an object with an infinite hexadecimal number',
    `kind: W\napiVersion: e.com/v1\na: 0x${'f'.repeat(300)}`,
    'json: cannot unmarshal number',
  ],
])('a YAML body is rejected when it is %s', async (_, text, problem) => {
  expect(await outcomeOf(readObject(request(text, 'application/yaml'), widgets, {}, readers))).toEqual(unrecognized(problem))
})

test.each([
  ['too deep', nested('{"a":', 20_000, '}'), "couldn't get version/kind; json parse error: "],
  [
    'binary data',
    '\x1f\x08',
    "couldn't get version/kind; json parse error: invalid character '\\x1f' looking for beginning of value",
  ],
  [
    'an object with a number that is infinite as a double',
    '{"kind":"W","apiVersion":"e.com/v1","a":-1e999}',
    "couldn't get version/kind; json parse error: json: cannot unmarshal number -1e999 into Go value of type float64",
  ],
  [
    'an object with a long number that is infinite as a double',
    `{"kind":"W","apiVersion":"e.com/v1","a":1e10,"b":${'9'.repeat(250)}e99}`,
    `couldn't get version/kind; json parse error: json: cannot unmarshal number ${'9'.repeat(250)}e99 into Go value of type float64`,
  ],
  ['null', 'null', "Object 'Kind' is missing in 'null' (6e756c6c)"],
])('a JSON body is rejected when it is %s', async (_, text, problem) => {
  expect(await outcomeOf(readObject(request(text, 'application/json'), widgets, {}, readers))).toEqual(unrecognized(problem))
})

test.each([
  ['not YAML', 'a: [1', expect.stringMatching(/^400 error decoding YAML: error converting YAML to JSON: yaml: /)],
  [
    'an object with aliases that expand exponentially',
    exponential,
    '400 error decoding YAML: error converting YAML to JSON: yaml: document contains excessive aliasing',
  ],
  [
    'a list',
    '[1]',
    '400 error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}',
  ],
  ['empty', '', '400 invalid object type: /, Kind='],
])('the body of an apply is rejected when it is %s', async (_, text, rejection) => {
  const type = 'application/apply-patch+yaml'
  expect(await outcomeOf(readPatch(request(text, type), type, {}, readers))).toEqual(rejection)
})

test('each YAML alias is expanded to its own copy', async () => {
  const { body } = await readObject(
    request('kind: W\napiVersion: e.com/v1\na: &a {b: 1}\nc: *a', 'application/yaml'),
    widgets,
    {},
    readers,
  )
  const { a, c } = body as { a: object; c: object }
  expect(c).toEqual(a)
  expect(c).not.toBe(a)
})

test('only the first of several YAML documents is parsed', async () => {
  const text = 'kind: W\napiVersion: e.com/v1\n---\nkind: V\n'
  expect(await readObject(request(text, 'application/yaml'), widgets, {}, readers)).toEqual({
    body: { kind: 'W', apiVersion: 'e.com/v1' },
    duplicates: [],
  })
})

test('parsing long YAML does not block the event loop', async () => {
  let otherTurns = 0
  let done = false
  const turn = () => {
    otherTurns++
    if (!done) setImmediate(turn)
  }
  turn()
  const text = `kind: W\napiVersion: e.com/v1\n${Array.from({ length: 5000 }, (_, i) => `k${i}: v`).join('\n')}`
  const { body } = await readObject(request(text, 'application/yaml'), widgets, {}, readers)
  done = true
  expect(Object.keys(body as object)).toHaveLength(5002)
  expect(otherTurns).toBeGreaterThan(5)
})

test('YAML that is not parsed within ten seconds is rejected', async () => {
  const clock = new VirtualClock()
  const reading = outcomeOf(new YAMLReader(clock).read('"'.repeat(1_000_000)).catch((err: Error) => err.message))
  await new Promise(setImmediate)
  clock.step(clock.now() + 10_000)
  expect(await reading).toBe('yaml: document takes too long to read')
})

test.each([
  [
    'a create',
    'kind: W\nkind: W',
    (httpRequest: ReturnType<typeof request>, bodyReaders: typeof readers) => readObject(httpRequest, widgets, {}, bodyReaders),
  ],
  [
    'an apply of JSON',
    '{"kind":"W","kind":"W"}',
    (httpRequest: ReturnType<typeof request>, bodyReaders: typeof readers) =>
      readPatch(httpRequest, 'application/apply-patch+yaml', {}, bodyReaders),
  ],
])(
  'the body of %s with duplicate keys is parsed once as YAML, and an error of the YAML parser rejects the request',
  async (_, text, read) => {
    let parsed = 0
    const counting: typeof readers.yaml = (text) => (parsed++, readers.yaml(text))
    const { duplicates } = (await read(request(text, 'application/yaml'), { ...readers, yaml: counting })) as Decoded
    expect([parsed, duplicates.length]).toEqual([1, 1])
    const failing = () => Promise.reject(new Error('yaml: document takes too long to read'))
    expect(await outcomeOf(read(request(text, 'application/yaml'), { ...readers, yaml: failing }))).toMatch(
      /^400 .*document takes too long to read/,
    )
  },
)

test.each(['', '   ', 'null', '# nothing'])(
  'YAML without a value is decoded as an empty object for a built-in kind: %j',
  async (text) => {
    const builtin = { ...widgets, builtin: true }
    expect(await readObject(request(text, 'application/yaml'), builtin, {}, readers)).toEqual({ body: {}, duplicates: [] })
  },
)

describe('a body with more than 250,000 objects and lists', () => {
  const tooLarge = '413 Request entity too large: The allowed maximum of objects and lists in a body is 250000'
  const lists = (count: number) => `[${Array(count).fill('[]').join(',')}]`
  const manyLists = `{"kind":"W","apiVersion":"e.com/v1","a":${lists(250_000)}}`

  test('is rejected as JSON, and accepted with fewer', async () => {
    const read = (text: string) => outcomeOf(readObject(request(text, 'application/json'), widgets, {}, readers))
    expect(await read(manyLists)).toBe(tooLarge)
    expect(await read(manyLists.replaceAll('[],[],', '[],'))).toMatchObject({ duplicates: [] })
  })

  test.each(['application/merge-patch+json', 'application/apply-patch+yaml'] as const)('is rejected as %s', async (type) =>
    expect(await outcomeOf(readPatch(request(manyLists, type), type, {}, readers))).toBe(tooLarge),
  )

  test('is rejected as YAML, in which each copy of an alias counts', async () => {
    const text = `a: &a ${lists(2_600)}\nb: [${Array(96).fill('*a').join(',')}]`
    expect(await outcomeOf(readObject(request(text, 'application/yaml'), widgets, {}, readers))).toBe(tooLarge)
  })

  /** Encodes a protobuf field that contains bytes. Always encodes the length in three bytes, even when one byte is enough. */
  const field = (number: number, value: Buffer) =>
    Buffer.concat([
      Buffer.from([(number << 3) | 2, 0x80 | (value.length & 0x7f), 0x80 | ((value.length >> 7) & 0x7f), value.length >> 14]),
      value,
    ])

  test.each<[string, string, Buffer]>([
    ['messages', '1 items []core/v1.ConfigMap', Buffer.from('\n\0'.repeat(250_001))],
    ['lists in JSON', '1 data JSON', field(1, field(1, Buffer.from(lists(250_000))))],
    ['lists in a map', '1 extra {}[]string', Buffer.from('\n\x02\x12\0'.repeat(250_001))],
    ['omitted lists in a map', '1 extra {}[]string', Buffer.from('\n\0'.repeat(250_001))],
    ['lists in messages', '1 items []core/v1.ConfigMap, 2 names []string', Buffer.from('\n\x02\x12\0'.repeat(125_001))],
  ])('is rejected as protobuf with %s', async (_, fields, message) => {
    const body = Buffer.concat([Buffer.from('k8s\0\n\x0f\n\x02v1\x12\tConfigMap'), field(2, message)])
    const reading = readObject(
      { ...request('', 'application/vnd.kubernetes.protobuf'), body: () => Promise.resolve(body) },
      configMaps,
      {},
      { ...readers, protobufMessages: { 'core/v1.ConfigMap': fields } },
    )
    expect(await outcomeOf(reading)).toBe(tooLarge)
  })
})

test('an invalid protobuf body gets the error of a real server, and a body with the key "__proto__" is rejected', async () => {
  const protobuf = (base64: string) =>
    outcomeOf(
      readObject(
        { ...request('', 'application/vnd.kubernetes.protobuf'), body: () => Promise.resolve(Buffer.from(base64, 'base64')) },
        configMaps,
        {},
        { ...readers, protobufMessages: { 'core/v1.ConfigMap': '2 data {}string' } },
      ),
    )
  expect(await protobuf('azhz')).toContain(
    '400 the object provided is unrecognized (must be of type ConfigMap): provided data does not',
  )
  // A ConfigMap whose data is a varint, and one with the key "__proto__".
  const envelope = Buffer.from('k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12').toString('latin1')
  const configMap = (message: string) => protobuf(Buffer.from(`${envelope}${message}`, 'latin1').toString('base64'))
  expect(await configMap('\x02\x10\x05')).toBe(
    '400 ConfigMap in version "v1" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field Data',
  )
  expect(await configMap('\x10\x12\x0e\n\x09__proto__\x12\x01a')).toBe('400 the key "__proto__" is not allowed in any object')
})
