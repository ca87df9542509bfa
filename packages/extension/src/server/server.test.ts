import { AfterControlPlaneInitialized, BeforeClusterCreate, Discovery, hookPath } from '@capstan/api'
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { type AnswerOf, fail, type Hold, holdFor, proceedNow } from '../author/answer.ts'
import { callHook } from '../test-kit/call-hook.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { extensionServer } from './server.ts'

const cluster = { apiVersion: '', kind: 'Cluster', metadata: { name: 'demo' }, spec: {} } as never

const extension = defineExtension({
  name: 'sample',
  handlers: [
    on(BeforeClusterCreate, { name: 'gate', timeoutSeconds: 5, failurePolicy: 'Ignore' }, ({ request, settings }) => {
      if (settings.mood === 'bad') return fail('not today')
      if (settings.mood === 'broken') throw new Error('secret details')
      return settings.wait ? holdFor(Number(settings.wait), `quota for ${request.cluster.metadata.name}`) : proceedNow()
    }),
    on(AfterControlPlaneInitialized, { name: 'greet' }, async () => proceedNow('hello')),
  ],
})
const serve = extensionServer(extension)
const path = hookPath(BeforeClusterCreate, 'gate')
const post = (target: string, body: string) => serve(new Request(`https://x${target}`, { method: 'POST', body }))
const responseTo = async (body: string): Promise<unknown> => (await post(path, body)).json()

it('the server returns a discovery response that lists the handlers in declaration order', async () => {
  expect(await (await post(hookPath(Discovery), '{}')).json()).toEqual({
    apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
    kind: 'DiscoveryResponse',
    status: 'Success',
    handlers: [
      {
        name: 'gate',
        requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' },
        timeoutSeconds: 5,
        failurePolicy: 'Ignore',
      },
      {
        name: 'greet',
        requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'AfterControlPlaneInitialized' },
      },
    ],
  })
})

describe('a handler', () => {
  test.each<[string, Record<string, string>, object]>([
    ['proceeds', {}, { status: 'Success', retryAfterSeconds: 0 }],
    ['blocks', { wait: '30' }, { status: 'Success', retryAfterSeconds: 30, message: 'quota for demo' }],
    ['fails', { mood: 'bad' }, { status: 'Failure', message: 'not today', retryAfterSeconds: 0 }],
  ])(
    'that %s in a blocking hook responds with status, retryAfterSeconds and the message, if there is one',
    async (_, settings, answer) => {
      expect(await callHook(extension, BeforeClusterCreate, { cluster, settings })).toEqual({
        apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
        kind: 'BeforeClusterCreateResponse',
        ...answer,
      })
    },
  )

  it('of a non-blocking hook responds without retryAfterSeconds', async () => {
    const { status, message, ...otherFields } = await callHook(extension, AfterControlPlaneInitialized, { cluster })
    expect([status, message, otherFields]).toEqual([
      'Success',
      'hello',
      { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', kind: 'AfterControlPlaneInitializedResponse' },
    ])
  })

  it('has a type that allows holdFor() only in a blocking hook', () => {
    expectTypeOf<Hold>().toExtend<AnswerOf<typeof BeforeClusterCreate>>()
    expectTypeOf<Hold>().not.toExtend<AnswerOf<typeof AfterControlPlaneInitialized>>()
  })

  test.each([
    ['undefined', undefined, 'got undefined'],
    ['a response in the wire format', { status: 'Failure', message: 'no' }, 'got an object with status, message'],
    ['an unknown kind', { kind: 'wait' }, 'got an object with kind'],
  ])('that returns %s fails the call with 500', async (_, answer, got) => {
    const careless = on(BeforeClusterCreate, { name: 'careless' }, (() => answer) as never)
    const failed = await callHook(careless, BeforeClusterCreate).catch((err: unknown) => err as Error)
    expect(failed).toMatchObject({
      message: expect.stringContaining('500 != 200'),
      cause: new TypeError(`handler careless must answer with proceedNow(), proceedWith(), holdFor() or fail(): ${got}`),
    })
  })

  it('that throws fails the call with 500, without details', async () => {
    const response = await post(path, JSON.stringify({ cluster, settings: { mood: 'broken' } }))
    expect([response.status, await response.text()]).toEqual([500, 'handler "gate" failed\n'])
  })
})

describe('a request', () => {
  test.each([
    ['without a body', '', 'error unmarshalling request: unexpected end of JSON input'],
    ['that is not JSON', '<html>', "error unmarshalling request: invalid character '<' looking for beginning of value"],
    ['with a byte order mark', '\ufeff{}', "error unmarshalling request: invalid character 'ï' looking for beginning of value"],
    ['with text after the JSON value', '{} {}', "error unmarshalling request: invalid character '{' after top-level value"],
    [
      'that is a list',
      '[]',
      'error unmarshalling request: json: cannot unmarshal array into Go value of type v1alpha1.BeforeClusterCreateRequest',
    ],
    [
      'with a field of a wrong type',
      '{"cluster": "demo"}',
      'error unmarshalling request: json: cannot unmarshal string into Go struct field BeforeClusterCreateRequest.cluster of type object',
    ],
    [
      'with settings that are not strings',
      '{"cluster": {}, "settings": {"a": 1}}',
      'error unmarshalling request: json: cannot unmarshal number into Go struct field BeforeClusterCreateRequest.CommonRequest.settings of type string',
    ],
    ['without a required field', '{}', 'error unmarshalling request: BeforeClusterCreateRequest needs cluster'],
    ['over the size limit', ' '.repeat(20 * 1024 * 1024 + 1), 'error reading request: http: request body too large'],
  ])('%s returns a failure', async (_, body, message) => {
    expect(await responseTo(body)).toMatchObject({ status: 'Failure', message })
  })

  it('may have unknown fields, nulls and keys in a different case', async () => {
    const body = '{"CLUSTER": {"metadata": {"name": "x"}}, "future": 1, "settings": null}'
    expect(await responseTo(body)).toMatchObject({ status: 'Success' })
  })

  it('reaches its handler below a path prefix', async () => {
    const response = await post(`/team/x${path}`, JSON.stringify({ cluster }))
    expect(await response.json()).toMatchObject({ status: 'Success' })
  })

  test.each([
    ['/unknown', 404, '404 page not found\n', null],
    [`${path}/`, 404, '404 page not found\n', null],
    [path.replace('gate', 'Gate'), 404, '404 page not found\n', null],
    [`/${path}?timeout=5s`, 301, '', `${path}?timeout=5s`],
  ])('to %s returns %i', async (target, status, text, location) => {
    const response = await post(target, '{}')
    expect([response.status, await response.text(), response.headers.get('location')]).toEqual([status, text, location])
  })
})

describe('defineExtension rejects', () => {
  const handler = (name: string, overrides: object = {}) => on(BeforeClusterCreate, { name, ...overrides }, () => proceedNow())
  test.each([
    ['a name that is not a DNS label', [handler('My.Handler')], 'handler name My.Handler is not valid'],
    ['a timeout over 30 seconds', [handler('a', { timeoutSeconds: 31 })], 'handler a timeoutSeconds 31 must be between 0 and 30'],
    ['a negative timeout', [handler('a', { timeoutSeconds: -1 })], 'handler a timeoutSeconds -1 must be between 0 and 30'],
    ['a handler without a name', [handler(undefined as never)], 'handler name undefined is not valid: must be a string'],
    [
      'a handler without a function',
      [on(BeforeClusterCreate, { name: 'a' }, undefined as never)],
      'handler a must be a function',
    ],
    [
      'an unknown failure policy',
      [handler('a', { failurePolicy: 'ignore' })],
      'handler a failurePolicy ignore must equal "Ignore" or "Fail"',
    ],
    ['two handlers with one path', [handler('a'), handler('a')], 'there is already a handler registered for path'],
    [
      'one name for two hooks',
      [handler('a'), on(AfterControlPlaneInitialized, { name: 'a' }, () => proceedNow())],
      'duplicate name for handler a found',
    ],
    ['a handler for discovery', [on(Discovery, { name: 'a' }, () => proceedNow())], 'Cannot handle Discovery'],
  ])('%s', (_, handlers, message) => {
    expect(() => defineExtension({ name: 'x', handlers })).toThrow(message)
  })
})

test.each([0, -1, 1.5, 2 ** 31])('holdFor(%d) throws a RangeError', (seconds) =>
  expect(() => holdFor(seconds, '')).toThrow(RangeError),
)
