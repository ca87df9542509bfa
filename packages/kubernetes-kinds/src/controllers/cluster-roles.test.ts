import { type Client, ClusterRole, silent } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'
import { runClusterRoles } from './cluster-roles.ts'

const rule = (resource: string) => ({ apiGroups: ['shop.example.com'], resources: [resource], verbs: ['get'] })
const part = (name: string) => ({ metadata: { name, labels: { into: 'all' } }, rules: [rule(name)] })

test('a role with an aggregation rule has the rules of the selected roles, and loses those of deleted roles', async () => {
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

test('a role that is deleted while its rules are aggregated is not created again, and causes no error', async () => {
  const { server, client, clock } = await testServer()
  await client.create(ClusterRole, {
    metadata: { name: 'all' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { into: 'all' } }] },
  })
  await client.create(ClusterRole, part('books'))
  await quiet()
  const results: string[] = []
  const deleting: Pick<Client, 'apply'> = {
    async apply(kind, object, options) {
      await client.delete(ClusterRole, { name: 'all' })
      return client.apply(kind, object, options).catch((err: Error) => {
        results.push(err.message)
        throw err
      })
    },
  }
  const errors: unknown[] = []
  const log = { ...silent, error: (_: string, { err }: { err?: unknown } = {}) => void errors.push(err) }
  await client.patch(ClusterRole, { name: 'all' }, { type: 'merge', body: { rules: [] } })
  const stop = runClusterRoles({ store: server.store, clock, log, client: deleting as Client })
  await client.create(ClusterRole, part('widgets'))
  await quiet()
  stop()
  expect(results).toEqual([expect.stringContaining('no existing object was found')])
  expect(errors).toEqual([])
  await expect(client.get(ClusterRole, { name: 'all' })).rejects.toThrow('not found')
})
