/**
 * Results of Go's decoder for responses, case by case, which the interop suite hooks-peer verifies. And invalid responses: the client
 * handles each, and returns only values that match the schema.
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
const read = (name: string, body: string | Uint8Array) => decodeWire(body, hookNamed(name).response, `${name}Response`, 'answer')
const retry = (body: string | Uint8Array) => read('BeforeClusterCreate', body)
const field = 'json: cannot unmarshal %s into Go struct field'

describe('an answer', () => {
  test.each<[string, string | Uint8Array, object]>([
    ['has zero values for what is missing', '{}', { status: '', retryAfterSeconds: 0 }],
    ['may be null', 'null', { status: '', retryAfterSeconds: 0 }],
    [
      'may have null for anything',
      '{"status":null,"retryAfterSeconds":null,"message":null}',
      { status: '', retryAfterSeconds: 0 },
    ],
    ['may hold what nobody knows', '{"status":"Success","more":{"a":[1,{}]}}', { status: 'Success', retryAfterSeconds: 0 }],
    ['ends with the first value', '{"status":"Success"} and more', { status: 'Success', retryAfterSeconds: 0 }],
    ['may write keys in any case', '{"STATUS":"Success","RetryAfterSeconds":5}', { status: 'Success', retryAfterSeconds: 5 }],
    ['may write keys with letters that fold', '{"ſtatus":"Success"}', { status: 'Success', retryAfterSeconds: 0 }],
    [
      'says what it says last, in whatever case',
      '{"status":"Success","STATUS":"Failure"}',
      { status: 'Failure', retryAfterSeconds: 0 },
    ],
    ['may take nothing back with null', '{"status":"Success","status":null}', { status: 'Success', retryAfterSeconds: 0 }],
    ['may wait for -0 seconds', '{"retryAfterSeconds":-0}', { status: '', retryAfterSeconds: 0 }],
    ['may hold half a surrogate', '{"message":"\\ud800x"}', { status: '', message: '\ufffdx', retryAfterSeconds: 0 }],
    [
      'may hold bytes that are no text',
      Buffer.from([...Buffer.from('{"message":"'), 0xe2, 0x82, ...Buffer.from('"}')]),
      { status: '', message: '\ufffd\ufffd', retryAfterSeconds: 0 },
    ],
  ])('%s', (_, body, value) => expect(retry(body)).toEqual(value))

  test('that says an object or a list twice has both in one', () => {
    const body = '{"machinePatch":{"patchType":"JSONPatch"},"machinePatch":{"patch":"W10="}}'
    expect(read('CanUpdateMachine', body)).toEqual({ status: '', machinePatch: { patchType: 'JSONPatch', patch: 'W10=' } })
    const items = '{"items":[{"uid":"a"},{"uid":"b"}],"items":[{"patch":""}],"items":[null,null]}'
    expect(read('GeneratePatches', items)).toMatchObject({ items: [{ uid: 'a', patch: '' }, { uid: 'b' }] })
  })

  test('may have null in a list, for something with nothing in it', () => {
    const nothing = { name: '', requestHook: { apiVersion: '', hook: '' } }
    expect(read('Discovery', '{"handlers":[null]}')).toEqual({ status: '', handlers: [nothing] })
  })

  test('may give bytes as numbers', () => {
    expect(read('GeneratePatches', '{"items":[{"patch":[91,93]}]}')).toMatchObject({ items: [{ patch: 'W10=' }] })
  })

  test('has no defaults of an API server', () => {
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
      `${field.replace('%s', 'number 2147483648')} BeforeClusterCreateResponse.CommonRetryResponse.retryAfterSeconds of type int32`,
    ],
    [
      'AfterControlPlaneInitialized',
      '{"status":1}',
      `${field.replace('%s', 'number')} AfterControlPlaneInitializedResponse.CommonResponse.status of type v1alpha1.ResponseStatus`,
    ],
    [
      'Discovery',
      '{"handlers":[{"requestHook":[]}]}',
      `${field.replace('%s', 'array')} ExtensionHandler.handlers.requestHook of type v1alpha1.GroupVersionHook`,
    ],
    ['GeneratePatches', '{"items":[{"patch":"Q-=="}]}', 'illegal base64 data at input byte 1'],
    ['GeneratePatches', '{"items":[{"patch":"QQ==QQ=="}]}', 'illegal base64 data at input byte 4'],
    [
      'DiscoverVariables',
      '{"variables":[{"schema":{"openAPIV3Schema":{"properties":{"a":{"items":{"maxLength":"1"}}}}}}]}',
      `${field.replace('%s', 'string')} JSONSchemaProps.variables.schema.openAPIV3Schema.properties.items.maxLength of type int64`,
    ],
  ])('of %s: %s is rejected with the error text of Go', (name, body, message) => {
    expect(() => read(name, body)).toThrow(expect.objectContaining({ name: 'WireError', message }))
  })
})

test('whatever is answered, the client gives the shape of the response or one of its errors', async () => {
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

describe('a text without anything odd about it', () => {
  const response = hookCatalog.find(({ name }) => name === 'GeneratePatches')!.response
  const plain = (text: string) => decodePlain(new TextEncoder().encode(text), response.json)

  test.each([
    ['as JSON.stringify spells it', '{"status":"Success","items":[{"uid":"1","patchType":"JSONPatch","patch":"QQ=="}]}'],
    ['as Go spells it', '{"status":"Failure","message":"\\u003ca\\u003e \\u0026 \\u2028 b"}\n'],
    ['with fields that nobody knows', '{"status":"Success","x":{"y":[null]}}'],
  ])('%s is left to JSON.parse', (_, text) => {
    expect(plain(text)).toEqual(decodeAsGo(new TextEncoder().encode(text), response, 'x', 'answer'))
  })

  test.each([
    ['a key twice', '{"status":"Success","status":"Failure"}'],
    ['a key twice that nobody knows', '{"x":1,"x":2}'],
    ['a key in another case', '{"Status":"Success"}'],
    ['a null', '{"status":null}'],
    ['another type', '{"status":1}'],
    ['no base64', '{"items":[{"patch":"Q"}]}'],
    ['half of a surrogate pair', '{"message":"\\ud800"}'],
    ['spaces', '{"status": "Success"}'],
    ['a number in another form', '{"x":1.0}'],
    ['more than a value', '{} {}'],
    ['too many levels', `{"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`],
    ['no object', '[]'],
  ])('has not %s', (_, text) => {
    expect(plain(text)).toBeUndefined()
  })

  test('is decoded as it would be by all of the rules', () => {
    let left = 0
    const cases = fc.oneof(...hookCatalog.map((hook) => fc.tuple(fc.constant(hook), answerBodies(hook.response.json))))
    fc.assert(
      fc.property(cases, ([{ response }, body]) => {
        const spelled = respelled(body)
        const decoded = decodePlain(spelled, response.json)
        if (decoded === undefined) return
        left++
        const all = decodeAsGo(spelled, response, 'x', 'answer')
        expect(decoded).toEqual(all)
        expect(JSON.stringify(decoded)).toBe(JSON.stringify(all))
      }),
      { seed: 1, numRuns: 2000 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
    )
    expect(left).toBeGreaterThan(300)
  })
})

/** The text as JSON.stringify has it, if it is one; most are not to begin with. */
function respelled(body: Uint8Array): Uint8Array {
  try {
    return new TextEncoder().encode(JSON.stringify(JSON.parse(new TextDecoder().decode(body))))
  } catch {
    return body
  }
}

/** Paths of values whose type differs from the schema. Independent of the decoder: it reads values, not text. */
function shapeProblems(value: unknown, given: JSONSchema, definitions: { [name: string]: JSONSchema }, path = ''): string[] {
  const schema = given.$ref === undefined ? given : definitions[given.$ref.slice('#/definitions/'.length)]!
  const here = (holds: boolean): string[] => (holds ? [] : [`${path}: ${JSON.stringify(value)} is no ${schema.type}`])
  switch (schema.type) {
    case 'string':
      return here(typeof value === 'string' && value.isWellFormed())
    case 'boolean':
      return here(typeof value === 'boolean')
    case 'integer':
      return here(Number.isInteger(value) && !Object.is(value, -0))
    case 'number':
      return here(Number.isFinite(value))
    case 'array':
      if (!Array.isArray(value)) return here(false)
      return value.flatMap((item, index) => shapeProblems(item, schema.items ?? {}, definitions, `${path}[${index}]`))
    case 'object':
      if (!isRecord(value)) return here(false)
      return [
        ...(schema.required ?? []).filter((name) => !Object.hasOwn(value, name)).map((name) => `${path}.${name} is missing`),
        ...Object.entries(value).flatMap(([name, member]) => {
          const free = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
          const field = free ?? schema.properties?.[name]
          return field ? shapeProblems(member, field, definitions, `${path}.${name}`) : [`${path}.${name} is not known`]
        }),
      ]
    case undefined:
  }
  return []
}
