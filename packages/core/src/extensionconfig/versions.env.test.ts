import { ExtensionConfig } from '@capstan/api'
import { CustomResourceDefinition, type UnknownObject, unknownKind } from '@capstan/kube'
import { type TestEnv, testEnv } from '@capstan/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'

const Old = unknownKind({
  apiVersion: 'runtime.cluster.x-k8s.io/v1alpha1',
  kind: 'ExtensionConfig',
  plural: 'extensionconfigs',
  scope: 'Cluster',
})
const service = { name: 'quota', namespace: 'quota-system' }

let env: TestEnv
beforeEach(async () => {
  env = await testEnv({ kinds: [ExtensionConfig] })
})
afterEach(() => env.close())

const current = (name: string) => env.client.get(ExtensionConfig, { name })
const old = (name: string) => env.client.get(Old, { name })
const create = (name: string, clientConfig: object) =>
  env.client.create(Old, { metadata: { name }, spec: { clientConfig } } as never)

test('a manifest of v1alpha1 is defaulted, and readable in both versions', async () => {
  const created = await create('quota', { service })
  expect(created).toMatchObject({ apiVersion: 'runtime.cluster.x-k8s.io/v1alpha1' })
  const spec = { clientConfig: { service: { ...service, port: 443 } }, namespaceSelector: {} }
  expect(await current('quota')).toMatchObject({ apiVersion: 'runtime.cluster.x-k8s.io/v1beta2', spec })
  expect(await old('quota')).toMatchObject({ apiVersion: 'runtime.cluster.x-k8s.io/v1alpha1', spec })
  const { metadata } = await current('quota')
  expect((await old('quota')).metadata).toMatchObject({ uid: metadata.uid, resourceVersion: metadata.resourceVersion })
})

test.each([
  [{}, 'either url or service must be defined'],
  [{ url: 'http://quota' }, "'https' is the only allowed URL scheme"],
  [{ url: 'https://quota', service }, 'only one of url or service can be defined'],
])('v1alpha1 rejects the clientConfig %j', async (clientConfig, text) => {
  await expect(create('quota', clientConfig)).rejects.toThrow(text)
})

test('current and legacy conditions have other paths in v1alpha1 than in v1beta2, and an update in v1alpha1 keeps them', async () => {
  await create('quota', { service })
  const now = '2026-01-01T00:00:00Z'
  const condition = { type: 'Discovered', status: 'True', reason: 'Discovered', message: '', lastTransitionTime: now }
  const legacy = { type: 'Discovered', status: 'True', lastTransitionTime: now }
  const handlers = [
    { name: 'a.quota', requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' } },
  ]
  const status = { conditions: [condition], deprecated: { v1beta1: { conditions: [legacy] } }, handlers }
  await env.client.patch(ExtensionConfig, { name: 'quota' }, { type: 'merge', body: { status } }, { subresource: 'status' })
  expect((await old('quota')) as UnknownObject).toMatchObject({
    status: { conditions: [legacy], v1beta2: { conditions: [condition] }, handlers },
  })

  // An update with the object that was read changes nothing.
  await env.client.update(Old, await old('quota'), { subresource: 'status' })
  expect((await current('quota')).status).toEqual(status)
})

test('the timeout 0 of a handler in v1alpha1 is absent in v1beta2', async () => {
  await create('quota', { service })
  const requestHook = { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook: 'BeforeClusterCreate' }
  const body = { status: { handlers: [{ name: 'a.quota', requestHook, timeoutSeconds: 0 }] } }
  await env.client.patch(Old, { name: 'quota' }, { type: 'merge', body }, { subresource: 'status' })
  expect((await current('quota')).status?.handlers).toEqual([{ name: 'a.quota', requestHook }])
})

test('v1alpha1 is marked as deprecated, and a watch of v1alpha1 delivers an object that was created in v1beta2', async () => {
  const definition = await env.client.get(CustomResourceDefinition, { name: 'extensionconfigs.runtime.cluster.x-k8s.io' })
  expect(definition.spec.versions.map(({ name, storage, deprecated = false }) => ({ name, storage, deprecated }))).toEqual([
    { name: 'v1beta2', storage: true, deprecated: false },
    { name: 'v1alpha1', storage: false, deprecated: true },
  ])
  const events = await env.client.watch(Old, { signal: new AbortController().signal })
  await env.client.create(ExtensionConfig, { metadata: { name: 'new' }, spec: { clientConfig: { url: 'https://quota' } } })
  for await (const { object } of events) {
    expect(object).toMatchObject({ apiVersion: 'runtime.cluster.x-k8s.io/v1alpha1', metadata: { name: 'new' } })
    break
  }
})
