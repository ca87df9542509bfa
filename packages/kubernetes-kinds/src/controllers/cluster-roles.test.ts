import { ClusterRole } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'

const rule = (resource: string) => ({ apiGroups: ['shop.example.com'], resources: [resource], verbs: ['get'] })
const part = (name: string) => ({ metadata: { name, labels: { into: 'all' } }, rules: [rule(name)] })

test('an aggregated role has the rules of the selected roles, and loses those of deleted roles', async () => {
  const { client } = await testServer({ authorization: ['RBAC'] })
  await client.create(ClusterRole, {
    metadata: { name: 'all' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { into: 'all' } }] },
  })
  await client.create(ClusterRole, part('books'))
  await client.create(ClusterRole, part('widgets'))
  await quiet()
  const { rules, metadata } = await client.get(ClusterRole, { name: 'all' })
  expect(rules).toEqual([rule('books'), rule('widgets')])
  expect(metadata.managedFields?.map(({ manager, operation, fieldsV1 }) => [manager, operation, fieldsV1])).toEqual([
    ['clusterrole-aggregation-controller', 'Apply', { 'f:rules': {} }],
    ['test', 'Update', { 'f:aggregationRule': { '.': {}, 'f:clusterRoleSelectors': {} } }],
  ])

  await client.delete(ClusterRole, { name: 'books' })
  await quiet()
  expect((await client.get(ClusterRole, { name: 'all' })).rules).toEqual([rule('widgets')])
  await client.delete(ClusterRole, { name: 'widgets' })
  await quiet()
  expect((await client.get(ClusterRole, { name: 'all' })).rules ?? []).toEqual([])
})
