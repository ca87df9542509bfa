import { ClusterRole, ClusterRoleBinding } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'
import { bootstrapRBAC } from './bootstrap.ts'

const autoupdate = 'rbac.authorization.kubernetes.io/autoupdate'
const rule = { apiGroups: ['shop.example.com'], resources: ['widgets'], verbs: ['get'] }
const selector = (label: string) => ({ matchLabels: { [`rbac.authorization.k8s.io/${label}`]: 'true' } })

/** Starts a server without default roles. `bootstrapped` runs bootstrapRBAC and then returns a ClusterRole. */
async function setup() {
  const { client } = await testServer()
  return {
    client,
    create: (name: string, fields: object, metadata: object = {}) =>
      client.create(ClusterRole, { metadata: { name, ...metadata }, ...fields }),
    async bootstrapped(name: string) {
      await bootstrapRBAC(client)
      await quiet()
      return client.get(ClusterRole, { name })
    },
  }
}

test('an existing default role gets the missing selectors of its aggregation rule, and keeps those of users', async () => {
  const { create, bootstrapped } = await setup()
  await create('view', { rules: [rule] })
  await create('edit', { aggregationRule: { clusterRoleSelectors: [selector('mine')] } })
  expect((await bootstrapped('view')).aggregationRule).toEqual({ clusterRoleSelectors: [selector('aggregate-to-view')] })
  expect((await bootstrapped('edit')).aggregationRule).toEqual({
    clusterRoleSelectors: [selector('mine'), selector('aggregate-to-edit')],
  })
})

test('an existing default role gets missing rules, and loses an aggregation rule that it does not have by default', async () => {
  const { create, bootstrapped } = await setup()
  await create('cluster-admin', { aggregationRule: { clusterRoleSelectors: [selector('mine')] } })
  const role = await bootstrapped('cluster-admin')
  expect(role.aggregationRule).toBeUndefined()
  expect(role.rules).toContainEqual({ apiGroups: ['*'], resources: ['*'], verbs: ['*'] })
})

test('existing default roles and bindings get missing labels, annotations and subjects, and keep values of users', async () => {
  const { client, create, bootstrapped } = await setup()
  const labels = { 'kubernetes.io/bootstrapping': 'mine' }
  await create('view', {}, { labels })
  await client.create(ClusterRoleBinding, {
    metadata: { name: 'cluster-admin', labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [],
  })
  const { metadata } = await bootstrapped('view')
  expect(metadata.labels).toEqual({ ...labels, 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' })
  expect(metadata.annotations).toEqual({ [autoupdate]: 'true' })
  const binding = await client.get(ClusterRoleBinding, { name: 'cluster-admin' })
  expect(binding.metadata.labels).toEqual(labels)
  expect(binding.metadata.annotations).toEqual({ [autoupdate]: 'true' })
  expect(binding.subjects?.map(({ name }) => name)).toEqual(['system:masters'])
})

test('a default role with the annotation autoupdate "false" is not changed', async () => {
  const { create, bootstrapped } = await setup()
  const { metadata } = await create('view', { rules: [rule] }, { annotations: { [autoupdate]: 'false' } })
  const role = await bootstrapped('view')
  expect([role.metadata.resourceVersion, role.aggregationRule]).toEqual([metadata.resourceVersion, undefined])
})
