import { seededRandom, VirtualClock } from '@capstan/kube'
import { afterEach, expect, test } from 'vitest'
import type { Caller } from '../auth/user.ts'
import { createApiServer } from '@capstan/kubernetes-kinds'

const closeServers: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(closeServers.splice(0).map((close) => close()))
})

const root: Caller = { name: 'root', groups: ['system:masters'], agent: 'test' }
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', namespace: 'default' }
const configMaps = { group: '', version: 'v1', plural: 'configmaps', namespace: 'default' }
const lease = (metadata: object) => ({ metadata, spec: { holderIdentity: 'me' } })

async function start() {
  const server = createApiServer({ clock: new VirtualClock(), random: seededRandom(1), authorization: ['RBAC'] })
  closeServers.push(() => server.close())
  await server.ready
  const put = async (resource: typeof leases, name: string, body: object, caller = root) => {
    try {
      return (await server.engine.execute({ verb: 'update', ...resource, name, body }, caller)).code
    } catch (err) {
      return (err as Error).message
    }
  }
  return { put, execute: server.engine.execute.bind(server.engine) }
}

test('a PUT creates an absent object of a kind that allows this, and ignores a resourceVersion in the body', async () => {
  const { put, execute } = await start()
  expect(await put(leases, 'one', lease({ name: 'one', resourceVersion: '5' }))).toBe(201)
  const { body } = await execute({ verb: 'get', ...leases, name: 'one' }, root)
  expect(body).toMatchObject({
    metadata: { name: 'one', managedFields: [{ operation: 'Update' }] },
    spec: { holderIdentity: 'me' },
  })
  expect(await put(leases, 'one', lease({ name: 'one' }))).toBe(200)
})

test('a PUT that would create an object is rejected when the body has a uid, or a name other than that of the URL', async () => {
  const { put } = await start()
  expect(await put(leases, 'one', lease({ name: 'two' }))).toMatch(/does not match the name on the URL/)
  expect(await put(leases, 'one', lease({ name: 'one', uid: 'u' }))).toMatch(/UID in precondition: u, UID in object meta: $/)
})

test('a PUT that creates requires the permission to create', async () => {
  const { put, execute } = await start()
  const group = 'rbac.authorization.k8s.io'
  const rules = [{ verbs: ['update'], apiGroups: ['coordination.k8s.io'], resources: ['leases'] }]
  const subjects = [{ kind: 'User', name: 'bob' }]
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: 'renewer' }
  const metadata = { name: 'renewer' }
  const create = (plural: string, body: object) => execute({ verb: 'create', group, version: 'v1', plural, body }, root)
  await create('clusterroles', { metadata, rules })
  await create('clusterrolebindings', { metadata, roleRef, subjects })
  const bob: Caller = { name: 'bob', groups: [], agent: 'test' }
  expect(await put(leases, 'one', lease({ name: 'one' }), bob)).toMatch(/User "bob" cannot create resource "leases"/)
})

test('a PUT of an absent object is NotFound if its kind does not allow creation by PUT; an error in the body takes precedence', async () => {
  const { put } = await start()
  expect(await put(configMaps, 'one', { metadata: { name: 'one' } })).toBe('configmaps "one" not found')
  expect(await put(configMaps, 'one', { metadata: { name: 'two' } })).toMatch(/does not match the name on the URL/)
  expect(await put(configMaps, 'one', { metadata: { name: 'one' }, data: { a: 1 } })).toMatch(/cannot unmarshal number/)
})
