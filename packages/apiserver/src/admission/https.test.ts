/** Webhook calls over real HTTPS connections: certificates, Services, and errors of unreachable webhooks. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  CustomResourceDefinition,
  MutatingWebhookConfiguration,
  systemClock,
  unknownKind,
  type WebhookClientConfig,
} from '@capstan/kube'
import { issueCertificate, makeAuthority } from '@capstan/kube/node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createHandler } from '../http/handler.ts'
import { aWidget, rejection, testServer, Widget } from '@capstan/kubernetes-kinds/test-server'

let authority: { certificate: string; key: string }
let server: Server
let port: number
/** Certificate that the server presents. */
let servedCertificate: string
let connections = 0
let agent: string | undefined

beforeAll(async () => {
  authority = await makeAuthority(systemClock, { commonName: 'hooks' })
  const { certificate, key } = await issueCertificate(authority, systemClock, {
    commonName: 'hook',
    usages: ['server'],
    dnsNames: ['hook.system.svc'],
    ipAddresses: ['127.0.0.1'],
  })
  servedCertificate = certificate
  server = createServer({ cert: certificate, key }, (request, response) => void handleRequest(request, response))
  server.on('secureConnection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

interface ReviewRequest {
  readonly uid: string
  readonly objects: readonly { readonly spec: object }[]
  readonly desiredAPIVersion: string
}

async function handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  agent = request.headers['user-agent']
  const { request: reviewed } = JSON.parse(await text(request)) as { request: ReviewRequest }
  const { uid } = reviewed
  const respond = (document: object) => response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
  const review = (decision: object) =>
    respond({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, ...decision } })
  const path = request.url?.split('?', 1)[0]
  if (path === '/hang') onHang()
  else if (path === '/long') review({ allowed: true, other: 'x'.repeat(3_000_000) })
  else if (path === '/deny') review({ allowed: false, status: { message: 'no' }, warnings: ['be careful'] })
  else if (path === '/convert') {
    const apiVersion = reviewed.desiredAPIVersion
    const convertedObjects = reviewed.objects.map((object) => ({ ...object, apiVersion, spec: { path: request.url } }))
    const response = { uid, result: { status: 'Success' }, convertedObjects }
    respond({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response })
  } else {
    const patch = Buffer.from(JSON.stringify([{ op: 'add', path: '/spec/color', value: request.url }])).toString('base64')
    review({ allowed: true, patchType: 'JSONPatch', patch })
  }
}

let onHang = () => {}

const bundle = (certificate: string) => Buffer.from(certificate).toString('base64')

async function serverWithWebhook(clientConfig: WebhookClientConfig) {
  const resolveService = (namespace: string, name: string) =>
    namespace === 'system' && name === 'hook' ? new URL(`https://127.0.0.1:${port}`) : undefined
  const apiServer = await testServer({ webhooks: { resolveService } })
  await apiServer.client.create(MutatingWebhookConfiguration, {
    metadata: { name: 'hook' },
    webhooks: [
      {
        name: 'hook.example.com',
        clientConfig,
        rules: [{ operations: ['CREATE'], apiGroups: ['*'], apiVersions: ['*'], resources: ['widgets'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        timeoutSeconds: 5,
      },
    ],
  })
  return { ...apiServer, [Symbol.asyncDispose]: () => apiServer.server.close() }
}

test('all requests to a webhook at a URL use one persistent connection', async () => {
  await using apiServer = await serverWithWebhook({
    url: `https://127.0.0.1:${port}/mutate`,
    caBundle: bundle(authority.certificate),
  })
  const before = connections
  for (const name of ['a', 'b', 'c']) {
    expect((await apiServer.client.create(Widget, aWidget(name))).spec.color).toBe('/mutate?timeout=5s')
  }
  expect(connections - before).toBe(1)
  expect(agent).toBe('kube-apiserver-admission')
})

test('the CA bundle may be the certificate of the webhook itself, as in envtest', async () => {
  await using apiServer = await serverWithWebhook({
    url: `https://127.0.0.1:${port}/mutate`,
    caBundle: bundle(servedCertificate),
  })
  expect((await apiServer.client.create(Widget, aWidget('a'))).spec.color).toBe('/mutate?timeout=5s')
})

test.each(['//mutate', '/./mutate/', '/other/../mutate'])(
  'a webhook with the path %s is called at the cleaned path',
  async (path) => {
    await using apiServer = await serverWithWebhook(webhookAt(path))
    expect((await apiServer.client.create(Widget, aWidget('a'))).spec.color).toBe('/mutate?timeout=5s')
  },
)

test('a webhook behind a Service is called at the resolved address of the Service', async () => {
  const service = { namespace: 'system', name: 'hook', path: '/svc' }
  await using apiServer = await serverWithWebhook({ service, caBundle: bundle(authority.certificate) })
  expect((await apiServer.client.create(Widget, aWidget('a'))).spec.color).toBe('/svc?timeout=5s')
})

test('errors of webhook calls have the messages of a real server', async () => {
  const otherAuthority = await makeAuthority(systemClock, { commonName: 'other' })
  const cases: [WebhookClientConfig, string][] = [
    [
      { url: 'https://127.0.0.1:1/x' },
      'Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    [
      { url: `https://127.0.0.1:${port}/x`, caBundle: bundle(otherAuthority.certificate) },
      `Post "https://127.0.0.1:${port}/x?timeout=5s": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    ],
    [
      { url: 'https://127.0.0.1:1//x/' },
      'Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    [
      { service: { namespace: 'system', name: 'nobody' } },
      'Post "https://nobody.system.svc:443/?timeout=5s": service "nobody" not found',
    ],
  ]
  for (const [clientConfig, reason] of cases) {
    await using apiServer = await serverWithWebhook(clientConfig)
    expect(await rejection(apiServer.client.create(Widget, aWidget('a')))).toBe(
      `500 InternalError: Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: ${reason}`,
    )
  }
})

const webhookAt = (path: string) => ({ url: `https://127.0.0.1:${port}${path}`, caBundle: bundle(authority.certificate) })

test('a denial reaches the client with its warnings', async () => {
  await using apiServer = await serverWithWebhook(webhookAt('/deny'))
  const handler = createHandler({ engine: apiServer.server.engine, clock: apiServer.clock })
  const body = Buffer.from(JSON.stringify({ apiVersion: 'shop.example.com/v1', kind: 'Widget', ...aWidget('a') }))
  const { signal } = new AbortController()
  const { status, headers } = await handler(
    {
      method: 'POST',
      url: '/apis/shop.example.com/v1/namespaces/default/widgets',
      headers: { 'content-type': 'application/json' },
      signal,
      streamSignal: signal,
      body: async () => body,
    },
    { kind: 'user', name: 'u', groups: ['system:authenticated'] },
  )
  expect({ status, warning: headers.warning }).toEqual({ status: 400, warning: ['299 - "be careful"'] })
})

test('a call to an unresponsive webhook times out', async () => {
  await using apiServer = await serverWithWebhook(webhookAt('/hang'))
  const reached = new Promise<void>((resolve) => (onHang = resolve))
  const error = rejection(apiServer.client.create(Widget, aWidget('a')))
  await reached
  apiServer.clock.step(apiServer.clock.now() + 5000)
  expect(await error).toContain(`Post "https://127.0.0.1:${port}/hang?timeout=5s": context deadline exceeded`)
})

test('a response may be 2 MiB larger than twice the size of its request', async () => {
  await using apiServer = await serverWithWebhook(webhookAt('/long'))
  expect(await rejection(apiServer.client.create(Widget, aWidget('a')))).toMatch(/the response is longer than 2\d{6} bytes$/)
  const free = { text: 'x'.repeat(600_000) }
  expect(await rejection(apiServer.client.create(Widget, aWidget('b', { free })))).toBe('accepted')
})

test('a conversion webhook is called over HTTPS', async () => {
  await using apiServer = await serverWithWebhook(webhookAt('/mutate'))
  const schema = { openAPIV3Schema: { type: 'object' as const, 'x-kubernetes-preserve-unknown-fields': true } }
  await apiServer.client.create(CustomResourceDefinition, {
    metadata: { name: 'convs.t.example.com' },
    spec: {
      group: 't.example.com',
      names: { kind: 'Conv', plural: 'convs' },
      scope: 'Cluster',
      versions: ['v1', 'v2'].map((name) => ({ name, served: true, storage: name === 'v1', schema })),
      conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig: webhookAt('/convert') } },
    },
  })
  const conv = (version: string) =>
    unknownKind({ apiVersion: `t.example.com/${version}`, kind: 'Conv', plural: 'convs', scope: 'Cluster' })
  await apiServer.client.create(conv('v1'), { metadata: { name: 'a' }, spec: {} })
  expect(await apiServer.client.get(conv('v2'), { name: 'a' })).toMatchObject({ spec: { path: '/convert?timeout=30s' } })
})
