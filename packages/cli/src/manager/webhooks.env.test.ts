import { memoryStore } from '@capstan/apiserver'
import { configureWebhooks, installKinds } from '@capstan/controller'
import {
  admission,
  type Client,
  type Clock,
  ConfigMap,
  createClient,
  CustomResourceDefinition,
  type Logger,
  MutatingWebhookConfiguration,
  seconds,
  seededRandom,
  silent,
  systemClock,
  type Transport,
  ValidatingWebhookConfiguration,
  VirtualClock,
} from '@capstan/kube'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { providerAdmission, providerKinds, type ProviderName } from '@capstan/lab'
import { localKinds } from '@capstan/local'
import { expect, test } from 'vitest'
import { connect } from 'node:tls'
import { removeManagerWebhooks, removeStaleWebhooks, serveWebhooks } from './webhooks.ts'
import { components } from '../manifests/components.ts'
import { webhookConfiguration } from '../manifests/names.ts'

const clock = new VirtualClock()
const newServer = () => createApiServer({ store: memoryStore(), clock, random: seededRandom(1), log: silent })
const serveFor = (
  client: Client,
  providers: readonly ProviderName[],
  minVersion: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.2',
  other: { readonly clock?: Clock; readonly log?: Logger } = {},
) =>
  serveWebhooks(
    { webhookHost: '127.0.0.1', webhookPort: 0 },
    {
      client,
      providers,
      admissions: providerAdmission(),
      minVersion,
      clock: systemClock,
      log: silent,
      isAlone: true,
      leads: () => true,
      reinstall: () => Promise.resolve(),
      ...other,
    },
  )
const configurationNames = async (client: Client) => {
  const { items: mutating } = await client.list(MutatingWebhookConfiguration)
  const { items: validating } = await client.list(ValidatingWebhookConfiguration)
  return [...mutating, ...validating].map(({ metadata }) => metadata.name).sort()
}

test('managers of two providers configure and remove only their own webhooks', async () => {
  const server = newServer()
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  const core = await serveFor(client, ['core'])
  await core.configure()
  const local = await serveFor(client, ['local'])
  await local.configure()
  expect(await configurationNames(client)).toEqual(['capstan-core', 'capstan-core', 'capstan-local', 'capstan-local'])
  const coreConfiguration = await client.get(ValidatingWebhookConfiguration, { name: 'capstan-core' })
  const groups = coreConfiguration.webhooks!.flatMap(({ rules }) => rules!.flatMap(({ apiGroups }) => apiGroups!))
  expect(groups).toContain('cluster.x-k8s.io')
  expect(groups).not.toContain(localKinds[0]!.group)
  await local.close()
  expect(await configurationNames(client)).toEqual(['capstan-core', 'capstan-core'])
  await core.close()
  expect(await configurationNames(client)).toEqual([])
  await server.close()
})

test.each([
  ['TLSv1.2', 'accepts', 'TLSv1.2'],
  ['TLSv1.3', 'rejects', undefined],
] as const)('with minimum version %s, the server %s a TLSv1.2 client', async (minVersion, _, expectedProtocol) => {
  const server = newServer()
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  const webhooks = await serveFor(client, ['core'], minVersion)
  const { port } = new URL(webhooks.url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), maxVersion: 'TLSv1.2', rejectUnauthorized: false })
  const protocol = await new Promise((resolve) => {
    socket.once('secureConnect', () => resolve(socket.getProtocol()))
    socket.once('error', () => resolve(undefined))
  })
  socket.destroy()
  await webhooks.close()
  await server.close()
  expect(protocol).toBe(expectedProtocol)
})

test('a manager with webhooks replaces the configurations of a killed manager; a manager without webhooks removes them', async () => {
  const server = newServer()
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  const admissions = [admission<ConfigMap>({ kind: ConfigMap, default() {}, validate: () => [] })]
  const configureAsKilledManager = () =>
    configureWebhooks(client, 'capstan-core', admissions, (path) => ({ url: `https://127.0.0.1:1${path}` }))
  await configureAsKilledManager()
  const nextManager = await serveFor(client, ['core'])
  await nextManager.configure()
  const { webhooks = [] } = await client.get(ValidatingWebhookConfiguration, { name: 'capstan-core' })
  expect(new Set(webhooks.map(({ clientConfig }) => new URL(clientConfig.url!).origin))).toEqual(new Set([nextManager.url]))
  // The server of the next manager is reachable, so the configurations stay.
  await removeStaleWebhooks(client, ['core'], silent)
  expect(await configurationNames(client)).toEqual(['capstan-core', 'capstan-core'])
  await nextManager.close()
  await configureAsKilledManager()
  await removeStaleWebhooks(client, ['core'], silent)
  expect(await configurationNames(client)).toEqual([])
  await server.close()
})

/** Applies the CRDs in the manifests of core as kubectl does: with its own field manager, and without force. */
async function applyManifests(client: Client): Promise<void> {
  const options = { image: 'capstan', version: 'v0.1.0', certificates: 'self-managed', replicas: 1 } as const
  for (const manifest of components({ provider: 'core', ...options }))
    if (manifest.kind === 'CustomResourceDefinition')
      await client.apply(CustomResourceDefinition, manifest as never, { fieldManager: 'kubectl' })
}
const conversionTargets = async (client: Client) => {
  const { items } = await client.list(CustomResourceDefinition)
  const clientConfigs = items
    .map(({ spec }) => spec.conversion?.webhook?.clientConfig)
    .filter((clientConfig) => clientConfig !== undefined)
  return [
    ...new Set(clientConfigs.map(({ url, service, caBundle }) => url ?? `${service?.namespace}/${service?.name} ${caBundle}`)),
  ]
}

test.each([
  ['a stopped manager', (_: Client, stop: () => Promise<void>) => stop()],
  ['--remove-webhooks', (client: Client) => removeManagerWebhooks(client, ['core'])],
])('%s resets conversion to the Service of the manifests, so that the manifests can be applied', async (_, end) => {
  const server = newServer()
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  const webhooks = await serveFor(client, ['core'])
  await installKinds(client, providerKinds.core, { clock, random: seededRandom(1), conversion: webhooks.conversion })
  await webhooks.configure()
  expect(await conversionTargets(client)).toEqual([webhooks.conversion.url])
  await expect(applyManifests(client)).rejects.toThrow('exactly one of url or service is required')
  await end(client, () => webhooks.close())
  expect(await conversionTargets(client)).toEqual(['capi-system/capi-webhook-service undefined'])
  await applyManifests(client)
  await webhooks.close()
  await server.close()
})

test('a manager stops in time and logs an error when the API server does not complete patches of CRDs', async () => {
  const server = newServer()
  await server.ready
  const served = server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' })
  const client = createClient(served)
  const patched = Promise.withResolvers<void>()
  const unresponsive: Transport = {
    ...served,
    send(request, signal) {
      if (request.verb !== 'patch' || request.plural !== 'customresourcedefinitions') return served.send(request, signal)
      patched.resolve()
      return new Promise(() => {})
    },
  }
  const webhookClock = new VirtualClock()
  const errors: string[] = []
  const log = { ...silent, error: (text: string) => void errors.push(text) }
  const webhooks = await serveFor(createClient(unresponsive), ['core'], 'TLSv1.2', { clock: webhookClock, log })
  await installKinds(client, providerKinds.core, { clock, random: seededRandom(1), conversion: webhooks.conversion })
  await webhooks.configure()
  const closed = webhooks.close()
  await patched.promise
  expect(await configurationNames(client)).toEqual([])
  const end = webhookClock.now() + seconds(1.5)
  while (webhookClock.step(end));
  await closed
  expect(errors).toEqual([expect.stringContaining('run capstan manager --remove-webhooks')])
  await server.close()
})

test('a stopped manager does not change conversion that another manager has taken over', async () => {
  const server = newServer()
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  const webhooks = await serveFor(client, ['core'])
  await webhooks.configure()
  const other = { url: 'https://127.0.0.1:1/convert' }
  await installKinds(client, providerKinds.core, { clock, random: seededRandom(1), conversion: other })
  await webhooks.close()
  expect(await conversionTargets(client)).toEqual([other.url])
  await server.close()
})

test('--remove-webhooks removes only the two webhook configurations of a provider, and succeeds when they do not exist', async () => {
  const server = newServer()
  await server.ready
  const client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  const admissions = [admission<ConfigMap>({ kind: ConfigMap, default() {}, validate: () => [] })]
  for (const name of [webhookConfiguration('core'), 'other'])
    await configureWebhooks(client, name, admissions, (path) => ({ url: `https://127.0.0.1:1${path}` }))
  for (const times of [1, 2]) {
    await removeManagerWebhooks(client, ['core'])
    expect(await configurationNames(client), `time ${times}`).toEqual(['other', 'other'])
  }
  // Without the configurations, a write succeeds although no manager runs.
  await client.delete(MutatingWebhookConfiguration, { name: 'other' })
  await client.delete(ValidatingWebhookConfiguration, { name: 'other' })
  await client.create(ConfigMap, { metadata: { name: 'a', namespace: 'default' } })
  await server.close()
})
