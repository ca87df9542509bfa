/**
 * Tests that signed 64-bit integers keep all digits, also beyond 2^53, except in places where kube-apiserver uses floats. Expected
 * responses of single requests are those of a real kube-apiserver v1.36.2.
 */
import { exactInteger, seededRandom, silent, VirtualClock, writeJSON } from '@capstan/kube'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { storesOf } from '../store/durable.ts'
import { Journal, makeState } from '../store/journal.ts'
import { type ObjectEncoding, plainObjects, packedObjects } from '../store/packed.ts'
import { SimulatedDisk } from '../store/simulated-disk.ts'
import { quiet } from '@capstan/kubernetes-kinds/test-server'
import { createHandler } from './handler.ts'
import { webHandler } from './web.ts'

const administrator = { kind: 'user', name: 'admin', groups: ['system:masters'] } as const
const folder = '/data/state'
const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const path = '/apis/t.example.com/v1/namespaces/default/bigs'
const definition = `{"metadata": {"name": "bigs.t.example.com"}, "spec": {
  "group": "t.example.com", "scope": "Namespaced", "names": {"plural": "bigs", "singular": "big", "kind": "Big", "listKind": "BigList"},
  "versions": [{"name": "v1", "served": true, "storage": true,
    "selectableFields": [{"jsonPath": ".spec.i"}],
    "additionalPrinterColumns": [
      {"name": "I", "type": "integer", "jsonPath": ".spec.i"}, {"name": "S", "type": "string", "jsonPath": ".spec.i"},
      {"name": "N", "type": "number", "jsonPath": ".spec.n"}, {"name": "IN", "type": "integer", "jsonPath": ".spec.n"},
      {"name": "P", "type": "string", "jsonPath": ".spec.p"}],
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
      "i": {"type": "integer", "format": "int64"}, "i32": {"type": "integer", "format": "int32"}, "n": {"type": "number"},
      "s": {"x-kubernetes-int-or-string": true}, "str": {"type": "string"},
      "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
      "default": {"type": "integer", "format": "int64", "default": 9223372036854775807},
      "enum": {"type": "integer", "enum": [9007199254740993, -9007199254740993, 5]},
      "min": {"type": "integer", "minimum": 9007199254740993},
      "max": {"type": "integer", "maximum": 9007199254740993, "exclusiveMaximum": true},
      "multiple": {"type": "integer", "multipleOf": 3}, "half": {"type": "number", "multipleOf": 0.5},
      "rule": {"type": "integer", "format": "int64", "x-kubernetes-validations": [
        {"rule": "self != 9007199254740993"}, {"rule": "self - 1 != 9223372036854775806", "message": "max"}]},
      "either": {"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [{"rule": "type(self) == string || self > 9007199254740993"}]},
      "fixed": {"type": "integer", "format": "int64", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}]},
      "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer", "format": "int64"}},
      "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer", "format": "int64"}, "v": {"type": "string"}}}}
    }}}}}}]}}`

async function serve(disk: SimulatedDisk, encode: ObjectEncoding) {
  const clock = new VirtualClock()
  const journal = await Journal.open(folder, { clock, log: silent, files: disk, sync: true, checkpointAfter: 20_000, encode })
  const stores = storesOf(journal, clock, encode)
  const server = createApiServer({ clock, random: seededRandom(1), store: await stores.store('management') })
  await server.ready
  const handle = webHandler(createHandler({ engine: server.engine, clock }))
  const send = async (method: string, path: string, body?: string, type = 'application/json', accept = 'application/json') => {
    const init = body === undefined ? {} : { body, headers: { 'content-type': type, accept } }
    const response = await handle(new Request(`https://server${path}`, { method, headers: { accept }, ...init }), administrator)
    return { status: response.status, text: await response.text() }
  }
  return { send, stop: () => server.close().then(() => stores.close()) }
}

async function newServer(encode: ObjectEncoding = plainObjects) {
  const disk = new SimulatedDisk(seededRandom(1))
  await makeState(disk, folder, new Map(), 0)
  const served = await serve(disk, encode)
  expect(await served.send('POST', crdPath, definition)).toMatchObject({ status: 201 })
  await quiet()
  return { disk, ...served }
}

const big = (name: string, spec: string): string =>
  `{"apiVersion": "t.example.com/v1", "kind": "Big", "metadata": {"name": "${name}"}, "spec": ${spec}}`
/** Returns the spec of the object in a response, or the message of an error. */
const specOrMessage = ({ text }: { text: string }): string =>
  /"spec":(\{.*\})\}/.exec(text)?.[1] ?? (JSON.parse(text) as { message: string }).message

let server: Awaited<ReturnType<typeof newServer>>
beforeAll(async () => {
  server = await newServer()
})
afterAll(() => server.stop())

const notChecked =
  '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
const max = '9223372036854775807'

describe('a create', () => {
  let count = 0
  test.each([
    ['{"i":9007199254740993}', `{"i":9007199254740993,"default":${max}}`],
    ['{"i":-9223372036854775808}', `{"i":-9223372036854775808,"default":${max}}`],
    ['{"n":9223372036854775807}', `{"n":${max},"default":${max}}`],
    ['{"n":9223372036854775808}', `{"n":9223372036854776000,"default":${max}}`],
    ['{"s":-9007199254740993}', `{"s":-9007199254740993,"default":${max}}`],
    ['{"p":{"x":[9007199254740993,1e18]}}', `{"p":{"x":[9007199254740993,1000000000000000000]},"default":${max}}`],
    ['{"set":[9007199254740993,9007199254740992]}', `{"set":[9007199254740993,9007199254740992],"default":${max}}`],
    ['{"enum":9007199254740993}', `{"enum":9007199254740993,"default":${max}}`],
    ['{"min":9007199254740992}', `{"min":9007199254740992,"default":${max}}`],
    ['{"multiple":9007199254740993}', `{"multiple":9007199254740993,"default":${max}}`],
    ['{"rule":9007199254740992}', `{"rule":9007199254740992,"default":${max}}`],
    ['{"either":9007199254740994}', `{"either":9007199254740994,"default":${max}}`],
    [
      '{"enum":9007199254740992}',
      `[spec.enum: Unsupported value: 9007199254740992: supported values: "9007199254740993", "-9007199254740993", "5", ${notChecked}]`,
    ],
    [
      '{"i":9223372036854775808}',
      `[spec.i: Invalid value: "float64": spec.i in body must be of type int64: "float64", <nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.i, ${notChecked}]`,
    ],
    ['{"i":1e18}', `[spec.i: Invalid value: "float64": spec.i in body must be of type int64: "float64", ${notChecked}]`],
    [
      '{"str":9007199254740993}',
      `[spec.str: Invalid value: "integer": spec.str in body must be of type string: "integer", ${notChecked}]`,
    ],
    [
      '{"max":9007199254740993}',
      'spec.max: Invalid value: 9007199254740993: spec.max in body should be less than 9007199254740992',
    ],
    [
      '{"multiple":9007199254740992}',
      'spec.multiple: Invalid value: 9007199254740992: spec.multiple in body should be a multiple of 3',
    ],
    ['{"half":9007199254740993}', 'spec.half: Invalid value: 0: factor MultipleOf declared for spec.half must be positive: 0'],
    ['{"half":1e18}', 'spec.half: Invalid value: 1e+18: spec.half in body should be a multiple of 0.5'],
    ['{"i32":9007199254740993}', '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32'],
    ['{"rule":9007199254740993}', 'spec.rule: Invalid value: 9007199254740993: failed rule: self != 9007199254740993'],
    [`{"rule":${max}}`, `spec.rule: Invalid value: ${max}: max`],
    [
      '{"either":9007199254740993}',
      'spec.either: Invalid value: 9007199254740993: failed rule: type(self) == string || self > 9007199254740993',
    ],
  ])('of %s returns %s', async (spec, expected) => {
    const name = `c${count++}`
    const result = specOrMessage(await server.send('POST', path, big(name, spec)))
    expect(result).toBe(expected.startsWith('{') ? expected : `Big.t.example.com "${name}" is invalid: ${expected}`)
  })

  test.each([
    ['9007199254740993', '9007199254740993'],
    ['0x7fffffffffffffff', max],
    ['-9_007_199_254_740_993', '-9007199254740993'],
    ['1e18', '1000000000000000000'],
    ['9007199254740993.0', '9007199254740992'],
  ])('in YAML stores %s as %s', async (text, expected) => {
    const body = `apiVersion: t.example.com/v1\nkind: Big\nmetadata:\n  name: y${count++}\nspec:\n  i: ${text}\n`
    const response = await server.send('POST', path, body, 'application/yaml', 'application/yaml')
    expect(response).toMatchObject({ status: 201, text: expect.stringContaining(`\n  i: ${expected}\n`) })
  })
})

test('patches, managed fields and rules distinguish integers that are equal as doubles', async () => {
  const spec =
    '{"i":9007199254740993,"fixed":9007199254740993,"map":[{"k":9007199254740993,"v":"a"}],"p":{"x":9223372036854775807}}'
  await server.send('POST', path, big('patched', spec))
  const patch = (type: string, body: string, query = '') =>
    server.send('PATCH', `${path}/patched${query}`, body, `application/${type}`)

  expect((await patch('merge-patch+json', '{"spec":{"fixed":9007199254740992}}')).text).toContain('immutable')
  const testAndCopy = (value: string) =>
    `[{"op":"test","path":"/spec/i","value":${value}},{"op":"copy","from":"/spec/i","path":"/spec/p/y"}]`
  expect(await patch('json-patch+json', testAndCopy('9007199254740992'))).toMatchObject({ status: 422 })
  expect(specOrMessage(await patch('json-patch+json', testAndCopy('9007199254740993')))).toContain(
    '"p":{"x":9223372036854775807,"y":9007199254740993}',
  )
  const apply = (value: string, manager: string) =>
    patch(
      'apply-patch+yaml',
      big('patched', `{"i":${value},"map":[{"k":9007199254740995,"v":"b"}],"set":[${value}]}`),
      `?fieldManager=${manager}&force=${manager === 'me'}`,
    )
  const applied = await apply('9223372036854775806', 'me')
  expect(applied.text).toContain('"k:{\\"k\\":9007199254740995}"')
  expect(applied.text).toContain('"v:9223372036854775806"')
  expect(specOrMessage(applied)).toContain('"map":[{"k":9007199254740993,"v":"a"},{"k":9007199254740995,"v":"b"}]')
  expect(await apply('9223372036854775806', 'you')).toMatchObject({ status: 200 })
  expect(await apply('9223372036854775805', 'you')).toMatchObject({ status: 409 })
})

test('integers have all digits in selectors and columns, but not in columns of type number', async () => {
  await server.send('POST', path, big('shown-1', '{"i":9007199254740997,"n":9007199254740993,"p":{"x":9007199254740993}}'))
  await server.send('POST', path, big('shown-2', '{"i":9007199254740996,"n":1.5e300}'))
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  const cells = async (value: string) => {
    const { text } = await server.send('GET', `${path}?fieldSelector=spec.i%3D${value}`, undefined, undefined, table)
    return /"cells":(\[.*?\]),"object"/.exec(text)?.[1]
  }
  expect(await cells('9007199254740997')).toBe(
    String.raw`["shown-1",9007199254740997,"9007199254740997",9007199254740992,9007199254740993,"{\"x\":9007199254740993}"]`,
  )
  expect(await cells('9007199254740996')).toBe(
    '["shown-2",9007199254740996,"9007199254740996",1.5e+300,-9223372036854775808,null]',
  )
})

test.each([
  ['pods', '{"spec":{"containers":[],"priority":9007199254740993}}', 'PodSpec.spec.priority of type int32'],
  [
    'services',
    '{"spec":{"ports":[{"port":80,"targetPort":9007199254740993}]}}',
    'ServicePort.spec.ports.targetPort of type int32',
  ],
  ['events', '{"count":9007199254740993}', 'Event.count of type int32'],
])('integers beyond 32 bits are rejected in int32 fields of %s', async (plural, body, field) => {
  const { text } = await server.send('POST', `/api/v1/namespaces/default/${plural}`, body)
  expect(text).toContain(`json: cannot unmarshal number 9007199254740993 into Go struct field ${field}`)
})

test('limits beyond 2^53 in a schema apply to the estimated cost of rules, and to objects after a restart', async () => {
  const { disk, send, stop } = await newServer()
  const limits =
    '"minLength": 9007199254740993, "maxLength": 9223372036854775807, "x-kubernetes-validations": [{"rule": "self != \\"\\""}]'
  const schema = `{"type": "object", "properties": {"spec": {"type": "object", "properties": {
    "text": {"type": "string", ${limits}}, "list": {"type": "array", "maxItems": 9223372036854775807, "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}},
    "number": {"type": "integer", "multipleOf": 9007199254740992, "maximum": 9223372036854775000}}}}}`
  const names = '"names": {"plural": "limits", "singular": "limit", "kind": "Limit", "listKind": "LimitList"}'
  const limited = `{"metadata": {"name": "limits.t.example.com"}, "spec": {"group": "t.example.com", "scope": "Cluster", ${names},
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": ${schema}}}]}}`
  expect((await send('POST', crdPath, limited)).text).toContain('estimated rule cost')
  const cheap = limited.replaceAll(/, "x-kubernetes-validations": \[.*?\]/g, '')
  expect(await send('POST', crdPath, cheap)).toMatchObject({ status: 201 })
  await stop()
  const restarted = await serve(disk, plainObjects)
  await quiet()
  const create = (spec: string) =>
    restarted.send(
      'POST',
      '/apis/t.example.com/v1/limits',
      `{"apiVersion": "t.example.com/v1", "kind": "Limit", "metadata": {"name": "a"}, "spec": ${spec}}`,
    )
  expect((await create('{"text":"x"}')).text).toContain('should be at least 9007199254740993 chars long')
  expect((await create('{"number":9007199254740993}')).text).toContain('should be a multiple of 9007199254740992')
  expect(await create('{"number":9007199254740992,"list":["a"]}')).toMatchObject({ status: 201 })
  await restarted.stop()
})

const specs = fc.record({
  i: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(exactInteger),
  p: fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(afterParsing), {
    noNullPrototype: true,
  }),
  set: fc.uniqueArray(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })).map((integers) => integers.map(exactInteger)),
})

/** Returns an integer as the server parses it: integers beyond the range of signed 64-bit integers become floats. */
function afterParsing(integer: bigint): number | bigint {
  return BigInt.asIntN(64, integer) === integer ? exactInteger(integer) : Number(integer)
}

describe.each([
  ['as objects', plainObjects],
  ['packed', packedObjects(2)],
])('stored %s', (_, encode) => {
  test('random integers survive create, patch, apply and a restart', async () => {
    const { disk, send, stop } = await newServer(encode)
    const samples = fc.sample(specs, { numRuns: 25, seed: 1 })
    const expected: string[] = []
    for (const [index, spec] of samples.entries()) {
      const name = `any-${index}`
      const objectPath = `${path}/${name}`
      expect(await send('POST', path, big(name, writeJSON({ i: spec.i, p: spec.p })))).toMatchObject({ status: 201 })
      const operations = writeJSON([
        { op: 'test', path: '/spec/i', value: spec.i },
        { op: 'add', path: '/spec/p/added', value: spec.i },
      ])
      expect(await send('PATCH', objectPath, operations, 'application/json-patch+json')).toMatchObject({ status: 200 })
      const applied = `{"apiVersion": "t.example.com/v1", "kind": "Big", "spec": ${writeJSON({ set: spec.set })}}`
      expect(await send('PATCH', `${objectPath}?fieldManager=me`, applied, 'application/apply-patch+yaml')).toMatchObject({
        status: 200,
      })
      expected.push(writeJSON({ i: spec.i, p: { ...spec.p, added: spec.i }, default: 2n ** 63n - 1n, set: spec.set }))
    }
    await stop()
    const restarted = await serve(disk, encode)
    await quiet()
    const list = (await restarted.send('GET', path)).text
    for (const [index, spec] of expected.entries()) {
      expect(specOrMessage(await restarted.send('GET', `${path}/any-${index}`))).toBe(spec)
      expect(list).toContain(`"spec":${spec}`)
    }
    await restarted.stop()
  })
})
