/**
 * Tests the decoding of responses. Expected results are those of Go's decoder; the interop suite hooks-peer compares the two decoders.
 * For random, often invalid responses, the client must return a value that matches the schema, or throw one of its errors.
 */
import { createCatalog, Discovery, type ExtensionConfig, type Hook, hookApiVersion, hookCatalog } from '@capstan/api'
import { isRecord, type JSONSchema, silent, VirtualClock } from '@capstan/kube'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { answerBodies } from './answer-bodies.suite.ts'
import { createExtensionClient } from '../client/client.ts'
import { HookFailed } from '../client/hook-failed.ts'
import { inProcess } from '../client/transport.ts'
import { decodePlain } from './plain-json.ts'
import { decodeAsGo, decodeWire } from './wire.ts'

const hookNamed = (name: string): Hook => hookCatalog.find((hook) => hook.name === name)!
const read = (name: string, body: string | Uint8Array) =>
  decodeWire(body, hookNamed(name).response, `${name}Response`, 'response')
/** Beginning of Go's error text for a JSON value of the wrong type in a field. */
const cannotUnmarshal = (value: string) => `json: cannot unmarshal ${value} into Go struct field`

describe('the decoder', () => {
  test.each<[string, string | Uint8Array, object]>([
    ['sets zero values for the missing fields status and retryAfterSeconds', '{}', { status: '', retryAfterSeconds: 0 }],
    ['accepts null as the response', 'null', { status: '', retryAfterSeconds: 0 }],
    [
      'accepts null for any field',
      '{"status":null,"retryAfterSeconds":null,"message":null}',
      { status: '', retryAfterSeconds: 0 },
    ],
    ['drops unknown fields', '{"status":"Success","more":{"a":[1,{}]}}', { status: 'Success', retryAfterSeconds: 0 }],
    ['ignores text after the first JSON value', '{"status":"Success"} and more', { status: 'Success', retryAfterSeconds: 0 }],
    ['accepts keys in any case', '{"STATUS":"Success","RetryAfterSeconds":5}', { status: 'Success', retryAfterSeconds: 5 }],
    ['accepts keys with letters that fold to ASCII', '{"ſtatus":"Success"}', { status: 'Success', retryAfterSeconds: 0 }],
    [
      'uses the last of duplicate keys, in any case',
      '{"status":"Success","STATUS":"Failure"}',
      { status: 'Failure', retryAfterSeconds: 0 },
    ],
    ['ignores null for a duplicate key', '{"status":"Success","status":null}', { status: 'Success', retryAfterSeconds: 0 }],
    ['decodes -0 as 0', '{"retryAfterSeconds":-0}', { status: '', retryAfterSeconds: 0 }],
    ['replaces half of a surrogate pair', '{"message":"\\ud800x"}', { status: '', message: '\ufffdx', retryAfterSeconds: 0 }],
    [
      'replaces bytes that are not UTF-8',
      Buffer.from([...Buffer.from('{"message":"'), 0xe2, 0x82, ...Buffer.from('"}')]),
      { status: '', message: '\ufffd\ufffd', retryAfterSeconds: 0 },
    ],
  ])('%s', (_, body, value) => expect(read('BeforeClusterCreate', body)).toEqual(value))

  test('merges the objects and lists of duplicate keys', () => {
    const body = '{"machinePatch":{"patchType":"JSONPatch"},"machinePatch":{"patch":"W10="}}'
    expect(read('CanUpdateMachine', body)).toEqual({ status: '', machinePatch: { patchType: 'JSONPatch', patch: 'W10=' } })
    const items = '{"items":[{"uid":"a"},{"uid":"b"}],"items":[{"patch":""}],"items":[null,null]}'
    expect(read('GeneratePatches', items)).toMatchObject({ items: [{ uid: 'a', patch: '' }, { uid: 'b' }] })
  })

  test('decodes null in a list as an object of zero values', () => {
    const zero = { name: '', requestHook: { apiVersion: '', hook: '' } }
    expect(read('Discovery', '{"handlers":[null]}')).toEqual({ status: '', handlers: [zero] })
  })

  test('accepts a list of numbers for bytes', () => {
    expect(read('GeneratePatches', '{"items":[{"patch":[91,93]}]}')).toMatchObject({ items: [{ patch: 'W10=' }] })
  })

  test('does not set the defaults of an API server', () => {
    const rules = '{"variables":[{"schema":{"openAPIV3Schema":{"x-kubernetes-validations":[{"rule":"true"}]}}}]}'
    const [variable] = read('DiscoverVariables', rules).variables as { schema: { openAPIV3Schema: object } }[]
    expect(variable!.schema.openAPIV3Schema).toEqual({ 'x-kubernetes-validations': [{ rule: 'true' }] })
  })

  test.each<[string, string, string]>([
    [
      'DiscoverVariables',
      '{"variables":[{"schema":{"openAPIV3Schema":{"default":[1E400]}}}]}',
      'json: cannot unmarshal number 1E400 into Go value of type float64',
    ],
    ['BeforeClusterCreate', '', 'EOF'],
    ['BeforeClusterCreate', ' {"a"', 'unexpected EOF'],
    ['BeforeClusterCreate', '\ufeff{}', "invalid character 'ï' looking for beginning of value"],
    ['BeforeClusterCreate', '{"é" é', "invalid character 'Ã' after object key"],
    ['BeforeClusterCreate', '['.repeat(10_001), "invalid character '[' exceeded max depth"],
    ['BeforeClusterCreate', '[]', 'json: cannot unmarshal array into Go value of type v1alpha1.BeforeClusterCreateResponse'],
    [
      'BeforeClusterCreate',
      '{"retryAfterSeconds":2147483648}',
      `${cannotUnmarshal('number 2147483648')} BeforeClusterCreateResponse.CommonRetryResponse.retryAfterSeconds of type int32`,
    ],
    [
      'AfterControlPlaneInitialized',
      '{"status":1}',
      `${cannotUnmarshal('number')} AfterControlPlaneInitializedResponse.CommonResponse.status of type v1alpha1.ResponseStatus`,
    ],
    [
      'Discovery',
      '{"handlers":[{"requestHook":[]}]}',
      `${cannotUnmarshal('array')} ExtensionHandler.handlers.requestHook of type v1alpha1.GroupVersionHook`,
    ],
    ['GeneratePatches', '{"items":[{"patch":"Q-=="}]}', 'illegal base64 data at input byte 1'],
    ['GeneratePatches', '{"items":[{"patch":"QQ==QQ=="}]}', 'illegal base64 data at input byte 4'],
    [
      'DiscoverVariables',
      '{"variables":[{"schema":{"openAPIV3Schema":{"properties":{"a":{"items":{"maxLength":"1"}}}}}}]}',
      `${cannotUnmarshal('string')} JSONSchemaProps.variables.schema.openAPIV3Schema.properties.items.maxLength of type int64`,
    ],
  ])("rejects, with Go's error text, the %s response %s", (name, body, message) => {
    expect(() => read(name, body)).toThrow(expect.objectContaining({ name: 'WireError', message }))
  })
})

test('for any bytes, the client returns a value that matches the response schema, or throws one of its errors', async () => {
  const catalog = createCatalog(hookCatalog)
  const config: ExtensionConfig = {
    apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
    kind: 'ExtensionConfig',
    metadata: { name: 'x', uid: 'x', resourceVersion: '1', creationTimestamp: '' },
    spec: { clientConfig: { url: 'https://x' }, namespaceSelector: {} },
  }
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'demo', namespace: 'default' } } as never
  const call = async (hook: Hook, body: Uint8Array): Promise<unknown> => {
    const client = createExtensionClient({
      transport: inProcess(async () => new Response(body as never)),
      catalog,
      clock: new VirtualClock(),
      log: silent,
      namespaceLabels: async () => ({}),
    })
    if (hook.name === Discovery.name) return { status: 'Success', handlers: await client.discover(config) }
    const requestHook = { apiVersion: hookApiVersion(hook), hook: hook.name }
    client.warmUp([{ ...config, status: { handlers: [{ name: 'h.x', requestHook }] } }])
    return client.call(hook, object, 'h.x', {} as never)
  }
  const known = ['bad-answer', 'failure', 'unknown-status', 'bad-discovery']
  const cases = fc.oneof(...hookCatalog.map((hook) => fc.tuple(fc.constant(hook), answerBodies(hook.response.json))))
  await fc.assert(
    fc.asyncProperty(cases, async ([hook, body]) => {
      try {
        const response = await call(hook, body)
        expect(response).toMatchObject({ status: 'Success' })
        expect(shapeProblems(response, hook.response.json, hook.response.json.definitions ?? {})).toEqual([])
      } catch (err) {
        if (!(err instanceof HookFailed)) throw err
        expect(known).toContain(err.code)
      }
    }),
    { seed: 1, numRuns: 1500 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
  )
})

describe('the fast path for plain JSON', () => {
  const response = hookCatalog.find(({ name }) => name === 'GeneratePatches')!.response
  const plain = (text: string) => decodePlain(new TextEncoder().encode(text), response.json)

  test.each([
    ['formatted by JSON.stringify', '{"status":"Success","items":[{"uid":"1","patchType":"JSONPatch","patch":"QQ=="}]}'],
    ['formatted by Go', '{"status":"Failure","message":"\\u003ca\\u003e \\u0026 \\u2028 b"}\n'],
    ['with unknown fields', '{"status":"Success","x":{"y":[null]}}'],
  ])('decodes a text %s', (_, text) => {
    expect(plain(text)).toEqual(decodeAsGo(new TextEncoder().encode(text), response, 'x', 'response'))
  })

  test.each([
    ['a duplicate key', '{"status":"Success","status":"Failure"}'],
    ['a duplicate unknown key', '{"x":1,"x":2}'],
    ['a key in another case', '{"Status":"Success"}'],
    ['a null', '{"status":null}'],
    ['a wrong type', '{"status":1}'],
    ['invalid base64', '{"items":[{"patch":"Q"}]}'],
    ['half of a surrogate pair', '{"message":"\\ud800"}'],
    ['spaces between tokens', '{"status": "Success"}'],
    ['a number that JSON.stringify formats differently', '{"x":1.0}'],
    ['text after the value', '{} {}'],
    ['too many levels', `{"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`],
    ['a list instead of an object', '[]'],
  ])('does not decode a text with %s', (_, text) => {
    expect(plain(text)).toBeUndefined()
  })

  test('returns the same as decodeAsGo, or undefined', () => {
    let decodedPlain = 0
    const cases = fc.oneof(...hookCatalog.map((hook) => fc.tuple(fc.constant(hook), answerBodies(hook.response.json))))
    fc.assert(
      fc.property(cases, ([{ response }, body]) => {
        const formatted = reformatted(body)
        const decoded = decodePlain(formatted, response.json)
        if (decoded === undefined) return
        decodedPlain++
        const decodedAsGo = decodeAsGo(formatted, response, 'x', 'response')
        expect(decoded).toEqual(decodedAsGo)
        expect(JSON.stringify(decoded)).toBe(JSON.stringify(decodedAsGo))
      }),
      { seed: 1, numRuns: 2000 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
    )
    expect(decodedPlain).toBeGreaterThan(300)
  })
})

/** Formats a JSON text with JSON.stringify; returns any other text unchanged. */
function reformatted(body: Uint8Array): Uint8Array {
  try {
    return new TextEncoder().encode(JSON.stringify(JSON.parse(new TextDecoder().decode(body))))
  } catch {
    return body
  }
}

/** Returns a text for each value that is missing, not in the schema, or invalid for its type in the schema. Uses no code of the decoder. */
function shapeProblems(
  value: unknown,
  schemaOrRef: JSONSchema,
  definitions: { [name: string]: JSONSchema },
  path = '',
): string[] {
  const schema = schemaOrRef.$ref === undefined ? schemaOrRef : definitions[schemaOrRef.$ref.slice('#/definitions/'.length)]!
  const problemUnless = (isValid: boolean): string[] =>
    isValid ? [] : [`${path}: ${JSON.stringify(value)} is no ${schema.type}`]
  switch (schema.type) {
    case 'string':
      return problemUnless(typeof value === 'string' && value.isWellFormed())
    case 'boolean':
      return problemUnless(typeof value === 'boolean')
    case 'integer':
      return problemUnless(Number.isInteger(value) && !Object.is(value, -0))
    case 'number':
      return problemUnless(Number.isFinite(value))
    case 'array':
      if (!Array.isArray(value)) return problemUnless(false)
      return value.flatMap((item, index) => shapeProblems(item, schema.items ?? {}, definitions, `${path}[${index}]`))
    case 'object':
      if (!isRecord(value)) return problemUnless(false)
      return [
        ...(schema.required ?? []).filter((name) => !Object.hasOwn(value, name)).map((name) => `${path}.${name} is missing`),
        ...Object.entries(value).flatMap(([name, member]) => {
          const valueSchema = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
          const memberSchema = valueSchema ?? schema.properties?.[name]
          return memberSchema
            ? shapeProblems(member, memberSchema, definitions, `${path}.${name}`)
            : [`${path}.${name} is not known`]
        }),
      ]
    case undefined:
  }
  return []
}
