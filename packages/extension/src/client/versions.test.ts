import type { ExtensionConfig } from '@capstan/api'
import { createCatalog, defineHook, hookCatalog, newerVersion, retryResponse } from '@capstan/api'
import { s, silent, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { holdFor } from '../author/answer.ts'
import { createExtensionClient } from './client.ts'
import { defineExtension, on } from '../author/define-extension.ts'
import { extensionServer } from '../server/server.ts'
import { inProcess } from './transport.ts'

// Hooks of a provider's own group, each in two versions with a conversion that changes fields.
const group = 'hooks.example.com'
const declare = { group, tag: 'Example', blocking: true, doc: 'Called before a volume changes.' }
const releaseNew = defineHook({
  ...declare,
  name: 'BeforeVolumeRelease',
  version: 'v1',
  request: { volume: s.object({ pool: s.string(), id: s.string() }) },
  response: { ...retryResponse, keep: s.boolean().default(false) },
})
const releaseOld = defineHook({
  ...declare,
  name: 'BeforeVolumeRelease',
  version: 'v1alpha1',
  request: { volumeID: s.string() },
  response: { ...retryResponse, keepVolume: s.boolean().default(false) },
  newer: newerVersion(releaseNew, {
    requestDown: ({ volume }) => ({ volumeID: `${volume.pool}/${volume.id}` }),
    responseUp: ({ keepVolume, ...rest }: { status: 'Success'; retryAfterSeconds: number; keepVolume: boolean }) => ({
      ...rest,
      keep: keepVolume,
    }),
  }),
})
const resizeNew = defineHook({
  ...declare,
  name: 'BeforeVolumeResize',
  version: 'v1beta1',
  request: { gigabytes: s.int32() },
  response: retryResponse,
})
const resizeOld = defineHook({
  ...declare,
  name: 'BeforeVolumeResize',
  version: 'v1alpha1',
  request: { size: s.string() },
  response: retryResponse,
  newer: newerVersion(resizeNew, {
    requestDown({ gigabytes }) {
      if (gigabytes < 1) throw new Error('gigabytes must be at least 1')
      return { size: `${gigabytes}Gi` }
    },
    responseUp: (response: { status: 'Success'; retryAfterSeconds: number }) => response,
  }),
})
const catalog = createCatalog([...hookCatalog, releaseOld, releaseNew, resizeOld, resizeNew])

const volume = { apiVersion: 'example.com/v1', kind: 'Volume', metadata: { name: 'v', namespace: 'default' } } as never

async function clientOf(extension: ReturnType<typeof defineExtension>) {
  const client = createExtensionClient({
    transport: inProcess(extensionServer(extension)),
    catalog,
    clock: new VirtualClock(),
    log: silent,
    namespaceLabels: async () => ({}),
  })
  const config = {
    apiVersion: 'runtime.cluster.x-k8s.io/v1beta2',
    kind: 'ExtensionConfig',
    metadata: { name: 'x', uid: 'x', resourceVersion: '1', creationTimestamp: '' },
    spec: { clientConfig: { url: 'https://x' }, namespaceSelector: {}, settings: { pool: 'fast' } },
  } satisfies ExtensionConfig
  client.warmUp([{ ...config, status: { handlers: await client.discover(config) } }])
  return client
}

test('the client converts requests to a handler of an old version, and the responses of the handler', async () => {
  const requests: object[] = []
  const handlers = [
    on(releaseOld, { name: 'old' }, ({ request }) => {
      requests.push(request)
      return { kind: 'proceed', response: { keepVolume: true } }
    }),
    on(releaseNew, { name: 'new' }, ({ request }) => {
      requests.push(request)
      return holdFor(3, 'in use')
    }),
  ]
  const client = await clientOf(defineExtension({ name: 'x', handlers }))
  const request = { volume: { pool: 'fast', id: '7' } }
  expect(await client.call(releaseNew, volume, 'old.x', request)).toMatchObject({ status: 'Success', keep: true })
  expect(await client.callAll(releaseNew, volume, request)).toMatchObject({ retryAfterSeconds: 3, message: 'in use' })
  // Settings are not converted: they are the same in all versions.
  const settings = { pool: 'fast' }
  expect(requests[0]).toEqual({
    apiVersion: 'hooks.example.com/v1alpha1',
    kind: 'BeforeVolumeReleaseRequest',
    volumeID: 'fast/7',
    settings,
  })
  expect(requests[2]).toMatchObject({ apiVersion: 'hooks.example.com/v1', volume: { pool: 'fast', id: '7' }, settings })
})

test('a call fails if its request cannot be converted to the old version', async () => {
  const handlers = [on(resizeOld, { name: 'old' }, () => holdFor(1, ''))]
  const client = await clientOf(defineExtension({ name: 'x', handlers }))
  await expect(client.callAll(resizeNew, volume, { gigabytes: 0 })).rejects.toThrow(
    'failed to call extension handlers for hook "BeforeVolumeResize.hooks.example.com": failed to call extension handler "old.x": ' +
      'http call failed: failed to convert request from hooks.example.com/v1beta1 to hooks.example.com/v1alpha1: gigabytes must be at least 1',
  )
  expect(await client.callAll(resizeNew, volume, { gigabytes: 2 })).toMatchObject({ status: 'Success', retryAfterSeconds: 1 })
})

test('the server serves hooks of a provider below a path prefix', async () => {
  const serve = extensionServer(defineExtension({ name: 'x', handlers: [on(releaseNew, { name: 'new' }, () => holdFor(1, ''))] }))
  const url = 'https://x/some/prefix/hooks.example.com/v1/beforevolumerelease/new'
  const response = await serve(new Request(url, { method: 'POST', body: '{"volume":{"pool":"fast","id":"7"}}' }))
  expect(await response.json()).toMatchObject({ status: 'Success', retryAfterSeconds: 1 })
})
