/** Tests the rules of the hook protocol for our server and our client. `client/client.test.ts` tests the outcomes of calls. */
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Hook } from '@capstan/api'
import {
  AfterControlPlaneInitialized,
  BeforeClusterCreate,
  BeforeClusterUpgrade,
  CanUpdateMachine,
  DiscoverVariables,
  Discovery,
  GeneratePatches,
  GenerateUpgradePlan,
  hookCatalog,
  hookPath,
} from '@capstan/api'
import { systemClock, VirtualClock } from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { describe, expect, it, test } from 'vitest'
import { fail, holdFor, proceedNow, proceedWith } from '../author/answer.ts'
import { callServer } from '../test-kit/call-server.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { fixture } from '../test-kit/fixtures.ts'
import { httpsHookTransport } from '../client/https-transport.ts'
import { extensionServer, type FetchHandler } from '../server/server.ts'
import { inProcess } from '../client/transport.ts'

const maxBytes = 20 * 1024 * 1024
const valid = (hook: Hook) => JSON.stringify(fixture(hook))

describe('a request to our server', () => {
  const receivedRequests: unknown[] = []
  const serve = extensionServer(
    defineExtension({
      name: 'x',
      handlers: [
        on(BeforeClusterCreate, { name: 'gate' }, ({ request }) => {
          receivedRequests.push(request)
          return proceedNow()
        }),
      ],
    }),
  )
  const path = hookPath(BeforeClusterCreate, 'gate')
  const send = (init: RequestInit & { duplex?: 'half' }, target = path) =>
    serve(new Request(`https://x${target}`, { method: 'POST', ...init }))
  const ok = { status: 'Success' }
  const body = valid(BeforeClusterCreate)

  test.each<[string, RequestInit, string]>([
    ['by PUT', { method: 'PUT', body }, path],
    ['by PATCH', { method: 'PATCH', body }, path],
    ['with a query', { body }, `${path}?timeout=10s&other=1`],
    ['without a query', { body }, path],
    ['without a content type', { body: new TextEncoder().encode(body) }, path],
    ['as text/plain', { body, headers: { 'content-type': 'text/plain' } }, path],
    ['as a form', { body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }, path],
    ['with an Accept header of another type', { body, headers: { accept: 'text/html' } }, path],
    ['of the maximum size', { body: body.padEnd(maxBytes) }, path],
    ['with another kind and version', { body: body.replace('{', '{"kind":"X","apiVersion":"y/v9",') }, path],
    ['with unknown fields', { body: body.replace('{', '{"future":{"a":[1]},') }, path],
    ['with null for an empty field', { body: body.replace('{', '{"settings":null,') }, path],
    ['with white space around its JSON', { body: `\n\t ${body}\r\n ` }, path],
  ])('%s reaches its handler', async (_, init, target) => {
    receivedRequests.length = 0
    const response = await send(init, target)
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining(ok)])
    expect(receivedRequests).toEqual([
      {
        ...fixture(BeforeClusterCreate),
        apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
        kind: 'BeforeClusterCreateRequest',
      },
    ])
  })

  test('by GET returns a failure, because it has no body', async () => {
    const response = await send({ method: 'GET' })
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ status: 'Failure' })])
  })

  test.each<[string, RequestInit & { duplex?: 'half' }, string]>([
    ['over the maximum size', { body: body.padEnd(maxBytes + 1) }, 'error reading request: http: request body too large'],
    [
      'whose body is aborted',
      {
        body: new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode(body.slice(0, 9)))
            controller.error(new Error('unexpected EOF'))
          },
        }),
        duplex: 'half',
      },
      'error reading request: unexpected EOF',
    ],
    ['with incomplete JSON', { body: body.slice(0, -1) }, 'error unmarshalling request: unexpected end of JSON input'],
    ['of two JSON values', { body: `${body}{}` }, "error unmarshalling request: invalid character '{' after top-level value"],
  ])('%s returns 200 with a failure', async (_, init, message) => {
    const response = await send(init)
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ status: 'Failure', message })])
  })
})

describe('a response of our server', () => {
  const handlers = [
    on(BeforeClusterCreate, { name: 'proceed' }, () => proceedNow()),
    on(BeforeClusterCreate, { name: 'block' }, () => holdFor(2 ** 31 - 1, 'wait')),
    on(BeforeClusterCreate, { name: 'fail' }, () => fail('no')),
    on(AfterControlPlaneInitialized, { name: 'message' }, () => proceedNow('hello')),
    on(GeneratePatches, { name: 'empty' }, () => proceedNow()),
    on(GeneratePatches, { name: 'patch' }, () => proceedWith({ items: [{ uid: 'u', patchType: 'JSONPatch', patch: 'W10=' }] })),
    on(GenerateUpgradePlan, { name: 'circle' }, () => {
      const circle: { version: string }[] = []
      circle.push(circle as never)
      return proceedWith({ controlPlaneUpgrades: circle })
    }),
  ]
  const serve = extensionServer(defineExtension({ name: 'x', handlers }))
  const answerOf = async (name: string) => {
    const { hook } = handlers.find((handler) => handler.name === name)!
    return serve(new Request(`https://x${hookPath(hook, name)}`, { method: 'POST', body: valid(hook) }))
  }

  test.each<[string, string]>([
    ['proceed', '"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":0}'],
    ['block', '"BeforeClusterCreateResponse","status":"Success","message":"wait","retryAfterSeconds":2147483647}'],
    ['fail', '"BeforeClusterCreateResponse","status":"Failure","message":"no","retryAfterSeconds":0}'],
    ['message', '"AfterControlPlaneInitializedResponse","status":"Success","message":"hello"}'],
    ['empty', '"GeneratePatchesResponse","status":"Success"}'],
    ['patch', '"GeneratePatchesResponse","status":"Success","items":[{"uid":"u","patchType":"JSONPatch","patch":"W10="}]}'],
  ])("of handler %s has upstream's bytes", async (name, text) => {
    const response = await answerOf(name)
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'application/json',
      `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":${text}`,
    ])
  })

  it.each([2.5, -1, 0, 2 ** 31])(
    'is 500 when a handler blocks for %d seconds, which is not a positive int32',
    async (seconds) => {
      const handlers = [on(BeforeClusterCreate, { name: 'hold' }, () => ({ kind: 'hold', seconds, message: '' }))]
      const path = hookPath(BeforeClusterCreate, 'hold')
      const request = new Request(`https://x${path}`, { method: 'POST', body: valid(BeforeClusterCreate) })
      expect((await extensionServer(defineExtension({ name: 'x', handlers }))(request)).status).toBe(500)
    },
  )

  it('is 500 when it cannot be encoded as JSON', async () => {
    const response = await answerOf('circle')
    expect([response.status, await response.text()]).toEqual([500, expect.stringMatching(/^unable to marshal response: /)])
  })
})

/** Calls the server with our client. Returns the response, or the error message without its prefix. */
async function answered(hook: Hook, server: FetchHandler) {
  const transport = inProcess(server)
  try {
    const call = {
      server: { url: 'https://x' },
      request: fixture(hook) as object,
      timeoutSeconds: 5,
      transport,
      clock: new VirtualClock(),
    }
    return (await callServer(hook, { ...call, handler: 'one' })).response
  } catch (err) {
    return (err as Error).message.replace(/^http call failed: /, '')
  }
}
const decoded = (hook: Hook, body: BodyInit, init: ResponseInit = {}) => answered(hook, async () => new Response(body, init))

describe('a request of our client', () => {
  test.each(hookCatalog.map((hook) => [hook.name, hook] as const))(
    'for %s is a POST of one JSON object, with the timeout in the query',
    async (_, hook) => {
      let request!: Request
      let text = ''
      await answered(hook, async (received) => {
        request = received
        text = await received.text()
        return new Response('{}')
      })
      expect([request.method, request.url]).toEqual(['POST', `https://x${hookPath(hook, 'one')}?timeout=5s`])
      expect(JSON.parse(text)).toEqual({
        apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
        kind: `${hook.name}Request`,
        ...(fixture(hook) as object),
      })
      // As in upstream's requests, empty fields such as `settings` are omitted.
      expect(text).not.toMatch(/null|"settings"/)
    },
  )
})

test('our client sends JSON with a content length over HTTPS, and does not accept compressed responses', async () => {
  const authority = await makeAuthority(systemClock, { commonName: 'test' })
  const certified = await issueCertificate(authority, systemClock, {
    commonName: 'x',
    usages: ['server'],
    ipAddresses: ['127.0.0.1'],
  })
  let headers: IncomingHttpHeaders = {}
  const server = createServer({ cert: certified.certificate, key: certified.key }, (incoming, outgoing) => {
    ;({ headers } = incoming)
    const body = Buffer.from('{"status":"Success"}')
    // Compresses the response if the client accepts gzip, as many servers do.
    const acceptsGzip = /gzip/.test(headers['accept-encoding'] ?? '')
    outgoing.writeHead(200, acceptsGzip ? { 'content-encoding': 'gzip' } : {}).end(acceptsGzip ? gzipSync(body) : body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const transport = httpsHookTransport()
  const { port } = server.address() as AddressInfo
  const { response } = await callServer(BeforeClusterCreate, {
    server: { url: `https://127.0.0.1:${port}`, caBundle: btoa(authority.certificate) },
    request: fixture(BeforeClusterCreate),
    handler: 'one',
    timeoutSeconds: 5,
    transport,
    clock: systemClock,
  })
  transport.close()
  server.close()
  expect(response).toMatchObject({ status: 'Success' })
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': expect.stringMatching(/^\d+$/) })
})

describe('our client', () => {
  const patches = (patch: string) => `{"status":"Success","items":[{"uid":"u","patchType":"JSONPatch","patch":${patch}}]}`
  const success = { status: 'Success', retryAfterSeconds: 0 }
  test.each<[string, Hook, string, object, ResponseInit?]>([
    ['with an unknown field', BeforeClusterCreate, '{"status":"Success","future":[{}]}', success],
    [
      'with keys in another case',
      BeforeClusterCreate,
      '{"Status":"Success","RETRYAFTERSECONDS":5}',
      { ...success, retryAfterSeconds: 5 },
    ],
    ['with text after the first JSON value', BeforeClusterCreate, '{"status":"Success"} {"status":"Failure"} and so on', success],
    ['with a duplicate key, of which the last counts', BeforeClusterCreate, '{"status":"Failure","status":"Success"}', success],
    ['with null as retryAfterSeconds', BeforeClusterCreate, '{"status":"Success","retryAfterSeconds":null}', success],
    ['without retryAfterSeconds', BeforeClusterCreate, '{"status":"Success"}', success],
    [
      'with retryAfterSeconds of a non-blocking hook, which is ignored',
      AfterControlPlaneInitialized,
      '{"status":"Success","retryAfterSeconds":"x"}',
      { status: 'Success' },
    ],
    [
      'with the largest retryAfterSeconds',
      BeforeClusterCreate,
      '{"status":"Success","retryAfterSeconds":2147483647}',
      { ...success, retryAfterSeconds: 2147483647 },
    ],
    [
      'with another apiVersion and kind',
      DiscoverVariables,
      '{"apiVersion":"x","kind":"y","status":"Success"}',
      { apiVersion: 'x', kind: 'y', status: 'Success' },
    ],
    [
      'with the content type text/plain',
      BeforeClusterCreate,
      '{"status":"Success"}',
      success,
      { headers: { 'content-type': 'text/plain; charset=utf-8' } },
    ],
    ['with white space around its JSON', BeforeClusterCreate, ' \n{"status":"Success"}\n', success],
    [
      'of patches in base64',
      GeneratePatches,
      patches('"W10="'),
      { items: [{ uid: 'u', patchType: 'JSONPatch', patch: 'W10=' }] },
    ],
    ['of patches in base64 with line breaks', GeneratePatches, patches('"W1\\n0="'), { status: 'Success' }],
    ['without patches', CanUpdateMachine, '{"status":"Success","machinePatch":null}', { status: 'Success' }],
  ])('accepts a response %s', async (_, hook, body, response, init) => {
    expect(await decoded(hook, body, init)).toMatchObject(response)
  })

  const undecodable = 'failed to decode response: '
  test.each<[string, Hook, string, string]>([
    ['that is empty', BeforeClusterCreate, '', 'EOF'],
    ['that is only white space', BeforeClusterCreate, ' \n', 'EOF'],
    ['with incomplete JSON', BeforeClusterCreate, '{"status":"Succ', 'unexpected EOF'],
    ['with a byte order mark', BeforeClusterCreate, '\ufeff{}', "invalid character 'ï' looking for beginning of value"],
    ['that is HTML', BeforeClusterCreate, '<html>', "invalid character '<' looking for beginning of value"],
    [
      'with single quotes',
      BeforeClusterCreate,
      "{'status':'Success'}",
      "invalid character '\\'' looking for beginning of object key string",
    ],
    ['with a patch in URL-safe base64', GeneratePatches, patches('"W_-="'), 'illegal base64 data at input byte 1'],
    ['with a patch without padding', GeneratePatches, patches('"W10"'), 'illegal base64 data at input byte'],
    ['with a patch that is a list', GeneratePatches, patches('[{"op":"add"}]'), 'json: cannot unmarshal '],
    ['with a patch that is an object', GeneratePatches, patches('{}'), 'json: cannot unmarshal object into Go struct field '],
    ['with a status that is a number', BeforeClusterUpgrade, '{"status":200}', 'json: cannot unmarshal number '],
    [
      'with handlers that are not a list',
      Discovery,
      '{"status":"Success","handlers":{}}',
      'json: cannot unmarshal object into Go struct field ',
    ],
    ...['5.0', '5.5', '1e1', '"5"', '2147483648', '-2147483649', 'true', '[]'].map((number): [string, Hook, string, string] => [
      `with retryAfterSeconds ${number}`,
      BeforeClusterCreate,
      `{"status":"Success","retryAfterSeconds":${number}}`,
      'json: cannot unmarshal ',
    ]),
  ])('rejects a response %s', async (_, hook, body, why) => {
    const message = await decoded(hook, body)
    expect(message).toSatisfy((text: unknown) => typeof text === 'string' && text.startsWith(undecodable + why))
  })

  test.each([201, 202, 204, 299, 301, 302, 307, 400, 404, 429, 500, 503])(
    'rejects a response with status %d, whose body is not decoded',
    async (status) => {
      const text = status === 204 ? '' : '{"status":"Success"}'
      expect(await answered(BeforeClusterCreate, async () => new Response(status === 204 ? null : text, { status }))).toBe(
        `got response with status code ${status} != 200: response : ${JSON.stringify(text)}`,
      )
    },
  )

  test.each([200, 500])('rejects a response with status %d over the size limit', async (status) => {
    const message = await decoded(BeforeClusterCreate, ' '.repeat(maxBytes + 1), { status })
    expect(message).toMatch(/body too large|failed to read response body/)
  })
})
