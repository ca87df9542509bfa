import { Role, RoleBinding, ServiceAccount } from '@capstan/kube'
import { beforeEach, expect, test } from 'vitest'
import { type TestServer, testServer } from '../test-server.ts'
import { rbacAuthorizer } from './rbac.ts'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

const canRead = (namespace: string, serviceAccount: string) => {
  const user = { name: `system:serviceaccount:${serviceAccount}`, groups: [] }
  const request = { kind: 'resource', user, verb: 'get', group: '', resource: 'configmaps', namespace, name: 'x' } as const
  return rbacAuthorizer(t.server.store).decide(request).allowed
}

async function bindView(namespace: string, subject: { name: string; namespace?: string }): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }]
  await t.client.create(Role, { metadata: { name: 'view', namespace }, rules })
  await t.client.create(RoleBinding, {
    metadata: { name: 'viewers', namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'view' },
    subjects: [{ kind: ServiceAccount.kind, ...subject }],
  })
}

test('a ServiceAccount subject without a namespace is in the namespace of its RoleBinding', async () => {
  await bindView('default', { name: 'robot' })
  expect(canRead('default', 'default:robot')).toBe(true)
  expect(canRead('default', 'kube-system:robot')).toBe(false)
  expect(canRead('kube-system', 'default:robot')).toBe(false)
})

test('a ServiceAccount subject of a RoleBinding can be in another namespace', async () => {
  await bindView('default', { name: 'robot', namespace: 'kube-system' })
  expect(canRead('default', 'kube-system:robot')).toBe(true)
  expect(canRead('default', 'default:robot')).toBe(false)
})
