import { CustomResourceDefinition, unknownKind } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'

const APIService = unknownKind({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  plural: 'apiservices',
  scope: 'Cluster',
})

const scenario = () => testServer({ controllers: { systemObjects: true } })

test('versions of built-in and custom groups have APIServices, apiregistration.k8s.io has none, and a deleted APIService is restored', async () => {
  const { client } = await scenario()
  await quiet()
  const names = async () => (await client.list(APIService)).items.map(({ metadata: { name } }) => name)
  expect(await names()).toEqual(expect.arrayContaining(['v1.', 'v1.apps', 'v2.autoscaling', 'v1.shop.example.com']))
  expect(await names()).not.toContain('v1.apiregistration.k8s.io')

  await client.delete(APIService, { name: 'v1.apps' })
  await quiet()
  expect(await names()).toContain('v1.apps')
})

test('the APIService of a CustomResourceDefinition is deleted with the CustomResourceDefinition', async () => {
  const { client } = await scenario()
  await quiet()
  expect(await client.get(APIService, { name: 'v1.shop.example.com' })).toMatchObject({
    metadata: { labels: { 'kube-aggregator.kubernetes.io/automanaged': 'true' } },
    spec: { group: 'shop.example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 100 },
    status: { conditions: [{ type: 'Available', status: 'True', reason: 'Local' }] },
  })
  await client.delete(CustomResourceDefinition, { name: 'widgets.shop.example.com' })
  await quiet()
  await expect(client.get(APIService, { name: 'v1.shop.example.com' })).rejects.toThrow('not found')
})

test('an APIService that names a missing Service is reported as unavailable', async () => {
  const { client } = await scenario()
  const spec = {
    group: 'metrics.example.com',
    version: 'v1',
    service: { namespace: 'default', name: 'metrics' },
    insecureSkipTLSVerify: true,
    groupPriorityMinimum: 100,
    versionPriority: 100,
  }
  await client.create(APIService, { metadata: { name: 'v1.metrics.example.com' }, spec })
  await quiet()
  expect(await client.get(APIService, { name: 'v1.metrics.example.com' })).toMatchObject({
    status: { conditions: [{ type: 'Available', status: 'False', reason: 'ServiceNotFound' }] },
  })
})
