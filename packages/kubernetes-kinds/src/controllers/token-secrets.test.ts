import { Secret, ServiceAccount } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'

const namespace = 'default'
const tokenSecret = (name: string, account: string) => ({
  metadata: { name, namespace, annotations: { 'kubernetes.io/service-account.name': account } },
  type: 'kubernetes.io/service-account-token',
})

async function start() {
  const { client, server } = await testServer({ controllers: { tokenSecrets: true, rootCA: 'PEM' } })
  const robot = await client.create(ServiceAccount, { metadata: { name: 'robot', namespace } })
  const tokenIn = async (name: string) => {
    await quiet()
    const { data } = await client.get(Secret, { namespace, name })
    return Buffer.from(data?.token ?? '', 'base64').toString()
  }
  const authenticateToken = (token: string) => server.authenticate({ authorization: `Bearer ${token}` })
  return { client, server, robot, tokenIn, authenticateToken }
}

test('a Secret of type service-account-token gets a token, the namespace and the CA certificate', async () => {
  const { client, robot, tokenIn, authenticateToken } = await start()
  await client.create(Secret, tokenSecret('s', 'robot'))
  const token = await tokenIn('s')
  expect(authenticateToken(token)).toEqual({
    kind: 'user',
    name: 'system:serviceaccount:default:robot',
    uid: robot.metadata.uid,
    groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
  })
  const { data, metadata } = await client.get(Secret, { namespace, name: 's' })
  expect([data!['ca.crt'], data!.namespace].map((text) => Buffer.from(text!, 'base64').toString())).toEqual(['PEM', 'default'])
  expect(metadata.annotations).toMatchObject({ 'kubernetes.io/service-account.uid': robot.metadata.uid })
})

test('the token of a Secret, and the token that the Secret had before, are invalid after the Secret is deleted', async () => {
  const { client, tokenIn, authenticateToken } = await start()
  await client.create(Secret, tokenSecret('s', 'robot'))
  const token = await tokenIn('s')
  await client.patch(Secret, { namespace, name: 's' }, { type: 'merge', body: { data: { token: null } } })
  const next = await tokenIn('s')
  await client.delete(Secret, { namespace, name: 's' })
  expect([token, next].map((candidate) => authenticateToken(candidate).kind)).toEqual(['rejected', 'rejected'])
})

test('a token Secret is deleted when its ServiceAccount does not exist or is deleted, also when a new ServiceAccount has the same name', async () => {
  const { client, server, tokenIn } = await start()
  await client.create(Secret, tokenSecret('nobody', 'nobody'))
  await client.create(Secret, tokenSecret('s', 'robot'))
  await tokenIn('s')
  await client.delete(ServiceAccount, { namespace, name: 'robot' })
  await client.create(ServiceAccount, { metadata: { name: 'robot', namespace } })
  await quiet()
  expect(server.store.list('secrets')).toEqual([])
})
