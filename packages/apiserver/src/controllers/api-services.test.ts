import { CustomResourceDefinition, unknownKind } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'

const APIService = unknownKind({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  plural: 'apiservices',
  scope: 'Cluster',
})

test('every group version that is served is registered, but for the register itself, as long as it is served', async () => {
  const { client } = await testServer({ controllers: { systemObjects: true } })
  const names = async () => (await client.list(APIService)).items.map(({ metadata }) => metadata.name)
  await quiet()
  const found = await names()
  expect(found).toContain('v1.')
  expect(found).toContain('v2.autoscaling')
  expect(found).toContain('v1.shop.example.com')
  expect(found).not.toContain('v1.apiregistration.k8s.io')

  await client.delete(CustomResourceDefinition, { name: 'widgets.shop.example.com' })
  await quiet()
  expect(await names()).not.toContain('v1.shop.example.com')
})
